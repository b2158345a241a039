"""A clock some time ahead of another."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

from triage.ports import Clock


class LaterClock:
    """`clock`, `ahead` later, in wall time and monotonic time alike."""

    def __init__(self, clock: Clock, ahead: timedelta) -> None:
        self._clock, self._ahead = clock, ahead

    def now(self) -> datetime:
        return self._clock.now() + self._ahead

    def monotonic(self) -> float:
        return self._clock.monotonic() + self._ahead.total_seconds()

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        return self._clock.wait(event, timeout_s)
