"""From the timetable to the queue: a fire is an insert, and the database lets each in once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from triage.domain.record import Fire
from triage.ports import Ledger

STEPPED = timedelta(minutes=1)
"""A ledger that is ahead by more than this has seen a clock that was set back since."""


def put_fires(ledger: Ledger, fires: Sequence[Fire]) -> Mapping[str, str]:
    """Put scheduled fires into the queue, one an account; the run's id by account where no other server was first.

    A wall clock that was set back makes the same fire times come round again, and they would be refused as long as
    the clock repeats itself. A ledger that knows fires later than this one shows that: such a fire gets a fire time
    one microsecond later, so that the service does not stand still.
    """
    latest = ledger.last_fires([fire.account for fire in fires])
    # Of many servers nearly all come second: for them one look is all that fires cost.
    ours = [fire for fire in fires if latest.get(fire.account) != fire.fire_time]
    let_in = ledger.fire(ours)
    repeated = [
        replace(fire, fire_time=fire.fire_time + timedelta(microseconds=1))
        for fire in ours
        if fire.account not in let_in and latest.get(fire.account, fire.fire_time) > fire.fire_time + STEPPED
    ]
    return {**let_in, **ledger.fire(repeated)}
