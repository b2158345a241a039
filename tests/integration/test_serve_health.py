"""`triage health` beside a real daemon, and after its death."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fakes.http_stub import HttpStub, always, reply
from services.dovecot import Dovecot, Mail
from support.premises import Premises, answers
from triage.domain.record import Trigger

OFTEN = "* * * * *"


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("sdbox") as dovecot:
        yield dovecot


@pytest.fixture
def user(request: pytest.FixtureRequest) -> str:
    return f"u{abs(hash(request.node.name)):x}"


def ask(premises: Premises) -> tuple[int, dict[str, Any]]:
    """The exit status of `triage health --json`, and what it says of the account."""
    with premises.process("health", "--json") as health:
        out, _ = health.popen.communicate(timeout=60)
    return health.popen.returncode, json.loads(out)["accounts"][0]


def fired(premises: Premises, ago: timedelta, finished: bool = True) -> None:
    with premises.ledger() as ledger:
        run = ledger.enqueue("team", Trigger.SCHEDULE, datetime.now(UTC).replace(second=0, microsecond=0) - ago)
        assert run is not None
        if finished:
            assert ledger.claim("before", timedelta(minutes=1), run_id=run.id) is not None
            ledger.finish(run.id, "before")


def test_it_is_fine_while_the_daemon_works_and_not_once_it_was_killed(
    server: Dovecot, user: str, tmp_path: Path
) -> None:
    server.append(user, [Mail("News", "<1@x.example>")])
    with HttpStub(answers({"News": ("newsletter", 0.97)})) as model:
        premises = Premises(tmp_path, server.port, server.password, model.url)
        premises.write({"team": user}, enabled=["team"], cron=OFTEN)
        fired(premises, timedelta(hours=1))
        code, told = ask(premises)
        assert code == 1, "no daemon has been at work for an hour"
        assert "Is `triage serve` running?" in " ".join(told["problems"])
        with premises.process("serve") as serve:
            serve.wait_for("run_finished")
            code, told = ask(premises)
            assert (code, told["problems"], told["queue_depth"]) == (0, [], 0)
            assert told["last_finished"]["id"]
            serve.end(signal.SIGKILL)
    server.append(user, [Mail("Late", "<2@x.example>")])
    code, told = ask(premises)
    assert code == 1
    assert "waited" in " ".join(told["problems"]), "by its INTERNALDATE it has been there since March"


def test_an_empty_inbox_does_not_hide_a_dead_daemon(server: Dovecot, user: str, tmp_path: Path) -> None:
    premises = Premises(tmp_path, server.port, server.password, "http://127.0.0.1:9")
    premises.write({"team": user}, enabled=["team"], cron=OFTEN)
    fired(premises, timedelta(minutes=10))
    code, told = ask(premises)
    assert (code, told["oldest_unlabelled"]) == (1, None)
    assert "is missing" in " ".join(told["problems"])


def test_workers_that_stand_still_are_seen_though_fires_come(server: Dovecot, user: str, tmp_path: Path) -> None:
    premises = Premises(tmp_path, server.port, server.password, "http://127.0.0.1:9")
    premises.write({"team": user}, enabled=["team"], cron=OFTEN)
    fired(premises, timedelta(0), finished=False)
    code, told = ask(premises)
    assert (code, told["queue_depth"]) == (1, 1)
    assert "fires come, but no run has finished yet" in " ".join(told["problems"])


def test_the_breaker_is_told(server: Dovecot, user: str, tmp_path: Path) -> None:
    server.append(user, [Mail("News", "<1@x.example>")])
    with HttpStub(always(reply({"error": "no credit"}, status=402))) as model:
        premises = Premises(tmp_path, server.port, server.password, model.url)
        premises.write({"team": user}, enabled=["team"], cron=OFTEN)
        with premises.process("run") as run:
            run.popen.wait(60)
        code, told = ask(premises)
    assert code == 1
    assert told["breakers"]["systemone table-1"].startswith("open since ")


def test_a_server_that_cannot_be_reached_is_told_and_not_stormed(server: Dovecot, user: str, tmp_path: Path) -> None:
    premises = Premises(tmp_path, 9, server.password, "http://127.0.0.1:9")
    premises.write({"team": user}, enabled=["team"], cron=OFTEN)
    code, told = ask(premises)
    assert code == 1
    assert any("refused" in problem for problem in told["problems"])


def test_an_account_that_is_switched_off_is_left_alone(server: Dovecot, user: str, tmp_path: Path) -> None:
    premises = Premises(tmp_path, 9, server.password, "http://127.0.0.1:9")
    premises.write({"team": user})
    code, told = ask(premises)
    assert (code, told["healthy"], told["enabled"]) == (0, True, False)
