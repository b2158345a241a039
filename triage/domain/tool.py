"""What is kept of the mail tool's runs, waits, claims and receipts, as values. None holds a body, a link or a code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from triage.domain.mail import MessageRef


class ToolRefused(Exception):
    """The ledger does not do what was asked, for a reason the caller must hear; `reason` is a code."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Mark:
    """A reading of the clock that all processes of the ledger share; comparable within one epoch only."""

    epoch: str
    ms: int


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One use of a run id. A second action under the same id is another generation, with a stated reason.

    `lease_key` is what no other live run may hold: the address, or the folder. Messages with a UID below
    `baseline_uid` were there before the action. Times are aware UTC; None means not (yet).
    """

    id: str
    generation: int
    account: str
    purpose: str
    mailbox_id: str
    strategy: str
    address: str
    folder: str
    lease_key: str
    uidvalidity: int
    baseline_uid: int
    opened_at: datetime
    expires_at: datetime
    watch_until: datetime
    policy_version: str
    policy_digest: str
    reuse_reason: str | None = None
    prompt_version: str | None = None
    ended_at: datetime | None = None
    end_reason: str | None = None
    attempts_used: int = 0
    reads_used: int = 0
    requests_used: int = 0

    def live(self, now: datetime) -> bool:
        return self.ended_at is None and now < self.expires_at


@dataclass(frozen=True, slots=True)
class WaitRecord:
    """One wait, over all the calls it took. `spent_ms` is what its deadline has lost; it never shrinks.

    `terms` holds the request's own words (rule, phrase, after, deadline, polls, take) as JSON-able values, `state` is
    pending until the wait is over. `cancelled` says that somebody asked for its end.
    """

    id: str
    run_id: str
    generation: int
    account: str
    attempt: int
    terms: Mapping[str, object]
    started_at: datetime
    start_delay_ms: int = 0
    spent_ms: int = 0
    slots_done: int = 0
    polls_used: int = 0
    polls_failed: int = 0
    state: str = "pending"
    reason: str = "started"
    cancelled: bool = False
    receipt_id: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A message that belongs to a run now, and to no other ever after."""

    account: str
    message_key: str
    run_id: str
    generation: int
    message_id: str
    ref: MessageRef
    fingerprint: str
    matched_rule: str
    received_at: datetime
    claimed_at: datetime
    receipt_id: str
    wait_id: str | None = None


@dataclass(frozen=True, slots=True)
class Taking:
    """A link or code that was taken from a claimed message, once. The value itself is nowhere kept."""

    account: str
    message_key: str
    kind: str
    delivery: str
    run_id: str
    generation: int
    receipt_id: str
    taken_at: datetime
    host: str | None = None
    length: int | None = None
    handle_key: str | None = None
    redeemed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """One call as it is remembered: who asked for what, what the policy said, how it ended and on what evidence."""

    id: str
    account: str
    run_id: str | None
    generation: int
    wait_id: str | None
    call: str
    surface: str
    intent: str | None
    state: str
    reason: str
    stage: str
    at: datetime
    elapsed_ms: int
    attempt: int
    polls_used: int
    counts: Mapping[str, int] = field(default_factory=dict)
    stages: Mapping[str, str] = field(default_factory=dict)  # stage -> when it was reached
    polls: Sequence[Mapping[str, object]] = ()
    candidates: Sequence[str] = ()
    message_id: str | None = None
    fingerprint: str | None = None
    mailbox_id: str | None = None
    cursor: str | None = None
    retryable: bool = False
    next_action: str = ""
    policy_version: str | None = None
    policy_digest: str | None = None
    request_digest: str | None = None
    request_text: str | None = None
    prompt_version: str | None = None


@dataclass(frozen=True, slots=True)
class Rates:
    """How calls of a period ended. Forbidden, timeout and inconsistent runs show trouble first."""

    calls: int = 0
    forbidden: int = 0
    timeout: int = 0
    inconsistent_run: int = 0
    by_state: Mapping[str, int] = field(default_factory=dict)

    def share(self, n: int) -> float:
        return n / self.calls if self.calls else 0.0
