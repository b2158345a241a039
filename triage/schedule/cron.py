"""The fire times of a cron line in a timezone, on APScheduler's trigger."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger


@dataclass(frozen=True, slots=True)
class Cron:
    """A checked five-field cron line (weekdays as names, see triage.config.cron) in a timezone."""

    expression: str
    timezone: ZoneInfo
    _trigger: CronTrigger = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        trigger = CronTrigger.from_crontab(self.expression, timezone=self.timezone)
        object.__setattr__(self, "_trigger", trigger)

    def next_after(self, instant: datetime) -> datetime | None:
        """The first fire after an aware instant, in UTC; None if there is none.

        As in Vixie cron, a job at a fixed hour runs once in the hour that a DST change repeats, one at every hour
        (or every n hours) runs in both; a time that a DST change skips is made up for an hour later.
        """
        runs_in_both = self.expression.split()[1].startswith("*")
        while True:
            # The trigger is never told its previous fire: with one it may answer the same instant again and again.
            fire: datetime | None = self._trigger.get_next_fire_time(None, instant + timedelta(microseconds=1))
            if fire is None:
                return None
            instant = fire.astimezone(UTC)
            if runs_in_both or not fire.fold:
                return instant
