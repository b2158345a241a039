"""What a run is made of: an account's plan and the tools it works with."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Protocol

from triage.domain.category import CategorySet
from triage.domain.decision import Question
from triage.domain.mail import Head
from triage.domain.record import DecisionRecord, Run, StepRecord, Trigger
from triage.pipeline.corrections import Corrections, LookTerms
from triage.pipeline.learning import Summary
from triage.policy.judge import Policy
from triage.ports import Clock, Decider, Journal, Mailbox

EVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class AccountPlan:
    """Everything a run needs to know of its account, as values.

    `mode` is preview (nothing written), label (labels only) or act. `owner` holds the account's own addresses, case
    folded. `since`/`before` bound the messages by the day they arrived. `batch_deadline_s` is for all asks of a wave
    together; `max_chars` caps the body a model reads. Decisions from before `remembered_since` are no longer in the
    ledger.
    """

    account: str
    categories: CategorySet
    question: Question
    policy: Policy
    owner: frozenset[str]
    mode: str = "act"
    batch: int = 20
    since: date | None = None
    before: date | None = None
    newest_first: bool = False
    batch_deadline_s: float = 60.0
    max_chars: int = 6000
    remembered_since: datetime = EVER
    label_on_outage: bool = False
    record_subjects: bool = False
    look: LookTerms | None = None

    def for_run(self, run: Run) -> AccountPlan:
        """The plan with what this run asks for on its own: a smaller batch, preview, or mail older than `since`."""
        plan = self
        if run.options.get("mode"):
            plan = replace(plan, mode=run.options["mode"])
        if run.options.get("limit"):
            plan = replace(plan, batch=max(1, min(self.batch, int(run.options["limit"]))))
        if run.trigger is Trigger.BACKFILL:
            plan = replace(plan, since=None, before=self.since, newest_first=True)
        return plan

    @property
    def writes(self) -> bool:
        return self.mode != "preview"

    @property
    def archives(self) -> bool:
        return self.mode == "act"


class RunLog(Protocol):
    """The running commentary of a run: the same facts the ledger keeps, one call an event."""

    def begin(self, step: str) -> None: ...
    def step(self, step: StepRecord) -> None: ...
    def decision(self, record: DecisionRecord) -> None: ...
    def event(self, name: str, **facts: object) -> None: ...


class RunMail(Protocol):
    """Mail that belongs to runs of the mail tool: no model is asked about it, and it is not archived."""

    def watched(self) -> bool:
        """Is there any run whose mail may be in the inbox?"""
        ...

    def sort(self, heads: Mapping[int, Head]) -> Mapping[int, str]:
        """The messages that are a run's: "" while it lives, afterwards the label's id."""
        ...


class Learner(Protocol):
    """What an account's decider learns from what people did in the mailbox."""

    @property
    def due(self) -> bool: ...
    def learn(self, stop: threading.Event) -> Summary:
        """Learn anew. Raises nothing."""
        ...

    @property
    def decider(self) -> Decider:
        """Who decides, with what was learned."""
        ...


@dataclass(frozen=True, slots=True)
class Tools:
    """The ports a run works through."""

    mailbox: Mailbox
    decider: Decider
    journal: Journal
    clock: Clock
    log: RunLog
    corrections: Corrections | None = None
    run_mail: RunMail | None = None
    learner: Learner | None = None


class LeaseGuard(Protocol):
    """Says before each write that the run is still ours."""

    def check(self) -> None:
        """Raises LeaseLost."""
        ...


@dataclass(frozen=True, slots=True)
class RunScope:
    """One run under way: who it is, its plan, its tools, its lease, and the signal to stop."""

    run: Run
    plan: AccountPlan
    tools: Tools
    lease: LeaseGuard
    stop: threading.Event


Counts = dict[str, int]


def add_counts(total: Counts, more: Mapping[str, int]) -> None:
    for name, n in more.items():
        total[name] = total.get(name, 0) + n
