"""The example of the documentation, on a real server: an agent signs up, waits, opens the link, is done."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.dovecot import Dovecot
from support.tool_site import REPOSITORY, Site


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("sdbox") as dovecot:
        yield dovecot


def test_the_example_signs_up_and_confirms(server: Dovecot, tmp_path: Path) -> None:
    site = Site(tmp_path, server, "example", purposes__verify_signup__take__link__deliver="handle")
    done = subprocess.run(
        [
            sys.executable, "docs/examples/signup_agent.py", "--config", str(tmp_path), "--port", str(server.port),
            "--user", "example", "--password-env", "TOOL_TEST_PASSWORD",
        ],
        capture_output=True, text=True, cwd=REPOSITORY, env=site.environ, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("open: pending (run_opened)")
    assert lines[-1] == "confirmed"
    assert "opened the link: HTTP 200" in lines
    assert "/verify/" not in done.stdout
    receipts = site.app().ledger.receipts()
    assert [(r.call, r.state) for r in reversed(receipts)] == [
        ("open", "pending"),
        ("wait", "found"),
        ("redeem", "found"),
        ("cancel", "cancelled"),
    ]


def test_the_agent_stops_where_the_tool_says_stop() -> None:
    sys.path.insert(0, str(REPOSITORY / "docs" / "examples"))
    from datetime import UTC, datetime

    from signup_agent import next_step

    from triage.agent.result import Result
    from triage.agent.states import NextAction, Stage, State

    def result(state: State, action: NextAction, **more: object) -> Result:
        values = {"reason": "r", "stage": Stage.AUTHORIZED, "run_id": None, "observed_at": datetime.now(UTC), **more}
        return Result(state=state, next_action=action, **values)  # type: ignore[arg-type]

    request: dict[str, object] = {"run_id": "signup-1", "wait_id": "wait-1"}
    going_on = result(State.PENDING, NextAction.CONTINUE, next_retry_after_ms=1, wait_id="wait-2")
    assert next_step(request, going_on) == ({"run_id": "signup-1", "wait_id": "wait-2"}, True)
    again = result(State.TIMEOUT, NextAction.RETRY_LATER, retryable=True)
    assert next_step(request, again) == ({"run_id": "signup-1"}, True)
    for state in (State.FORBIDDEN, State.REJECTED, State.EXPIRED, State.CANCELLED):
        assert next_step(request, result(state, NextAction.STOP))[1] is False
