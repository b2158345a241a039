"""Whatever happens in a run, it is closed, and the next one comes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from services.ledger import HandClock
from support.ledger_faults import Fault, break_at
from support.stubs import OpenGate, workplace
from triage.domain.errors import ConfigError, LeaseLost, LedgerError, LoginRefused, MailboxBusy, MailboxLost
from triage.domain.record import Run, RunState, Trigger
from triage.ledger.ledger import SqlLedger, open_ledger
from triage.schedule.worker import LEASE, work


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def ledger(tmp_path: Path, clock: HandClock) -> Iterator[SqlLedger]:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", clock)
    yield ledger
    ledger.close()


def queue(ledger: SqlLedger, clock: HandClock, account: str = "team") -> Run:
    clock.advance(timedelta(seconds=1))
    run = ledger.enqueue(account, Trigger.MANUAL, clock.now())
    assert run is not None
    return run


@pytest.mark.parametrize(
    ("error", "reason", "told"),
    [
        (ConfigError("the account is gone"), "configuration", []),
        (LoginRefused("no"), "login_refused", ["refused"]),
        (MailboxBusy("later"), "busy", ["busy"]),
        (MailboxLost("BYE"), "unreachable", []),
        (LeaseLost("taken"), "cut", []),
        (LedgerError("gone"), "ledger", []),
        (KeyError("a bug"), "error", []),
        (RecursionError(), "error", []),
    ],
)
def test_a_run_that_fails_is_recorded_with_its_reason_and_the_next_one_comes(
    ledger: SqlLedger, clock: HandClock, error: Exception, reason: str, told: list[str]
) -> None:
    def desk(run: Run) -> None:
        raise error

    queue(ledger, clock)
    place = workplace(ledger, clock, desk)
    run = work(place)
    assert run is not None
    assert (run.state, run.reason) == (RunState.FAILED, reason)
    assert isinstance(place.gate, OpenGate)
    assert place.gate.told == told
    queue(ledger, clock)
    assert work(place) is not None


def test_a_bug_in_a_run_is_told_by_its_type_and_never_by_its_text(ledger: SqlLedger, clock: HandClock) -> None:
    """The text of a library's exception may quote the mail it choked on."""

    def desk(run: Run) -> None:
        raise KeyError("dear Anna, ...")

    queue(ledger, clock)
    run = work(workplace(ledger, clock, desk))
    assert run is not None
    assert run.error == "KeyError in the run; the log has the traceback"


def test_a_thread_that_is_torn_out_of_a_run_leaves_it_to_its_lease(ledger: SqlLedger, clock: HandClock) -> None:
    def desk(run: Run) -> None:
        raise SystemExit

    queued = queue(ledger, clock)
    with pytest.raises(SystemExit):
        work(workplace(ledger, clock, desk))
    queue(ledger, clock)
    assert work(workplace(ledger, clock, lambda run: None)) is None, "the account is still taken"
    clock.advance(LEASE)
    assert [run.id for run in ledger.expire()] == [queued.id]
    assert work(workplace(ledger, clock, lambda run: None)) is not None


def test_a_run_that_was_cut_meanwhile_stays_cut(ledger: SqlLedger, clock: HandClock) -> None:
    def desk(run: Run) -> None:
        clock.advance(2 * LEASE)

    queue(ledger, clock)
    run = work(workplace(ledger, clock, desk))
    assert run is not None
    assert (run.state, run.reason) == (RunState.FAILED, "cut")


@pytest.mark.parametrize("what", ["locked", "full"])
def test_a_ledger_that_refuses_for_a_moment_is_asked_again_to_close_the_run(
    ledger: SqlLedger, clock: HandClock, what: str
) -> None:
    queue(ledger, clock)
    struck: list[list[int]] = []
    run = work(workplace(ledger, clock, lambda run: struck.append(break_at(ledger, Fault(what, 1)))))
    assert struck == [[1]]
    assert run is not None
    assert run.reason == "desk_closed"


def test_a_ledger_that_refuses_for_good_is_an_error_of_the_worker(ledger: SqlLedger, clock: HandClock) -> None:
    queue(ledger, clock)
    with pytest.raises(LedgerError):
        work(workplace(ledger, clock, lambda run: break_at(ledger, Fault("full", 1, lasting=True))))


def test_nothing_is_claimed_once_told_to_stop(ledger: SqlLedger, clock: HandClock) -> None:
    queued = queue(ledger, clock)
    place = workplace(ledger, clock, lambda run: None)
    place.stop.set()
    assert work(place) is None
    run = ledger.run(queued.id)
    assert run is not None
    assert run.state is RunState.QUEUED


def test_only_runs_of_the_accounts_named_are_taken(ledger: SqlLedger, clock: HandClock) -> None:
    queue(ledger, clock, "theirs")
    assert work(workplace(ledger, clock, lambda run: None), ["ours"]) is None
