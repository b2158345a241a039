"""What a decision costs: a dated price table, token estimates, and a guard on the day's spending."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from functools import lru_cache

CHARS_PER_TOKEN = 4
"""For estimates where a server does not count; within a third for European languages, low for CJK."""


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens."""

    input_usd: float
    output_usd: float = 0.0

    def usd(self, input_tokens: int, output_tokens: int = 0) -> float:
        return (input_tokens * self.input_usd + output_tokens * self.output_usd) / 1_000_000


FREE = Price(0.0)


@dataclass(frozen=True, slots=True)
class PriceEntry:
    """A published price: `models` is a shell pattern over the bare model name, `provider` the wire it holds for
    ("*": every one), `seen` the day it was read."""

    provider: str
    models: str
    price: Price
    seen: date


PRICES = (
    PriceEntry("*", "jev-1.13*", Price(0.042), date(2026, 10, 1)),
    PriceEntry("*", "jev-latest", Price(0.042), date(2026, 10, 1)),
    PriceEntry("openai-decisions", "gpt-6-luna*", Price(0.10), date(2026, 10, 10)),
    PriceEntry("openai-chat", "gpt-6-luna*", Price(0.10, 0.50), date(2026, 10, 10)),
    PriceEntry("openai-chat", "gpt-4.1-nano*", Price(0.10, 0.40), date(2025, 4, 14)),
    PriceEntry("openai-chat", "gpt-4.1-mini*", Price(0.40, 1.60), date(2025, 4, 14)),
)
"""First match counts. A price the configuration gives always goes first."""


@lru_cache(maxsize=256)
def find_price(provider: str, model: str) -> Price | None:
    """The built-in price of a model, with or without a vendor prefix ("typesafe/jev-1.13"); None if unknown."""
    bare = model.rpartition("/")[2].lower()
    return next((e.price for e in PRICES if e.provider in ("*", provider) and fnmatchcase(bare, e.models)), None)


def estimate_tokens(text: str) -> int:
    """A rough count of a text's tokens, from its length."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)


class SpendGuard:
    """Stops asking when the day's spending reaches the cap; thread-safe.

    `spent_today` reads what the ledger has recorded since the day began, in USD, and is called only by `refresh`.
    What is asked between two refreshes is added as it comes in; asks under way are counted at the dearest price seen.
    """

    def __init__(self, spent_today: Callable[[], float], cap_usd: float | None) -> None:
        self.cap_usd = cap_usd
        self._spent_today = spent_today
        self._lock = threading.Lock()
        self._spent = 0.0
        self._dearest = 0.0
        self._under_way = 0

    def refresh(self) -> None:
        """Read the day's spending anew; at the beginning of a batch."""
        if self.cap_usd is not None:
            spent = self._spent_today()
            with self._lock:
                self._spent = spent

    def admit(self) -> bool:
        """May one more paid question be asked? Each admission is followed by one `settle`."""
        with self._lock:
            if self.cap_usd is not None and self._spent + self._under_way * self._dearest >= self.cap_usd:
                return False
            self._under_way += 1
            return True

    def settle(self, usd: float) -> None:
        """An admitted question has been answered, at this cost (0 if it failed)."""
        with self._lock:
            self._under_way -= 1
            self._spent += usd
            self._dearest = max(self._dearest, usd)

    @property
    def reason(self) -> str:
        return f"The day's spending has reached spend_cap_usd_per_day ({self.cap_usd or 0:.2f} USD)."
