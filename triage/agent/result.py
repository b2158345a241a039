"""The one answer every call gives: flat, typed, and without anything of the mail that the caller did not ask for."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from triage.agent.states import NEVER_RETRYABLE, NextAction, Stage, State


class Part(BaseModel):
    """A value of a result."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Counts(Part):
    """Messages addressed to this run, by what they were. Other people's mail is not counted, nor looked at."""

    matched: int = 0
    old: int = 0
    late: int = 0
    duplicate: int = 0
    uncorrelated: int = 0
    rule_mismatch: int = 0
    already_consumed: int = 0
    unparseable: int = 0
    suspect: int = 0


class Accepted(Part):
    """The message that counted. `message_id` is the tool's own, the subject is masked."""

    message_id: str
    subject: str
    received_at: AwareDatetime
    age_seconds: float
    matched_rule: str
    fingerprint: str


class Artifact(Part):
    """What was taken: the value itself, a handle for a program, or only the fact that it is there."""

    kind: Literal["link", "code"]
    delivery: Literal["value", "handle", "indicator"]
    host: str | None = None
    length: int | None = None
    verification_url: str | None = None
    code: str | None = None
    handle: str | None = None


class RunView(Part):
    """A run as its owner may see it."""

    purpose: str
    mailbox_id: str
    mailbox_scope: str
    address: str
    opened_at: AwareDatetime
    expires_at: AwareDatetime
    live: bool
    temporary_identity: Literal[True] = True
    attempts_left: int
    reads_left: int
    requests_left: int


class Result(Part):
    """State, reason, evidence and the one safe next step."""

    schema_version: Literal[1] = 1
    state: State
    reason: str
    stage: Stage
    run_id: str | None
    mailbox_id: str | None = Field(default=None, description="Redacted.")
    wait_id: str | None = None
    attempt: int = 0
    observed_at: AwareDatetime
    accepted: Accepted | None = None
    candidates: list[str] = Field(default_factory=list, description="Ids only, when ambiguous.")
    artifact: Artifact | None = None
    observed_messages: int = Field(default=0, description="Addressed to this run only.")
    counts: Counts = Counts()
    polls_used: int = 0
    polls_remaining: int = 0
    elapsed_ms: int = 0
    remaining_ms: int = 0
    retryable: bool = False
    next_retry_after_ms: int | None = None
    next_action: NextAction
    withheld: list[str] = Field(default_factory=list, description="Left out, and not to be had by asking again.")
    errors: list[dict[str, str]] = Field(default_factory=list, description="invalid_request: {field, code}.")
    receipt_id: str | None = None
    policy_version: str | None = None
    run: RunView | None = None

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        if (self.state is State.FOUND) != (self.accepted is not None):
            raise ValueError("accepted goes with found, and only with it")
        if (self.state is State.PENDING) != (self.next_retry_after_ms is not None):
            raise ValueError("next_retry_after_ms goes with pending, and only with it")
        if self.state in NEVER_RETRYABLE and self.retryable:
            raise ValueError(f"{self.state} is never retryable")
        if self.state is State.AMBIGUOUS and len(self.candidates) < 2:
            raise ValueError("ambiguous names at least two messages")
        if self.artifact and self.state is not State.FOUND:
            raise ValueError("an artifact goes with found only")
        return self
