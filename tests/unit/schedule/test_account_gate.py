"""A server is not stormed: a refused login is tried once, a pause is kept, over restarts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from services.ledger import START, HandClock
from triage.domain.errors import LoginRefused, MailboxBusy
from triage.domain.record import Run, RunState, Trigger
from triage.ledger.ledger import SqlLedger, open_ledger
from triage.schedule.gate import FIRST_PAUSE, LONGEST_PAUSE, AccountGate

MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def ledger(tmp_path: Path, clock: HandClock) -> Iterator[SqlLedger]:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", clock)
    yield ledger
    ledger.close()


def run(trigger: Trigger = Trigger.SCHEDULE, account: str = "team") -> Run:
    return Run("r1", account, trigger, START, RunState.RUNNING, START)


def gate(ledger: SqlLedger, clock: HandClock, login: str = "first password") -> AccountGate:
    """A gate as a freshly started process has it."""
    return AccountGate(ledger, lambda account: f"{account} {login}", clock)


def test_a_refused_login_stays_closed_over_restarts_until_the_login_changes(
    ledger: SqlLedger, clock: HandClock
) -> None:
    gate(ledger, clock).refused(run(), LoginRefused("no"))
    clock.advance(timedelta(days=30))
    for trigger in Trigger:
        closed = gate(ledger, clock).closed(run(trigger))
        assert isinstance(closed, LoginRefused)
        assert "Correct username or password" in str(closed)
    assert gate(ledger, clock, "second password").closed(run()) is None
    assert gate(ledger, clock).closed(run(account="other")) is None


def test_a_pause_grows_each_time_and_ends_with_a_run_that_passes(ledger: SqlLedger, clock: HandClock) -> None:
    pauses = []
    for _ in range(9):
        gate(ledger, clock).busy(run(), MailboxBusy("later"))
        pause = timedelta(0)
        while gate(ledger, clock).closed(run()) is not None:
            clock.advance(MINUTE)
            pause += MINUTE
        pauses.append(pause)
    assert pauses[:4] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE, 8 * FIRST_PAUSE]
    assert max(pauses) == LONGEST_PAUSE
    gate(ledger, clock).passed(run())
    gate(ledger, clock).busy(run(), MailboxBusy("later"))
    clock.advance(FIRST_PAUSE)
    assert gate(ledger, clock).closed(run()) is None


def test_a_server_that_says_when_is_believed_but_not_for_ever(ledger: SqlLedger, clock: HandClock) -> None:
    gate(ledger, clock).busy(run(), MailboxBusy("later", retry_after_s=90))
    clock.advance(timedelta(seconds=89))
    assert isinstance(gate(ledger, clock).closed(run()), MailboxBusy)
    clock.advance(timedelta(seconds=1))
    assert gate(ledger, clock).closed(run()) is None
    gate(ledger, clock).busy(run(), MailboxBusy("later", retry_after_s=1e9))
    clock.advance(LONGEST_PAUSE)
    assert gate(ledger, clock).closed(run()) is None


def test_a_person_who_runs_by_hand_is_not_held_back_by_a_pause(ledger: SqlLedger, clock: HandClock) -> None:
    gate(ledger, clock).busy(run(), MailboxBusy("later"))
    assert gate(ledger, clock).closed(run(Trigger.MANUAL)) is None
    assert gate(ledger, clock).closed(run(Trigger.BACKFILL)) is not None


def test_a_clock_that_was_set_back_does_not_lengthen_a_pause_without_end(ledger: SqlLedger, clock: HandClock) -> None:
    gate(ledger, clock).busy(run(), MailboxBusy("later"))
    clock.step(timedelta(hours=-12))
    assert gate(ledger, clock).closed(run()) is None
