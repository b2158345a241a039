"""Which inbox messages bear no label yet: a bounded answer on a mailbox of any size.

Where the server can answer in part (CONTEXT=SEARCH, RFC 5267, or PARTIAL, RFC 9394), one search gives the oldest few
hundred. Elsewhere the mailbox is searched in windows of sequence numbers, several in one round trip, each answer at
most a window long. A server that knows no keywords in SEARCH has its flags read instead.

The day: IMAP compares INTERNALDATE by day, in the time zone of the server. The search therefore takes in a day more on
either side, and INTERNALDATE itself, in UTC, decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import islice

from triage.domain.errors import CommandRefused
from triage.mailbox import sets
from triage.mailbox.answers import Reply, refusal
from triage.mailbox.fetched import Fetched
from triage.mailbox.heads import answered, fetch_commands, flag_items
from triage.mailbox.searching import hits_of, lowest_command, lowest_of, partial_command, search_command
from triage.mailbox.session import Session
from triage.mailbox.stores import Store, borne, missing_label_keys

_PAGE = 500
"""Messages of one partial answer, and of one FETCH of dates or flags."""

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_IN_FLIGHT = 16


@dataclass
class Memory:
    """What never changes about a mailbox, remembered beyond a session; it saves time and changes no result.

    By UIDVALIDITY and `since` day: `too_old`, UIDs whose INTERNALDATE lies before the day; `first`, the lowest UID the
    server's own comparison lets through (None: not looked up yet).
    """

    too_old: set[tuple[int, date, int]] = field(default_factory=set)
    first: dict[tuple[int, date], int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for. `before` is exclusive; days are days of UTC."""

    labels: tuple[str, ...]
    since: date | None = None
    before: date | None = None
    newest_first: bool = False

    @property
    def dated(self) -> bool:
        return self.since is not None or self.before is not None

    def admits(self, received: datetime | None) -> bool:
        """Does this INTERNALDATE lie in the days wanted? One that cannot be read is left to the server's search."""
        if received is None:
            return True
        day = received.astimezone(UTC).date()
        return (self.since is None or day >= self.since) and (self.before is None or day < self.before)


