"""What the tests of the embedded classifier share: a still clock, the eight anchors as options, mails."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

from triage.decide.embedded.provider import EmbeddedProvider
from triage.decide.embedded.weights import ANCHORS
from triage.domain.category import NONE_ID
from triage.domain.decision import Option, Question
from triage.domain.mail import PreparedMail, Signals

ARCHIVING = frozenset({"notification", "receipt", "newsletter", "promotion", "spam"})


class StillClock:
    """Time that stands still."""

    def now(self) -> datetime:
        return datetime(2026, 1, 5, 9, 0, tzinfo=UTC)

    def monotonic(self) -> float:
        return 100.0

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        return event.is_set()


def question(*ids: str, likes: dict[str, str] | None = None) -> Question:
    return Question("Which?", tuple(Option(i, "", like=(likes or {}).get(i)) for i in ids))


EIGHT = question(*ANCHORS, NONE_ID)


def provider() -> EmbeddedProvider:
    return EmbeddedProvider(clock=StillClock())


ORDER = PreparedMail(
    sender="Alborada Shop <orders@alborada.example>",
    recipient="office@corvid.example",
    subject="Your order 20931 has shipped",
    body="Thank you for your order. 1 x coffee pot. Total paid 24.90 EUR with card ending 0042. Track your parcel.",
    signals=Signals(
        headers={"auto-submitted": "auto-generated"}, has_html=True, html_chars=2400, links=3, link_hosts=1
    ),
)
LETTER = PreparedMail(
    sender="The Fen Almanac <letter@fenalmanac.example>",
    recipient="office@corvid.example",
    subject="The Fen Almanac, issue 14: frost and eels",
    body="In this issue we walk the old railway line, and read three books. Read the full story. See you next week.\n\n"
    "You are receiving this because you subscribed. Unsubscribe",
    signals=Signals(
        headers={"list-unsubscribe": "<https://fenalmanac.example/u>", "list-id": "<letter.fenalmanac.example>"},
        has_html=True, html_chars=5000, links=9, link_hosts=2,
    ),
)  # fmt: skip
QUESTION_MAIL = PreparedMail(
    sender="Lena Fischbach <lena.fischbach@rowan.example>",
    recipient="office@corvid.example",
    subject="Demurrage invoice",
    body="Hi Sam,\n\ncould you check the attached and tell me by Friday whether we pay or dispute it? "
    "I need your answer before the call.\n\nThanks\nLena",
)
