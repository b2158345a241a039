"""The system's clock behind the Clock port."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime


class SystemClock:
    """Wall time and monotonic time of this machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        return event.wait(max(0.0, timeout_s))
