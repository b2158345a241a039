"""What the tests of the provider chain share: a question, mails, a clock that is moved by hand, a breaker store."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from triage.decide.question import build_question
from triage.domain.category import Action, Category, CategorySet
from triage.domain.mail import PreparedMail

CATEGORIES = CategorySet(
    parent="Triage",
    fallback_id="unclassified",
    fallback_name="Unclassified",
    categories=(
        Category("action-required", "Action required", "Asks the recipient to do something."),
        Category("receipt", "Receipt", "Confirms a payment.", ("Your order has shipped.",), Action.ARCHIVE),
        Category("newsletter", "Newsletter", "Bulk mail to a list.", (), Action.ARCHIVE),
    ),
)
QUESTION = build_question(CATEGORIES, offer_none=True)
SURE = {"action-required": 0.02, "receipt": 0.95, "newsletter": 0.02, "none-of-these": 0.01}


def a_mail(n: int = 1, body: str = "The receipt for your order is attached.") -> PreparedMail:
    return PreparedMail(f"shop{n}@example.com", "team@example.com", f"Order {n}", body)


def mails(n: int) -> dict[int, PreparedMail]:
    return {uid: a_mail(uid) for uid in range(1, n + 1)}


def systemone(**answer: Any) -> dict[str, Any]:
    """A System One response; the keywords replace fields of the answer."""
    fields = {"type": "choice", "choice": "receipt", "confidence": 0.9, "probabilities": SURE}
    return {
        "model": "stub-1.0",
        "answers": {"category": {**fields, **answer}},
        "usage": {"input_tokens": 400, "output_tokens": 0},
    }


class HandClock:
    """A clock that stands still until somebody waits; it remembers how long each wait was."""

    def __init__(self, now: datetime = datetime(2026, 3, 3, 12, 0, tzinfo=UTC)) -> None:
        self.waits: list[float] = []
        self._now = now
        self._monotonic = 1000.0
        self._lock = threading.Lock()

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        if event.is_set():
            return True
        self.advance(timeout_s)
        self.waits.append(timeout_s)
        return False

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now += timedelta(seconds=seconds)
            self._monotonic += seconds


class Breakers:
    """A BreakerStore in memory."""

    def __init__(self) -> None:
        self.values: dict[str, Mapping[str, object]] = {}

    def load_breaker(self, key: str) -> Mapping[str, object] | None:
        return self.values.get(key)

    def save_breaker(self, key: str, value: Mapping[str, object]) -> None:
        self.values[key] = value
