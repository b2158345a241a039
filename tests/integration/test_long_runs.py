"""Runs that take longer than the time between two fires: one at a time, nothing asked twice, what was missed merged."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import structlog

from fakes.table_provider import TableProvider
from services.dovecot import Dovecot, Mail
from support.audited import disagreements
from support.fleet import EverySeconds, FleetOffice
from support.office import CATEGORIES, TestApp, settings_for
from support.premises import wait_until
from triage.domain.decision import Answer, Failure, Question
from triage.domain.mail import PreparedMail
from triage.domain.record import RunState, Trigger
from triage.schedule.daemon import Daemon
from triage.schedule.worker import Workplace

MAILS = 30


class SlowProvider(TableProvider):
    """Answers nothing until it is let go."""

    def __init__(self) -> None:
        super().__init__({}, default=("newsletter", 0.97))
        self.begun, self.go_on = threading.Event(), threading.Event()

    def ask(
        self, question: Question, mail: PreparedMail, deadline: float, stop: threading.Event | None = None
    ) -> Answer | Failure:
        self.begun.set()
        assert self.go_on.wait(60)
        return super().ask(question, mail, deadline, stop)


class Office(FleetOffice):
    """With the lease that runs have in earnest."""

    def workplace(self) -> Workplace:
        return self._app.workplace()


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("sdbox") as dovecot:
        yield dovecot


def test_fires_during_a_long_run_wait_as_one_and_a_manual_run_waits_its_turn(server: Dovecot, tmp_path: Path) -> None:
    server.append("slow", [Mail(f"Mail {n}", f"<{n}@x.example>") for n in range(MAILS)])
    provider = SlowProvider()
    app = TestApp(settings_for(tmp_path, server.port, "slow", server.password), [provider])
    ledger, office = app.ledger, Office(app, EverySeconds(1))
    daemon = Daemon(lambda: office, ledger, app.clock, app.stop, structlog.get_logger())
    serving = threading.Thread(target=daemon.run)
    serving.start()
    try:
        assert provider.begun.wait(60)
        manual = ledger.enqueue("team", Trigger.MANUAL, app.clock.now())
        assert manual is not None
        wait_until(lambda: sum(run.state is RunState.COALESCED for run in ledger.runs(limit=100)) >= 3)
        states = [run.state for run in ledger.runs(limit=100)]
        assert states.count(RunState.RUNNING) == 1
        assert states.count(RunState.QUEUED) <= 2, "the manual run, and one for all fires that came meanwhile"
        provider.go_on.set()
        wait_until(lambda: (run := ledger.run(manual.id)) is not None and run.state is RunState.DONE, 60)
        wait_until(lambda: sum(run.counts.get("labelled", 0) for run in ledger.runs(limit=1000)) == MAILS, 60)
    finally:
        provider.go_on.set()
        app.stop.set()
        serving.join(60)
    assert sum(provider.asked.values()) == MAILS
    ran = sorted((run.started_at, run.finished_at) for run in ledger.runs(limit=1000) if run.started_at)
    assert all(one[1] is not None and one[1] <= other[0] for one, other in pairwise(ran)), "two runs at a time"
    assert list(disagreements(ledger, "team", CATEGORIES)) == []
    app.close()
