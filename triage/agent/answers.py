"""From how a call ended to what is said (the result) and what is kept (the receipt): both from one outcome."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from triage.agent.policy import Policy
from triage.agent.result import Accepted, Artifact, Counts, Result, RunView
from triage.agent.states import NEVER_RETRYABLE, Intent, NextAction, Stage, State
from triage.domain.tool import Receipt, RunRecord
from triage.ports import Clock

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_NEXT: Mapping[State, NextAction] = {
    State.FOUND: NextAction.USE,
    State.PENDING: NextAction.CONTINUE,
    State.NOT_FOUND: NextAction.RETRY_LATER,
    State.TIMEOUT: NextAction.RETRY_LATER,
    State.EXPIRED: NextAction.NEW_RUN,
    State.AMBIGUOUS: NextAction.PERSON,
    State.CANCELLED: NextAction.STOP,
    State.FORBIDDEN: NextAction.STOP,
    State.REJECTED: NextAction.STOP,
    State.INVALID: NextAction.FIX,
    State.REVIEW: NextAction.PERSON,
}
_NEXT_BY_REASON: Mapping[str, NextAction] = {
    "mailbox_renumbered": NextAction.NEW_RUN,
    "run_exists": NextAction.NEW_RUN,
    "already_taken": NextAction.STOP,
    "attempts_exhausted": NextAction.STOP,
}


def next_action(state: State, reason: str, *, retryable: bool = False) -> NextAction:
    """The one safe next step after a call that ended so."""
    action = _NEXT_BY_REASON.get(reason) or _NEXT[state]
    return NextAction.STOP if action is NextAction.RETRY_LATER and not retryable else action


def new_id(prefix: str, letters: int = 12) -> str:
    """A random id that can be read out."""
    return f"{prefix}-" + "".join(secrets.choice(_ALPHABET) for _ in range(letters))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended."""

    state: State
    reason: str
    accepted: Accepted | None = None
    artifact: Artifact | None = None
    candidates: Sequence[str] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    retryable: bool = False
    next_retry_after_ms: int | None = None
    next_action: NextAction | None = None
    withheld: Sequence[str] = ()
    errors: Sequence[Mapping[str, str]] = ()
    wait_id: str | None = None
    attempt: int = 0
    polls: Sequence[Mapping[str, object]] = ()
    polls_used: int = 0
    polls_remaining: int = 0
    elapsed_ms: int | None = None
    remaining_ms: int = 0
    cursor: str | None = None
    run: RunView | None = None


class Call:
    """One call under way: when it began, how far it came, and what it is about."""

    def __init__(
        self,
        name: str,
        surface: str,
        policy: Policy,
        clock: Clock,
        key: Callable[[str], str],
        raw: object,
    ) -> None:
        self.name = name
        self.policy = policy
        self.run: RunRecord | None = None
        self.intent: Intent | None = None
        self.request_text: str | None = None
        self._surface = surface
        self._account = policy.keys.account
        self._clock = clock
        self._began = clock.monotonic()
        self._stages: dict[str, str] = {}
        self._stage = Stage.INTENT
        self._digest = key("request " + json.dumps(raw, sort_keys=True, default=str, ensure_ascii=True))
        self.reach(Stage.INTENT)

    def reach(self, stage: Stage) -> None:
        """Every transition leaves its time."""
        self._stage = stage
        self._stages.setdefault(str(stage), self._clock.now().isoformat())

    @property
    def now(self) -> datetime:
        return self._clock.now()

    def end(self, outcome: Outcome) -> tuple[Result, Receipt]:
        """What is said and what is kept. The receipt is not recorded yet: that goes with what the call changed."""
        elapsed_ms = round((self._clock.monotonic() - self._began) * 1000)
        if outcome.elapsed_ms is not None:
            elapsed_ms = outcome.elapsed_ms
        now, receipt_id = self._clock.now(), new_id("rct")
        retryable = outcome.retryable and outcome.state not in NEVER_RETRYABLE
        action = outcome.next_action or next_action(outcome.state, outcome.reason, retryable=retryable)
        run = self.run
        mailbox = redacted(run.mailbox_id) if run else None
        observed = sum(outcome.counts.values())
        result = Result(
            state=outcome.state,
            reason=outcome.reason,
            stage=self._stage,
            run_id=run.id if run else None,
            mailbox_id=mailbox,
            wait_id=outcome.wait_id,
            attempt=outcome.attempt,
            observed_at=now,
            accepted=outcome.accepted,
            candidates=list(outcome.candidates),
            artifact=outcome.artifact,
            observed_messages=observed,
            counts=Counts(**outcome.counts),
            polls_used=outcome.polls_used,
            polls_remaining=outcome.polls_remaining,
            elapsed_ms=elapsed_ms,
            remaining_ms=outcome.remaining_ms,
            retryable=retryable,
            next_retry_after_ms=outcome.next_retry_after_ms,
            next_action=action,
            withheld=list(outcome.withheld),
            errors=[dict(error) for error in outcome.errors],
            receipt_id=receipt_id,
            policy_version=self.policy.version,
            run=outcome.run,
        )
        receipt = Receipt(
            id=receipt_id,
            account=self._account,
            run_id=run.id if run else None,
            generation=run.generation if run else 0,
            wait_id=outcome.wait_id,
            call=self.name,
            surface=self._surface,
            intent=str(self.intent) if self.intent else None,
            state=str(outcome.state),
            reason=outcome.reason,
            stage=str(self._stage),
            at=now,
            elapsed_ms=elapsed_ms,
            attempt=outcome.attempt,
            polls_used=outcome.polls_used,
            counts=dict(outcome.counts),
            stages=dict(self._stages),
            polls=tuple(outcome.polls),
            candidates=tuple(outcome.candidates),
            message_id=outcome.accepted.message_id if outcome.accepted else None,
            fingerprint=outcome.accepted.fingerprint if outcome.accepted else None,
            mailbox_id=mailbox,
            cursor=outcome.cursor,
            retryable=retryable,
            next_action=str(action),
            policy_version=self.policy.version,
            policy_digest=self.policy.digest,
            request_digest=self._digest,
            request_text=self.request_text,
            prompt_version=run.prompt_version if run else None,
        )
        return result, receipt


def redacted(mailbox_id: str) -> str:
    """Enough of a mailbox id to tell two apart in a log."""
    return f"{mailbox_id[:6]}***"


def run_view(run: RunRecord, policy: Policy, now: datetime) -> RunView:
    """A run as its owner may see it: its address and what is left of its limits."""
    purpose = policy.purpose(run.purpose)
    requests = purpose.request_new.max if purpose and purpose.request_new != "never" else 0
    return RunView(
        purpose=run.purpose,
        mailbox_id=run.mailbox_id,
        mailbox_scope=run.id,
        address=run.address,
        opened_at=run.opened_at,
        expires_at=run.expires_at,
        live=run.live(now),
        attempts_left=max(0, purpose.max_attempts - run.attempts_used) if purpose else 0,
        reads_left=max(0, purpose.max_reads - run.reads_used) if purpose else 0,
        requests_left=max(0, requests - run.requests_used),
    )


def ms(span: timedelta) -> int:
    return round(span / timedelta(milliseconds=1))
