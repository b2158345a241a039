"""A decision as pages show it: who it is about, what became of it, who answered."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from triage.domain.category import Category, CategorySet
from triage.domain.record import DecisionRecord
from triage.report import words
from triage.report.text import harmless, truncated
from triage.web.charts.confidence import confidence_bar
from triage.web.charts.distribution import distribution

MOST_OPTIONS = 3


@dataclass(frozen=True, slots=True)
class Told:
    """One decision with all that a page needs to show it."""

    decision: DecisionRecord
    title: str
    fate: words.Fate
    answered: str
    meter: Markup
    plot: Markup | None

    @property
    def sure(self) -> str:
        return truncated(self.decision.confidence)


def tell(decision: DecisionRecord, archiving: Collection[str], most: int = MOST_OPTIONS) -> Told:
    return Told(
        decision=decision,
        title=title_of(decision),
        fate=words.fate(decision, archiving),
        answered=answered_by(decision),
        meter=confidence_bar(decision),
        plot=distribution(decision, most) if decision.probabilities else None,
    )


def tell_all(decisions: Sequence[DecisionRecord], archiving: Collection[str]) -> list[Told]:
    return [tell(decision, archiving) for decision in decisions]


def title_of(decision: DecisionRecord) -> str:
    """The subject where the ledger may keep it, else the fingerprint's first digits."""
    if decision.subject is not None:
        return harmless(decision.subject) or "(no subject)"
    return f"Message {decision.message_key[:8]}"


def answered_by(decision: DecisionRecord) -> str:
    """Who answered, in a few words; "" where nobody was asked."""
    if decision.provider is None:
        return ""
    model = f" ({harmless(decision.model)})" if decision.model else ""
    place = f", number {decision.chain_position + 1} of the chain" if decision.chain_position else ""
    return f"{decision.provider}{model}{place} in {decision.latency_ms} ms"


def name_of(categories: CategorySet | None, label_id: str) -> str:
    """A category's name as the operator wrote it, its id where it is not configured any more."""
    if categories is None:
        return label_id
    if label_id == categories.fallback_id:
        return categories.fallback_name
    found: Category | None = categories.get(label_id)
    return found.name if found else label_id
