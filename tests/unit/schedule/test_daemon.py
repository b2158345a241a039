"""The daemon's ticks: what the ledger could not take stays due, what was switched off does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from threading import Event
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import structlog

from services.ledger import START, HandClock
from support.ledger_faults import Fault, break_at
from triage.domain.record import RunState, Trigger
from triage.ledger.ledger import SqlLedger, open_ledger
from triage.schedule.cron import Cron
from triage.schedule.daemon import Daemon

HOURLY = Cron("0 * * * *", ZoneInfo("UTC"))
HOUR = timedelta(hours=1)


class Desks:
    """An office whose schedule a test sets; its ticks make no runs."""

    def __init__(self, *accounts: str) -> None:
        self.times: Mapping[str, Cron] = dict.fromkeys(accounts, HOURLY)

    @property
    def accounts(self) -> Sequence[str]:
        return list(self.times)

    def workplace(self) -> Any:
        raise AssertionError("no worker was started")

    def keep_house(self, now: Any) -> None:
        pass


@pytest.fixture
def clock() -> HandClock:
    return HandClock(START + timedelta(minutes=30))


@pytest.fixture
def ledger(tmp_path: Path, clock: HandClock) -> Iterator[SqlLedger]:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", clock)
    yield ledger
    ledger.close()


def daemon_of(desks: Desks, ledger: SqlLedger, clock: HandClock) -> Daemon:
    daemon = Daemon(lambda: desks, ledger, clock, Event(), structlog.get_logger())
    daemon.reload()
    return daemon


def waiting(ledger: SqlLedger) -> dict[str, Any]:
    return {run.account: run for run in ledger.runs(limit=100) if run.state is RunState.QUEUED}


def test_every_account_that_is_due_fires_at_one_tick(ledger: SqlLedger, clock: HandClock) -> None:
    daemon = daemon_of(Desks("sales", "support"), ledger, clock)
    daemon.tick()
    assert ledger.depth() == 0
    clock.advance(HOUR)
    daemon.tick()
    daemon.tick()
    assert {(run.account, run.trigger, run.fire_time) for run in ledger.runs()} == {
        (account, Trigger.SCHEDULE, START + HOUR) for account in ("sales", "support")
    }


@pytest.mark.parametrize("what", ["locked", "full"])
def test_a_fire_that_the_ledger_cannot_take_stays_due(ledger: SqlLedger, clock: HandClock, what: str) -> None:
    daemon = daemon_of(Desks("sales", "support"), ledger, clock)
    struck = break_at(ledger, Fault(what, 1))
    clock.advance(HOUR)
    daemon.tick()
    assert struck
    assert ledger.depth() == 0
    clock.advance(timedelta(seconds=1))
    daemon.tick()
    assert {name: run.fire_time for name, run in waiting(ledger).items()} == dict.fromkeys(
        ("sales", "support"), START + HOUR
    )


def test_a_later_fire_tells_of_the_one_that_the_ledger_never_took(ledger: SqlLedger, clock: HandClock) -> None:
    daemon = daemon_of(Desks("support"), ledger, clock)
    break_at(ledger, Fault("locked", 1))
    clock.advance(HOUR)
    daemon.tick()
    clock.advance(HOUR)
    daemon.tick()
    run = waiting(ledger)["support"]
    assert run.fire_time == START + 2 * HOUR
    assert run.options == {"missed": "1", "missed_since": (START + HOUR).isoformat()}


def test_an_account_that_is_switched_off_is_no_longer_due(ledger: SqlLedger, clock: HandClock) -> None:
    desks = Desks("sales", "support")
    daemon = daemon_of(desks, ledger, clock)
    break_at(ledger, Fault("locked", 1))
    clock.advance(HOUR)
    daemon.tick()
    desks.times = {"support": HOURLY}
    daemon.reload()
    daemon.tick()
    assert set(waiting(ledger)) == {"support"}
