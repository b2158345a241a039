"""A fire is an insert: once, whoever fires, and never swallowed by a clock that repeats itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from services.ledger import START, HandClock
from triage.domain.record import Fire, Run, RunState, Trigger
from triage.ledger.ledger import SqlLedger, open_ledger
from triage.schedule.firing import put_fires

STEP = timedelta(minutes=10)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqlLedger]:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db", HandClock())
    yield ledger
    ledger.close()


def put_fire(ledger: SqlLedger, fire: Fire) -> Run | None:
    let_in = put_fires(ledger, [fire])
    return ledger.run(let_in[fire.account]) if let_in else None


def test_of_two_servers_one_fires(ledger: SqlLedger) -> None:
    assert put_fire(ledger, Fire("team", START)) is not None
    assert put_fire(ledger, Fire("team", START)) is None
    assert ledger.depth("team") == 1


def test_fires_that_wait_become_one(ledger: SqlLedger) -> None:
    first, second = put_fire(ledger, Fire("team", START)), put_fire(ledger, Fire("team", START + STEP))
    assert first is not None
    assert second is not None
    coalesced = ledger.run(first.id)
    assert coalesced is not None
    assert (coalesced.state, coalesced.reason) == (RunState.COALESCED, f"into {second.id}")
    assert ledger.depth("team") == 1


def test_a_clock_that_was_set_back_fires_again_at_the_same_times(ledger: SqlLedger) -> None:
    for n in range(6):
        put_fire(ledger, Fire("team", START + n * STEP))
    again = put_fire(ledger, Fire("team", START + STEP))
    assert again is not None
    assert again.fire_time == START + STEP + timedelta(microseconds=1)
    assert put_fire(ledger, Fire("team", START + STEP)) is None, "but only once"


def test_a_manual_run_is_no_sign_of_a_clock_that_was_set_back(ledger: SqlLedger) -> None:
    put_fire(ledger, Fire("team", START))
    ledger.enqueue("team", Trigger.MANUAL, START + timedelta(hours=3))
    assert put_fire(ledger, Fire("team", START)) is None
