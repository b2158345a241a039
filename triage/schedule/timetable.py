"""Which fires are due: a pure timetable over injected time, sound over sleep, clock steps and DST changes."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from triage.schedule.cron import Cron

COUNTED = 50
"""Missed fires are counted up to this many; a machine that slept for a week need not list them all."""
STEP_BACK = timedelta(seconds=30)
"""A clock that goes back by more than this makes the timetable start anew from the time it now is."""


@dataclass(frozen=True, slots=True)
class Fire:
    """One fire of an account: its time in UTC, and how many earlier ones were missed and fell into it."""

    account: str
    fire_time: datetime
    missed: int = 0
    missed_since: datetime | None = None


class Timetable:
    """The next fire of every account. Not thread-safe: one thread asks."""

    def __init__(self) -> None:
        self._crons: dict[str, Cron] = {}
        self._heap: list[tuple[datetime, str]] = []
        self._seen: datetime | None = None

    def set(self, crons: Mapping[str, Cron], now: datetime) -> None:
        """Take these accounts; one whose cron did not change keeps its next fire."""
        kept = {account: when for when, account in self._heap if self._crons[account] == crons.get(account)}
        self._crons = dict(crons)
        self._heap = []
        for account, cron in self._crons.items():
            self._push(account, kept.get(account) or cron.next_after(now))
        self._seen = now

    def due(self, now: datetime) -> list[Fire]:
        """The fires whose time has come, at most one an account: the latest, with a count of those it stands for."""
        if self._seen is not None and now < self._seen - STEP_BACK:
            self._heap = []
            for account, cron in self._crons.items():
                self._push(account, cron.next_after(now))
        self._seen = now
        fires = []
        while self._heap and self._heap[0][0] <= now:
            first, account = heapq.heappop(self._heap)
            latest, missed = _latest(self._crons[account], first, now)
            fires.append(Fire(account, latest, missed, first if missed else None))
            self._push(account, self._crons[account].next_after(latest))
        return fires

    def next_at(self) -> datetime | None:
        """When the next fire is due, None without any."""
        return self._heap[0][0] if self._heap else None

    def _push(self, account: str, when: datetime | None) -> None:
        if when is not None:
            heapq.heappush(self._heap, (when, account))


def _latest(cron: Cron, first: datetime, now: datetime) -> tuple[datetime, int]:
    """The last fire up to `now` and how many came before it from `first` on, counted up to COUNTED."""
    latest, missed = first, 0
    while (following := cron.next_after(latest)) is not None and following <= now:
        if missed == COUNTED:
            return _last_before(cron, latest, now), missed
        latest, missed = following, missed + 1
    return latest, missed


def _last_before(cron: Cron, known: datetime, now: datetime) -> datetime:
    """The last fire up to `now`, later than `known`, without walking all between: look back in doubling spans."""
    span = timedelta(minutes=1)
    while now - span > known:
        fire = cron.next_after(now - span)
        if fire is not None and fire <= now:
            while (following := cron.next_after(fire)) is not None and following <= now:
                fire = following
            return fire
        span *= 2
    return known
