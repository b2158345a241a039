"""Answers that take long to find, kept for a while: one search at a time each, and nobody waits for a fresher one.

A page takes what is there and has it renewed behind its back once it is old; only the very first has to wait.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar, cast

from triage.ports import Clock

T = TypeVar("T")
PATIENCE_S = 0.4
"""How long somebody waits for a first answer: a page that says "not yet" is better than one that does not come."""


class TooSlow(TimeoutError):
    """The search has not ended yet; it goes on, and a later question will find its answer."""


@dataclass(frozen=True, slots=True)
class Seen(Generic[T]):
    """An answer and when it was found."""

    value: T
    at: datetime


class _Entry:
    """One question: its last answer or error, and whether somebody is searching."""

    def __init__(self) -> None:
        self.seen: Seen[object] | None = None
        self.error: Exception | None = None
        self.fresh_until = float("-inf")
        self.searching = False

    @property
    def answered(self) -> bool:
        return self.seen is not None or self.error is not None


class Kept:
    """Answers by key, the least recently asked for given up first. Safe from any number of threads.

    A search is repeated after `rest` times its own length at the soonest: with 20 at most a twentieth of the time goes
    to it. `at_once` bounds the searches under way.
    """

    def __init__(self, clock: Clock, *, rest: float = 20.0, most: int = 256, at_once: int = 2) -> None:
        self._clock, self._rest, self._most = clock, rest, most
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._changed = threading.Condition()
        self._searches = threading.Semaphore(at_once)

    def look(self, key: Hashable, find: Callable[[], T], fresh_s: float, *, patience_s: float = PATIENCE_S) -> Seen[T]:
        """The answer, renewed in the background if it is older than `fresh_s` seconds. Raises what `find` raised last,
        TooSlow when there is no answer yet after `patience_s`."""
        with self._changed:
            entry = self._entry(key, find, fresh_s)
            if not self._changed.wait_for(lambda: entry.answered, patience_s):
                raise TooSlow
            return _told(entry)

    def look_anew(self, key: Hashable, find: Callable[[], T], fresh_s: float, *, patience_s: float) -> Seen[T]:
        """As `look`, but never an answer older than `fresh_s`: the caller waits for a new one."""
        with self._changed:
            entry = self._entry(key, find, fresh_s)
            if not self._changed.wait_for(lambda: not entry.searching, patience_s):
                raise TooSlow
            return _told(entry)

    def _entry(self, key: Hashable, find: Callable[[], object], fresh_s: float) -> _Entry:
        entry = self._entries.setdefault(key, _Entry())
        self._entries.move_to_end(key)
        if not entry.searching and self._clock.monotonic() >= entry.fresh_until:
            entry.searching = True
            threading.Thread(target=self._search, args=(entry, find, fresh_s), name="web-search", daemon=True).start()
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)
        return entry

    def _search(self, entry: _Entry, find: Callable[[], object], fresh_s: float) -> None:
        seen: Seen[object] | None = None
        error: Exception | None = None
        with self._searches:
            started = self._clock.monotonic()
            try:
                seen = Seen(find(), self._clock.now())
            except Exception as met:  # noqa: BLE001 - handed to whoever asks
                error = met
            ended = self._clock.monotonic()
        with self._changed:
            entry.seen, entry.error, entry.searching = seen, error, False
            entry.fresh_until = ended + max(fresh_s, self._rest * (ended - started))
            self._changed.notify_all()


def _told(entry: _Entry) -> Seen[T]:
    if entry.error is not None:
        raise entry.error.with_traceback(None)
    assert entry.seen is not None
    return cast("Seen[T]", entry.seen)
