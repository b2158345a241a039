"""What a run leaves behind: runs, steps, decisions, as values. The ledger stores them, reports read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from triage.domain.decision import Outcome
from triage.domain.mail import MessageRef


class Trigger(StrEnum):
    SCHEDULE = "schedule"
    MANUAL = "manual"
    BACKFILL = "backfill"


class RunState(StrEnum):
    """queued -> running -> done | failed; a queued scheduled fire may become coalesced instead."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    COALESCED = "coalesced"


@dataclass(frozen=True, slots=True)
class Fire:
    """One fire of an account's schedule: its time in UTC, and how many earlier ones were missed and fell into it."""

    account: str
    fire_time: datetime
    missed: int = 0
    missed_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One batch of one account. Times are aware UTC. `reason` is a code when failed (cut, auth, unreachable, ...)."""

    id: str
    account: str
    trigger: Trigger
    fire_time: datetime
    state: RunState
    enqueued_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    lease_owner: str | None = None
    lease_until: datetime | None = None
    reason: str | None = None
    error: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step of a run: select, recover, thread, fetch, prepare, decide, label, archive. Duration in ms."""

    name: str
    started_at: datetime
    duration_ms: int
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """One message's decision as the ledger keeps it.

    `message_key` is a keyed fingerprint of the reference, `message_id_key` one of the Message-ID ("" if it has none).
    `label_id` is what the label will be or is. `flags` are the message's flags when it was decided: the proof, later,
    that nobody touched it. Times are aware UTC; None means not (yet) done.
    """

    id: str
    run_id: str
    account: str
    ref: MessageRef
    message_key: str
    message_id_key: str
    category_set: str
    outcome: Outcome
    label_id: str
    choice: str | None
    confidence: float
    floor: float
    archive_floor: float
    archive: bool
    reason: str
    why: str
    decided_at: datetime
    probabilities: Mapping[str, float] = field(default_factory=dict)
    provider: str | None = None
    model: str | None = None
    chain_position: int | None = None
    provider_confidence: float | None = None
    latency_ms: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    question_tokens: int = 0
    cost_usd: float = 0.0
    inherited_from: str | None = None
    inherited_rule: str | None = None
    inherited_source: str | None = None
    participation: str | None = None
    warnings: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    sender_domain: str = ""
    subject: str | None = None
    received_at: datetime | None = None
    body_chars: int = 0
    links_removed: int = 0
    labelled_at: datetime | None = None
    archived_at: datetime | None = None
    archived_ref: MessageRef | None = None
    closed_reason: str | None = None  # why an unfinished decision will not be finished: gone, person_touched, ...
    recovered_by: str | None = None  # the run that finished it
