"""Sums over a long period, a day at a time: what lies back further than yesterday is counted once, and kept.

What a daemon counted outlives it: the next one shows those sums at once, and counts anew when a page is next renewed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Protocol

from triage.domain.errors import LedgerError
from triage.ports import Clock
from triage.web.sums import Sums, merged, of_plain, to_plain

KEEP_S = 6 * 3600.0
"""A day gone by hardly changes: a message archived late, one forgotten."""
MOST_DAYS = 20_000
DAY = timedelta(days=1)


class Shelf(Protocol):
    """Where the sums of a day gone by are put; see `triage.ledger.web_queries`."""

    def sums_of_day(self, account: str, day: date) -> Mapping[str, Any] | None: ...
    def keep_sums_of_day(self, account: str, day: date, sums: Mapping[str, Any]) -> None: ...


Count = Callable[[str, datetime, datetime], Sums]


@dataclass(frozen=True, slots=True)
class Period:
    """A span of time, all of it and by day (UTC)."""

    total: Sums
    by_day: Mapping[date, Sums]


class DailySums:
    """Adds up what `count` finds from an instant up to before another. Safe from any number of threads."""

    def __init__(self, clock: Clock, count: Count, shelf: Callable[[], Shelf]) -> None:
        self._clock, self._count, self._shelf = clock, count, shelf
        self._kept: OrderedDict[tuple[str, date], tuple[Sums, float]] = OrderedDict()
        self._lock = threading.Lock()

    def period(self, account: str, since: datetime, until: datetime) -> Period:
        """`since` <= decided < `until`, both in UTC. Raises LedgerError."""
        settled = until.date() - DAY
        by_day = {
            day: self._whole(account, day) if begin == _midnight(day) and day < settled
            else self._count(account, begin, end)
            for day, begin, end in _pieces(since, until)
        }  # fmt: skip
        return Period(merged(by_day.values()), by_day)

    def _whole(self, account: str, day: date) -> Sums:
        key, now = (account, day), self._clock.monotonic()
        with self._lock:
            found = self._kept.get(key)
            if found is not None and now < found[1]:
                self._kept.move_to_end(key)
                return found[0]
        before = found[0] if found else self._shelved(account, day)
        if found is None and before is not None:
            sums, until = before, now  # of the daemon before this one: good enough to begin with
        else:
            sums, until = self._count(account, _midnight(day), _midnight(day + DAY)), now + KEEP_S
            if sums != before:
                with suppress(LedgerError):  # they will be counted again, and that is all
                    self._shelf().keep_sums_of_day(account, day, to_plain(sums))
        with self._lock:
            self._kept[key] = (sums, until)
            self._kept.move_to_end(key)
            while len(self._kept) > MOST_DAYS:
                self._kept.popitem(last=False)
        return sums

    def _shelved(self, account: str, day: date) -> Sums | None:
        kept = self._shelf().sums_of_day(account, day)
        return None if kept is None else of_plain(kept)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, tzinfo=UTC)


def _pieces(since: datetime, until: datetime) -> Iterator[tuple[date, datetime, datetime]]:
    """The days of a span, the first and the last perhaps in part."""
    begin = since
    while begin < until:
        end = min(until, _midnight(begin.date() + DAY))
        yield begin.date(), begin, end
        begin = end
