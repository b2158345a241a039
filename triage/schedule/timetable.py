"""Which fires are due: a pure timetable over injected time, sound over sleep, clock steps and DST changes."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Protocol

from triage.domain.record import Fire

COUNTED = 50
"""Missed fires are counted up to this many; a machine that slept for a week need not list them all."""
STEP_BACK = timedelta(seconds=30)
"""A clock that goes back by more than this makes the timetable start anew from the time it now is."""


class FireTimes(Protocol):
    """When something fires. Equal ones are worked out once for all accounts that share them."""

    def next_after(self, instant: datetime) -> datetime | None:
        """The first fire after an aware instant, in UTC; None if there is none."""
        ...

    def __hash__(self) -> int: ...


class Timetable:
    """The next fire of every account. Not thread-safe: one thread asks."""

    def __init__(self) -> None:
        self._times: dict[str, FireTimes] = {}
        self._heap: list[tuple[datetime, str]] = []
        self._seen: datetime | None = None

    def set(
        self, times: Mapping[str, FireTimes], now: datetime, last_fires: Mapping[str, datetime] | None = None
    ) -> None:
        """Take these accounts; one whose fire times did not change keeps its next fire.

        `last_fires` says when accounts fired last, before this process began: what they missed since then is due.
        """
        kept = {account: when for when, account in self._heap if self._times[account] == times.get(account)}
        self._times = dict(times)
        self._heap = []
        following = _following()
        for account, fires in self._times.items():
            since = min((last_fires or {}).get(account, now), now)
            self._push(account, kept.get(account) or following(fires, since))
        self._seen = now

    def due(self, now: datetime) -> list[Fire]:
        """The fires whose time has come, at most one an account: the latest, with a count of those it stands for."""
        following = _following()
        if self._seen is not None and now < self._seen - STEP_BACK:
            self._heap = []
            for account, times in self._times.items():
                self._push(account, following(times, now))
        self._seen = now
        latest = cache(lambda times, first: _latest(times, first, now))
        fires = []
        while self._heap and self._heap[0][0] <= now:
            first, account = heapq.heappop(self._heap)
            times = self._times[account]
            fire_time, missed = latest(times, first)
            fires.append(Fire(account, fire_time, missed, first if missed else None))
            self._push(account, following(times, fire_time))
        return fires

    def next_at(self) -> datetime | None:
        """When the next fire is due, None without any."""
        return self._heap[0][0] if self._heap else None

    def _push(self, account: str, when: datetime | None) -> None:
        if when is not None:
            heapq.heappush(self._heap, (when, account))


def _following() -> Callable[[FireTimes, datetime], datetime | None]:
    """`next_after` for one pass over many accounts, most of which share their fire times."""
    return cache(lambda times, instant: times.next_after(instant))


def _latest(times: FireTimes, first: datetime, now: datetime) -> tuple[datetime, int]:
    """The last fire up to `now` and how many came before it from `first` on, counted up to COUNTED."""
    latest, missed = first, 0
    while (following := times.next_after(latest)) is not None and following <= now:
        if missed == COUNTED:
            return last_fire(times, now, after=latest) or latest, missed
        latest, missed = following, missed + 1
    return latest, missed


def last_fire(times: FireTimes, now: datetime, after: datetime) -> datetime | None:
    """The last fire up to `now` that is later than `after`, found without walking all between: look back in doubling
    spans. None if there is none."""
    span = timedelta(minutes=1)
    while True:
        start = max(now - span, after)
        fire = times.next_after(start)
        if fire is not None and fire <= now:
            while (following := times.next_after(fire)) is not None and following <= now:
                fire = following
            return fire
        if start == after:
            return None
        span *= 2
