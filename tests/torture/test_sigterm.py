"""SIGTERM to `triage run` and `triage serve` at every point: exit 0 within the grace period, nothing left behind."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

import pytest

from fakes.http_stub import HttpStub
from support import inbox
from support.accidents import count
from support.form import Tally, some
from support.killing import CommandProxy, KillPoint
from support.premises import Premises, answers, exit_status, wait_until
from support.shards import failures_of
from support.site import Site
from triage.domain.record import Trigger
from triage.schedule.daemon import GRACE_S

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),  # proxies have threads; we fork
    pytest.mark.timeout(1800),
]


@dataclass(frozen=True)
class Blow:
    """SIGTERM to a command when the server has, or is about to get, its n-th IMAP command."""

    command: str
    at: KillPoint

    def __str__(self) -> str:
        return f"{self.command}-{self.at}"


def test_sigterm_at_every_command_ends_the_process_in_order(whole: Site, tally: Tally) -> None:
    commands = len(count(whole, "unsignalled").commands)
    blows = [
        Blow(command, KillPoint(where, n))
        for command in ("run", "serve")
        for where in ("command", "reply")
        for n in range(1, commands + 1)
    ]

    def trial(blow: Blow) -> list[str]:
        site = whole.copy(f"term-{blow}")
        with HttpStub(answers(inbox.TABLE)) as model:
            code = _strike(site, model.url, blow)
        bad = [] if code == 0 else [f"exit {code} within {GRACE_S:.0f} s"]
        app = site.app(site.server.port)
        bad += [f"left running: {r.id}" for r in app.ledger.runs() if r.lease_owner and not r.finished_at]
        bad += [f"failed: {r.reason} {r.error}" for r in app.ledger.runs() if r.reason]
        bad += [f"left half done: {d.ref}" for d in app.ledger.unfinished("team")]
        app.close()
        return bad + site.put_right()

    chosen = some(blows, 6)
    failures = failures_of(trial, chosen)
    tally.add("SIGTERM", len(chosen), len(failures), len(blows))
    assert failures == {}


def _strike(site: Site, model_url: str, blow: Blow) -> int | None:
    """Run the command, signal it at the point; its exit status, None if it outlasted the grace period."""
    pids: list[int] = []

    def strike(where: str, n: int) -> bool:
        if (where, n) == (blow.at.where, blow.at.n):
            wait_until(lambda: pids)
            os.kill(pids[0], signal.SIGTERM)
        return False

    with CommandProxy(site.server.port, lambda n, line: strike("command", n), lambda n: strike("reply", n)) as proxy:
        premises = Premises(site.place, proxy.port, site.server.password, model_url)
        premises.write({"team": site.user})
        if blow.command == "serve":
            with premises.ledger() as ledger:
                assert ledger.enqueue("team", Trigger.SCHEDULE, inbox.OLD[0].received)
            premises.write({"team": site.user}, enabled=["team"], cron="0 0 1 1 *")
        pids.append(premises.in_fork(blow.command))
        return exit_status(pids[0], GRACE_S)
