"""One connection for all runs of a process that wait on an account, and a second one that listens for news.

Servers refuse a user's eleventh connection or so; fifty runs that wait must not open fifty. News is a hint: it makes a
sleeper look early, and its absence means nothing. So whoever listens gives way where connections are short.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from triage.agent.login import LoginGuard
from triage.agent.ports import MailReader
from triage.domain.errors import LoginRefused, MailboxBusy, MailboxError, MailboxLost
from triage.ports import Clock

T = TypeVar("T")
_LISTEN_S = 20.0
_RETRY_S = 5.0
_CROWDED_S = 60.0
"""So long nobody listens here after the server was short of connections."""


class SharedMailbox:
    """The readers of one account. Thread-safe. Connections are made when needed, and closed when nobody waits."""

    def __init__(self, guard: LoginGuard, clock: Clock, *, listens: bool) -> None:
        self._guard = guard
        self._clock = clock
        self._listens = listens
        self._lock = threading.Lock()
        self._door = threading.Lock()
        self._reader: MailReader | None = None
        self._users = 0
        self._bells: dict[threading.Event, str] = {}
        self._listener: threading.Thread | None = None
        self._quiet = threading.Event()
        self._crowded_until = float("-inf")

    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """Keep the connection for as long as this lasts."""
        with self._door:
            self._users += 1
        try:
            yield
        finally:
            with self._door:
                self._users -= 1
                last = self._users == 0
            if last:
                self.close()

    def call(self, work: Callable[[MailReader], T], seconds: float) -> T:
        """Read something within so many seconds. Raises what the reader raises; a refused login is tried once only."""
        deadline = self._clock.monotonic() + seconds
        if not self._lock.acquire(timeout=max(0.0, seconds)):
            raise MailboxLost("the connection is in use by other runs")
        try:
            for fresh in (False, True):
                had_one = self._reader is not None
                left = deadline - self._clock.monotonic()
                if left <= 0:
                    raise MailboxLost("no time is left for a look")
                try:
                    return work(self._opened(left))
                except MailboxLost:
                    self._drop()
                    if fresh or not had_one:
                        raise  # a connection that was just made; an older one may merely have gone stale
                except MailboxError as error:
                    self._drop()
                    if isinstance(error, MailboxBusy):
                        self._give_way()
                    raise
            raise AssertionError("unreachable")
        finally:
            self._lock.release()

    @contextlib.contextmanager
    def bell(self, folder: str, bell: threading.Event) -> Iterator[None]:
        """Have `bell` set when there is news in the folder, for as long as this lasts."""
        if not self._listens:
            yield
            return
        with self._door:
            self._bells[bell] = folder
            crowded = self._clock.monotonic() < self._crowded_until
            if not crowded and (self._listener is None or self._quiet.is_set()):
                self._quiet = threading.Event()
                self._listener = threading.Thread(
                    target=self._listen, args=(folder, self._quiet), daemon=True, name="mail-news"
                )
                self._listener.start()
        try:
            yield
        finally:
            with self._door:
                self._bells.pop(bell, None)
                if not self._bells:
                    self._quiet.set()

    def close(self) -> None:
        """Close both connections, unless somebody has joined meanwhile."""
        with self._door:
            if self._users:
                return
            self._quiet.set()
            listener, self._listener = self._listener, None
        if listener is not None:
            listener.join(timeout=5)
        with self._lock:
            self._drop()

    # ------------------------------------------------------------

    def _opened(self, seconds: float) -> MailReader:
        if self._reader is None:
            self._reader = self._guard.reader()
        self._reader.allow(seconds)
        self._guard.log_in(self._reader)
        return self._reader

    def _drop(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _listen(self, folder: str, quiet: threading.Event) -> None:
        """Listen in the folder of whoever waited first. What goes wrong here costs nobody anything but the hint."""
        me, reader = threading.current_thread(), self._guard.reader()
        try:
            while not quiet.is_set():
                try:
                    self._guard.log_in(reader)
                    if reader.idle(folder, _LISTEN_S, quiet):
                        self._ring(folder)
                    elif not reader.can_idle:
                        return
                except LoginRefused:
                    return
                except MailboxBusy:
                    self._give_way()
                except MailboxError:
                    reader.close()
                    quiet.wait(_RETRY_S)
        finally:
            reader.close()
            with self._door:
                if self._listener is me:
                    self._listener = None

    def _give_way(self) -> None:
        """Leave to those who look what connections there are."""
        with self._door:
            self._crowded_until = self._clock.monotonic() + _CROWDED_S
            self._quiet.set()

    def _ring(self, folder: str) -> None:
        with self._door:
            for bell, listened in self._bells.items():
                if listened == folder:
                    bell.set()
