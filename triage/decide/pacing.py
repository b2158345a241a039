"""How hard one server may be asked, over all threads: pauses it asks for, and sparing it while it struggles."""

from __future__ import annotations

import random
import threading

from triage.decide.retry import backoff_s
from triage.ports import Clock

STRUGGLING = 5
"""After so many failed requests in a row a server is not retried any more, only asked: an outage costs few calls."""


class Pacing:
    """Thread-safe: twenty askers are one client to the server. A pause over `longest_s` seconds is not waited for."""

    def __init__(self, clock: Clock, rng: random.Random, longest_s: float) -> None:
        self._clock = clock
        self._rng = rng
        self._longest_s = longest_s
        self._lock = threading.Lock()
        self._failed_in_a_row = 0
        self._not_before = 0.0

    @property
    def struggling(self) -> bool:
        return self._failed_in_a_row >= STRUGGLING

    def up(self) -> None:
        """The server gave an answer of some kind."""
        with self._lock:
            self._failed_in_a_row = 0

    def failed(self, asked_s: float | None) -> None:
        """A try failed for a passing reason. A server that says when to come back is not struggling but pacing us."""
        with self._lock:
            self._failed_in_a_row = self._failed_in_a_row + 1 if asked_s is None else 0
            if asked_s is not None and asked_s <= self._longest_s:
                self._not_before = max(self._not_before, self._clock.monotonic() + asked_s)

    def pause_s(self, attempt: int, asked_s: float | None) -> float | None:
        """Seconds until the next try after `attempt` failed; None if the server asks for more than is waited for."""
        if asked_s is None:
            return backoff_s(attempt, self._rng.random())
        return asked_s + self._jitter() if asked_s <= self._longest_s else None

    def hold_s(self) -> float:
        """Seconds for which nobody may ask, because the server has told one of us; 0 if there is no such pause."""
        left = self._not_before - self._clock.monotonic()
        return left + self._jitter() if left > 0 else 0.0

    def _jitter(self) -> float:
        return 0.1 * self._rng.random()
