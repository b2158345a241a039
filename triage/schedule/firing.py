"""From the timetable to the queue: a fire is an insert, and the database lets each in once."""

from __future__ import annotations

from datetime import timedelta

from triage.domain.record import Run, Trigger
from triage.ports import Ledger
from triage.schedule.timetable import Fire


def put_fire(ledger: Ledger, fire: Fire) -> Run | None:
    """Put a scheduled fire into the queue; None if another server was first.

    A wall clock that was set back makes the same fire times come round again, and they would be refused as long as
    the clock repeats itself. A ledger that knows fires later than this one shows that: such a fire gets a fire time
    one microsecond later, so that the service does not stand still.
    """
    latest = ledger.last_fire(fire.account)
    if latest == fire.fire_time:  # of many servers nearly all come second: for them one look is all a fire costs
        return None
    options = {"missed": str(fire.missed), "missed_since": fire.missed_since.isoformat()} if fire.missed_since else {}
    run = ledger.enqueue(fire.account, Trigger.SCHEDULE, fire.fire_time, options)
    if run is not None:
        return run
    if latest is not None and latest > fire.fire_time + timedelta(minutes=1):
        return ledger.enqueue(fire.account, Trigger.SCHEDULE, fire.fire_time + timedelta(microseconds=1), options)
    return None
