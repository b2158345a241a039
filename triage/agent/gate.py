"""Between wanting and doing: does this caller own that run, does the run live, does its purpose allow the action?

Nothing here touches a mailbox. What is refused here is refused for good: asking again changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime

from triage.agent.policy import Policy, PurposeKeys
from triage.agent.states import Intent, State
from triage.domain.tool import RunRecord


@dataclass(frozen=True, slots=True)
class Grant:
    """The action may be done, for this run, within the limits of this purpose."""

    run: RunRecord
    purpose: PurposeKeys


@dataclass(frozen=True, slots=True)
class Denial:
    """It may not, and why. `run` only where the caller may know of it."""

    state: State
    reason: str
    run: RunRecord | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """`bound` are the runs a caller was given; None for the operator, who has them all."""

    policy: Policy
    find_run: Callable[[str], RunRecord | None]
    bound: Collection[str] | None = None

    def own(self, run_id: str) -> RunRecord | Denial:
        """The run, if it is there and the caller's."""
        if self.bound is not None and run_id not in self.bound:
            return Denial(State.FORBIDDEN, "run_not_yours")
        run = self.find_run(run_id)
        if run is None or run.account != self.policy.keys.account:
            return Denial(State.FORBIDDEN, "unknown_run")
        return run

    def admit(
        self,
        run_id: str,
        intent: Intent,
        now: datetime,
        *,
        mailbox_id: str | None = None,
        scope: str | None = None,
    ) -> Grant | Denial:
        """May the run do this now? A foreign mailbox or scope is refused before it is told whether the run lives."""
        run = self.own(run_id)
        if isinstance(run, Denial):
            return run
        if mailbox_id is not None and mailbox_id != run.mailbox_id:
            return Denial(State.FORBIDDEN, "mailbox_of_another_run", run)
        if scope is not None and scope != run.id:
            return Denial(State.FORBIDDEN, "scope_of_another_run", run)
        purpose = self.policy.purpose(run.purpose)
        if purpose is None:
            return Denial(State.FORBIDDEN, "purpose_withdrawn", run)
        if not purpose.allows(intent):
            return Denial(State.FORBIDDEN, "intent_not_allowed", run)
        if denial := ended(run, now):
            return denial
        return Grant(run, purpose)


def ended(run: RunRecord, now: datetime) -> Denial | None:
    """How a run that is over answers; None while it lives."""
    if run.live(now):
        return None
    match run.end_reason:
        case "cancelled":
            return Denial(State.CANCELLED, "run_cancelled", run)
        case "trigger_rejected":
            return Denial(State.REJECTED, "trigger_rejected", run)
        case "finished":
            return Denial(State.EXPIRED, "run_finished", run)
        case _:
            return Denial(State.EXPIRED, "run_expired", run)


def over_caps(
    purpose: PurposeKeys,
    policy: Policy,
    *,
    deadline_seconds: float,
    max_polls: int,
    poll_interval_seconds: float | None,
    rule: str | None,
) -> str | None:
    """The cap a wait asks to pass, as a reason; None if it keeps within all. Nothing is ever trimmed to fit."""
    if deadline_seconds > purpose.deadline_seconds:
        return "deadline_over_cap"
    if max_polls > purpose.max_polls:
        return "polls_over_cap"
    if poll_interval_seconds is not None and poll_interval_seconds != policy.fixed_interval:
        return "interval_is_the_policys"
    if rule is not None and rule not in policy.keys.rules:
        return "rule_not_in_policy"
    return None
