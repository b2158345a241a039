"""A server short of connections: that costs looks, never a login storm, and what listens gives way to what looks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from services.dovecot import Dovecot
from support.tool_site import REPOSITORY, Site, wait_request
from triage.agent.result import Result, RunView
from triage.agent.tool import MailTool

SCARCE, USUAL = 3, 10
"""Connections that the server allows a user; ten is Dovecot's own default."""


@pytest.fixture(scope="module")
def scarce() -> Iterator[Dovecot]:
    with Dovecot("sdbox", extra=f"mail_max_userip_connections = {SCARCE}") as dovecot:
        yield dovecot


@pytest.fixture(scope="module")
def usual() -> Iterator[Dovecot]:
    with Dovecot("sdbox", extra=f"mail_max_userip_connections = {USUAL}") as dovecot:
        yield dovecot


def site_of(server: Dovecot, directory: Path, user: str, **changes: object) -> Site:
    return Site(directory, server, user, purposes__verify_signup__max_polls=20, **changes)


def opened(tool: MailTool, run_id: str) -> RunView:
    result = tool.open({"run_id": run_id, "purpose": "verify_signup"})
    assert result.run is not None, result
    return result.run


def crowded_out(server: Dovecot, user: str) -> int:
    """How often the server said that a user has too many connections."""
    return len(re.findall(rf"Maximum number of connections[^\n]*user=<{user}>", server.log()))


def test_a_limit_in_mid_wait_costs_looks_and_is_no_refused_login(scarce: Dovecot, tmp_path: Path) -> None:
    """All connections are somebody else's until the third second; then the wait goes on and finds its mail."""
    site = site_of(scarce, tmp_path, "busy")
    app = site.app()
    tool = app.tool()
    run = opened(tool, "signup-1842")
    others = [scarce.client("busy") for _ in range(SCARCE)]

    def leave_and_deliver() -> None:
        for other in others:
            other.logout()
        site.deliver(run.address)

    threading.Timer(2.0, leave_and_deliver).start()
    result = tool.wait(wait_request(run))
    receipt = app.ledger.receipt(str(result.receipt_id))
    assert receipt is not None
    shown = [poll["shown"] for poll in receipt.polls]
    assert (result.state, shown[0], shown[-1]) == ("found", "busy", "matched")
    assert app.ledger.login_refusal("team") is None
    assert 1 <= crowded_out(scarce, "busy") <= shown.count("busy") + 1, "one try a look, and one to listen"
    tool.close()
    app.close()


def test_a_limit_throughout_is_a_mailbox_that_cannot_be_reached(scarce: Dovecot, tmp_path: Path) -> None:
    site = site_of(scarce, tmp_path, "full")
    app = site.app()
    tool = app.tool()
    run = opened(tool, "signup-1842")
    others = [scarce.client("full") for _ in range(SCARCE)]
    result = tool.wait(wait_request(run, deadline_seconds=5))
    for other in others:
        other.logout()
    assert (result.state, result.reason, result.retryable) == ("timeout", "mailbox_unreachable", True)
    assert crowded_out(scarce, "full") <= result.polls_used + 1
    tool.close()
    app.close()


def test_eight_waits_of_one_process_share_two_connections(scarce: Dovecot, tmp_path: Path) -> None:
    """The third that the server allows is for who delivers; nobody is turned away."""
    site = site_of(scarce, tmp_path, "eight")
    app = site.app()
    tool = app.tool()
    runs = [opened(tool, f"signup-{n}") for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        waits = [pool.submit(tool.wait, wait_request(run, take="link")) for run in runs]
        for run in runs:
            site.deliver(run.address, message_id=f"<{run.mailbox_scope}@acme.example>")
        results = [wait.result() for wait in waits]
    assert [(str(result.state), result.run_id) for result in results] == [("found", run.mailbox_scope) for run in runs]
    assert len({result.accepted.message_id for result in results if result.accepted}) == 8
    assert crowded_out(scarce, "eight") == 0
    tool.close()
    app.close()


_WAITER = (
    "import json, sys; from pathlib import Path\n"
    "from triage.bootstrap import App; from triage.config.load import load\n"
    "app = App(load(Path(sys.argv[1]))); tool = app.tool(); app.ledger.depth()\n"
    "print('ready', flush=True); sys.stdin.readline()\n"
    "print(tool.wait(json.loads(sys.argv[2])).model_dump_json()); tool.close(); app.close()\n"
)


def test_eight_waits_of_eight_processes_all_find_their_mail_under_the_usual_limit(
    usual: Dovecot, tmp_path: Path
) -> None:
    """Sixteen connections are wanted and ten there are."""
    site = site_of(usual, tmp_path, "many")
    app = site.app()
    tool = app.tool()
    runs = [opened(tool, f"signup-{n}") for n in range(8)]
    for run in runs:
        site.deliver(run.address, message_id=f"<{run.mailbox_scope}@acme.example>")
    waiters = [
        subprocess.Popen(
            [sys.executable, "-c", _WAITER, str(site.directory), json.dumps(wait_request(run))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY, env=site.environ, text=True,
        )
        for run in runs
    ]  # fmt: skip
    try:
        for waiter in waiters:
            assert waiter.stdout is not None
            assert waiter.stdout.readline() == "ready\n"
        for waiter in waiters:
            assert waiter.stdin is not None
            waiter.stdin.write("\n")
            waiter.stdin.flush()
        results = [Result.model_validate_json(waiter.communicate(timeout=240)[0]) for waiter in waiters]
    finally:
        for waiter in waiters:
            waiter.kill()
            waiter.communicate()
    assert [(str(result.state), result.run_id) for result in results] == [("found", run.mailbox_scope) for run in runs]
    assert len({result.accepted.message_id for result in results if result.accepted}) == 8
    tool.close()
    app.close()
