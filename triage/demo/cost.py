"""What a decision model would have cost for the same mail: an estimate from what was recorded. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triage.decide.cost import CHARS_PER_TOKEN, PriceEntry, estimate_tokens
from triage.decide.question import describe
from triage.domain.decision import Outcome, Question
from triage.domain.record import DecisionRecord

_FIELDS_CHARS = 120
"""Sender, recipient and subject of a mail together; the ledger keeps only the length of the body."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Tokens and USD for all mails together, and USD per 1,000 mails with the inherited ones counted as free."""

    tokens: int
    usd: float
    usd_per_thousand: float


def estimate(decisions: Sequence[DecisionRecord], question: Question, price: PriceEntry) -> Estimate:
    """About what asking the question once for every mail that did not inherit would have cost."""
    asked = [d for d in decisions if d.outcome is not Outcome.INHERITED]
    per_question = estimate_tokens(question.instructions) + sum(
        estimate_tokens(option.id + describe(option)) for option in question.options
    )
    tokens = sum(per_question + (d.body_chars + _FIELDS_CHARS) // CHARS_PER_TOKEN for d in asked)
    usd = price.price.usd(tokens)
    return Estimate(tokens, usd, 1000 * usd / len(decisions) if decisions else 0.0)
