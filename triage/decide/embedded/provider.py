"""The embedded classifier as a provider: no key, no network, a few milliseconds of one core a mail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from triage.decide.embedded.affinity import Wording, affinity, read_mail, read_option
from triage.decide.embedded.anchors import anchor_of
from triage.decide.embedded.features import Features, extract
from triage.decide.embedded.learned import LearnedWeights
from triage.decide.embedded.pool import pool
from triage.decide.embedded.weights import ANCHORS, Weights, shipped
from triage.domain.category import HIJACK_ID, NONE_ID
from triage.domain.decision import Answer, Question
from triage.domain.mail import PreparedMail
from triage.ports import Clock

NAME = "embedded"
GENERATION = 1
HIJACK_SUSPICION = 0.15
_HIDDEN_WARNING = "hidden_text"
_PRESSING = ("newsletter", "promotion", "spam")
_BULK = ("newsletter", "promotion")
_BUILT_AS_BULK = (
    "#html", "#images", "#list-unsubscribe", "#list-id", "#feedback-id", "#precedence:bulk", "#precedence:list",
    "#auto-submitted", "#suppress", "#sender:no-reply",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class View:
    """All the classifier makes of one mail under one question; learning starts from the same view."""

    features: Features
    probabilities: Mapping[str, float]
    vetoes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Reading:
    anchors: Mapping[str, str | None]
    wordings: Mapping[str, Wording]


class EmbeddedProvider:
    """Answers from shipped weights and what was learned in this mailbox. Thread-safe, raises nothing."""

    name = NAME

    def __init__(self, *, learned: LearnedWeights | None = None, clock: Clock, weights: Weights | None = None) -> None:
        self._weights = weights or shipped()
        self._learned = learned
        self._clock = clock
        self._read = lru_cache(maxsize=32)(self._read_question)
        suffix = f"+learned-{learned.digest}" if learned else ""
        self.model = f"embedded-{GENERATION}.{self._weights.digest}{suffix}"

    def ask(self, question: Question, mail: PreparedMail, deadline: float) -> Answer:
        """The answer at once; `deadline` is not looked at, an answer takes milliseconds."""
        del deadline
        started = self._clock.monotonic()
        view = self.view(question, mail)
        probabilities = view.probabilities
        if self._learned:
            probabilities = self._learned.apply(view.features, probabilities)
        best = max(question.ids, key=lambda option: probabilities[option])
        return Answer(
            choice=best,
            probabilities=probabilities,
            provider=self.name,
            model=self.model,
            latency_ms=round((self._clock.monotonic() - started) * 1000),
            hijack_signs=len(view.features.finding.roles) if view.features.finding.suspicious else 0,
            vetoes=view.vetoes,
        )

    def view(self, question: Question, mail: PreparedMail) -> View:
        """What the shipped weights alone say of a mail."""
        reading = self._read(question)
        features = extract(mail, self._weights.finder)
        anchors = self._weights.probabilities(features.values)
        affinities: dict[str, float] = {}
        if reading.wordings:
            seen = read_mail(mail, self._weights.rarity)
            affinities = {option: affinity(wording, seen) for option, wording in reading.wordings.items()}
        return View(
            features=features,
            probabilities=pool(anchors, question.ids, reading.anchors, affinities),
            vetoes=vetoes_of(features, anchors, mail),
        )

    def close(self) -> None:
        """Nothing to close."""

    def _read_question(self, question: Question) -> _Reading:
        """What does not change from mail to mail: which option stands for which anchor, and what the others say."""
        anchors = {option.id: anchor_of(option) for option in question.options}
        taken = [anchor for anchor in anchors.values() if anchor]
        compared = [o for o in question.options if o.id != NONE_ID and _must_compare(anchors[o.id], taken)]
        return _Reading(anchors, {o.id: read_option(o, self._weights.rarity) for o in compared})


def _must_compare(anchor: str | None, taken: list[str]) -> bool:
    return anchor is None or taken.count(anchor) > 1


def vetoes_of(features: Features, anchor_probabilities: Sequence[float], mail: PreparedMail) -> tuple[str, ...]:
    """Why this mail must not leave the inbox whatever its category, as codes.

    A request for action counts only where it would hide a duty: a system's message or a receipt. Newsletters,
    promotions and spam press their readers all day. But a question in a mail that nothing shows to be bulk mail, no
    link and no header of a list, is somebody's question, whatever it sounds like.
    """
    best = ANCHORS[max(range(len(ANCHORS)), key=lambda n: anchor_probabilities[n])]
    vetoes = []
    if features.finding.suspicious:
        vetoes.append("injection_pattern")
    if anchor_probabilities[ANCHORS.index(HIJACK_ID)] >= HIJACK_SUSPICION:
        vetoes.append("may_be_hijack")
    if _HIDDEN_WARNING in mail.warnings:
        vetoes.append("hidden_text")
    if features.asks and best not in _PRESSING:
        vetoes.append("asks_for_action")
    if best in _BULK and _is_a_persons_question(features):
        vetoes.append("persons_question")
    return tuple(vetoes)


def _is_a_persons_question(features: Features) -> bool:
    values = features.values
    return "#question" in values and "#links:0" in values and not any(sign in values for sign in _BUILT_AS_BULK)