class Selector:
    """Looks for unlabelled messages in the inbox of one session."""

    def __init__(self, session: Session, store: Store, window: int, memory: Memory) -> None:
        self._session = session
        self._store = store
        self._window = window
        self._memory = memory

    def select(self, wanted: Wanted, limit: int) -> list[Fetched]:
        """At most `limit` messages, oldest first or newest first; `received` is filled in where days were asked for."""
        return list(islice(self._matching(wanted), max(0, limit)))

    def _matching(self, wanted: Wanted) -> Iterator[Fetched]:
        keys = missing_label_keys(self._store, wanted.labels)
        if self._session.searches_keywords or not keys:
            for hits in self._candidates(wanted, keys):
                yield from self._in_days(wanted, hits)
            if self._session.searches_keywords or not keys:
                return
        for hits in self._candidates(wanted, []):
            yield from self._without_labels(wanted, hits)

    # ------------------------------------------------------------ the search

    def _candidates(self, wanted: Wanted, keys: Sequence[str]) -> Iterator[list[int]]:
        """UIDs in the order wanted, some at a time. Ends early if the server refuses keywords in SEARCH."""
        self._session.use_inbox()
        queries = _queries(keys, [*self._first_uid(wanted), *_day_keys(wanted)])
        if self._session.searches_partially and len(queries) == 1 and not wanted.newest_first:
            yield from self._partial(queries[0])
            if self._session.searches_partially:
                return
        yield from self._windows(queries, wanted.newest_first)

    def _first_uid(self, wanted: Wanted) -> list[str]:
        """Leave out the UIDs below the first that `since` lets through: comparing the dates of 100,000 messages takes
        a server half a second. Looked up the second time the same day is asked for; who asks once is not held up."""
        at = self._session.selected
        if (
            wanted.since is None
            or at is None
            or at.exists <= self._window
            or "ESEARCH" not in self._session.capabilities
        ):
            return []
        key = (at.uidvalidity, wanted.since)
        if key not in self._memory.first:
            self._memory.first[key] = None
        elif self._memory.first[key] is None:
            days = " ".join(_day_keys(Wanted((), wanted.since)))
            self._memory.first[key] = lowest_of(self._session.run(lowest_command(days))[0]) or None
        first = self._memory.first[key]
        return [f"UID {first}:*"] if first else []

    def _partial(self, query: str) -> Iterator[list[int]]:
        start = 1
        while True:
            reply = self._session.on_inbox(partial_command(start, start + _PAGE - 1, query))[0]
            if not reply.ok:
                if start > 1:
                    raise refusal(reply, "SEARCH")
                self._session.searches_partially = False  # announced, but not for this; the windows do it
                return
            hits = hits_of(reply)
            yield sorted(hits)
            if len(hits) < _PAGE:
                return
            start += _PAGE

    def _windows(self, queries: Sequence[str], newest_first: bool) -> Iterator[list[int]]:
        assert self._session.selected is not None
        windows = list(_windows(self._session.selected.exists, self._window))
        if newest_first:
            windows.reverse()
        at, together = 0, 1
        while at < len(windows):
            batch = windows[at : at + together]
            searches = [f"{window} {query}" for window in batch for query in queries]
            replies = self._search(searches, told_apart=len(queries) > 1)
            if not self._accepted(replies):
                return
            for n in range(len(batch)):
                hits = set.intersection(*(set(hits_of(r)) for r in replies[n * len(queries) : (n + 1) * len(queries)]))
                yield sorted(hits, reverse=newest_first)
            at += together
            together = min(together * 4, _IN_FLIGHT)

    def _search(self, searches: Sequence[str], *, told_apart: bool) -> list[Reply]:
        """All in one round trip, unless the answers must be told apart and do not name their commands (ESEARCH)."""
        commands = [search_command(self._session.capabilities, keys) for keys in searches]
        if not told_apart or "ESEARCH" in self._session.capabilities:
            return self._session.on_inbox(*commands)
        return [reply for command in commands for reply in self._session.on_inbox(command)]

    def _accepted(self, replies: Sequence[Reply]) -> bool:
        refused = next((r for r in replies if not r.ok), None)
        if refused is None:
            return True
        error = refusal(refused, "SEARCH")
        if isinstance(error, CommandRefused) and self._session.searches_keywords:
            self._session.searches_keywords = False
            return False
        raise error

    # ------------------------------------------------------------ the second look

    def _in_days(self, wanted: Wanted, hits: Iterable[int]) -> Iterator[Fetched]:
        if not wanted.dated:
            yield from (Fetched(uid) for uid in hits)
            return
        since, uidvalidity = wanted.since or date.min, self._session.inbox_uidvalidity
        fresh = [uid for uid in hits if (uidvalidity, since, uid) not in self._memory.too_old]
        for page in _pages(fresh):
            found = self._fetch(page, "UID INTERNALDATE")
            for uid in page:
                item = found.get(uid)
                if item is None:
                    continue
                if wanted.admits(item.received):
                    yield item
                elif item.received is not None and item.received.astimezone(UTC).date() < since:
                    self._memory.too_old.add((uidvalidity, since, uid))

    def _without_labels(self, wanted: Wanted, hits: Iterable[int]) -> Iterator[Fetched]:
        for page in _pages(list(hits)):
            found = self._fetch(page, f"{flag_items(self._session)} INTERNALDATE")
            for uid in page:
                item = found.get(uid)
                if item is None or item.flags is None:
                    continue
                if wanted.admits(item.received) and not borne(item.flags | item.labels, wanted.labels):
                    yield item

    def _fetch(self, uids: Sequence[int], items: str) -> dict[int, Fetched]:
        return answered(self._session.on_inbox(*fetch_commands(uids, items)), "FETCH")


def _windows(messages: int, size: int) -> Iterator[str]:
    """Sequence numbers in windows, oldest first; the last one is open, for what arrives meanwhile.

    An empty mailbox has no sequence numbers to name; it may have got its first messages since.
    """
    if not messages:
        yield "ALL"
    for first in range(1, messages + 1, size):
        last = first + size - 1
        yield f"{first}:{last}" if last < messages else f"{first}:*"


def _pages(uids: Sequence[int]) -> Iterator[Sequence[int]]:
    """First a few, as a batch rarely needs more, then many."""
    yield from (p for p in (uids[:50],) if p)
    for start in range(50, len(uids), _PAGE):
        yield uids[start : start + _PAGE]


def _queries(keys: Sequence[str], days: Sequence[str]) -> list[str]:
    """UNDELETED with all keys; where one line would be too long, several searches that a message must all match."""
    queries = [["UNDELETED", *days]]
    used = 0
    for key in keys:
        if used + len(key) + 1 > sets.ROOM - 200:
            queries.append(["UNDELETED", *days])
            used = 0
        queries[-1].append(key)
        used += len(key) + 1
    return [" ".join(query) for query in queries]


def _day_keys(wanted: Wanted) -> list[str]:
    keys = []
    if wanted.since is not None:
        keys.append(f"SINCE {_day(wanted.since, -1)}")
    if wanted.before is not None:
        keys.append(f"BEFORE {_day(wanted.before, +1)}")
    return keys


def _day(day: date, shift: int) -> str:
    """A date as SEARCH wants it, in English whatever the locale; the ends of the calendar stay where they are."""
    shifted = day + timedelta(days=shift) if date.min < day < date.max else day
    return f"{shifted.day}-{_MONTHS[shifted.month - 1]}-{shifted.year:04d}"
