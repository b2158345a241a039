"""What a provider answers, and what the policy makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from triage.domain.category import Action


class Outcome(StrEnum):
    """How a message got its label (DESIGN 2)."""

    APPLIED = "applied"
    BELOW_FLOOR = "below_floor"
    UNUSABLE_ANSWER = "unusable_answer"
    CHAIN_FAILED = "chain_failed"
    INHERITED = "inherited"
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of the question as it is put to a model."""

    id: str
    criteria: str
    examples: tuple[str, ...] = ()
    like: str | None = None  # the anchor it resembles; only the embedded classifier reads it


@dataclass(frozen=True, slots=True)
class Question:
    """The one question of a run: which of these options. The mail is never part of it.

    `options` includes the none-of-these option where it is offered.
    """

    instructions: str
    options: tuple[Option, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(o.id for o in self.options)


@dataclass(frozen=True, slots=True)
class Answer:
    """A checked answer: `probabilities` holds every option of the question and sums to 1.

    `choice` is the argmax. `model` is the name the server gave (the model as served), `provider_confidence` its own
    confidence, kept beside ours. `repaired` names what was mended ("renormalised", ...). Latency in milliseconds.
    `hijack_signs` counts injection patterns a provider itself found (embedded only).
    """

    choice: str
    probabilities: Mapping[str, float]
    provider: str
    model: str
    latency_ms: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    question_tokens: int = 0  # of input_tokens, the share that is the question (criteria), estimated if not told
    cost_usd: float = 0.0
    provider_confidence: float | None = None
    repaired: tuple[str, ...] = ()
    hijack_signs: int = 0
    vetoes: tuple[str, ...] = ()


class FailureKind(StrEnum):
    """What a failed ask means for the rest of the batch (DESIGN 6)."""

    CONFIGURATION = "configuration"  # 401, 402, 403, 404: stop asking, trip the breaker
    MESSAGE = "message"  # 400, 413, 422: this message's own
    TRANSIENT = "transient"  # 408, 429, 5xx, 529, timeouts
    UNUSABLE = "unusable"  # an answer that cannot be used


@dataclass(frozen=True, slots=True)
class Failure:
    """One provider's failed try: kind, a short code, and a sentence for a person (no mail text, no secret).

    Tokens and cost are of what was paid for all the same: an answer that cannot be used, a probe. `model` is the model
    as served, "" if nobody answered.
    """

    provider: str
    kind: FailureKind
    code: str
    message: str
    latency_ms: int = 0
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the chain says of one message: an answer at a position of the chain, or the failures that left none.

    `asked` is False when nobody was asked (breaker open, spend cap, deadline, stop): the message stays unlabelled.
    """

    answer: Answer | None
    position: int | None = None
    failures: tuple[Failure, ...] = ()
    asked: bool = True
    reason: str = ""

    @property
    def cost_usd(self) -> float:
        """What asking about this message cost, the answers that could not be used included."""
        return sum(f.cost_usd for f in self.failures) + (self.answer.cost_usd if self.answer else 0.0)


@dataclass(frozen=True, slots=True)
class Ancestor:
    """The labelled earlier message that a reply inherits from, and the rule that allowed it.

    `rule` is one of: reference, thread_id, same_batch. `participation` says whose part in the thread let an archiving
    category through: sender_in_thread, same_list, same_automated_sender, not_needed. `source` is person or decision.
    """

    message_key: str
    label_id: str
    confidence: float
    source: str
    rule: str
    participation: str
    owner_wrote: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The policy's word on one message: which label, and whether it leaves the inbox.

    `confidence` is ours, recomputed from the probabilities. `floor` is the floor the label needed, `archive_floor`
    the one the archive needed. `reason` is a code, `why` a sentence for a person without any text of the mail.
    """

    label_id: str
    action: Action
    outcome: Outcome
    confidence: float
    floor: float
    archive_floor: float
    reason: str
    why: str
    vetoes: tuple[str, ...] = field(default=())
