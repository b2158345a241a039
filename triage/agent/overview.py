"""Runs and receipts for a dashboard page and for reports: the same story as the results tell, and nothing more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from triage.agent.answers import next_action
from triage.agent.gate import ended
from triage.agent.ports import ToolLedger
from triage.agent.states import NextAction, State
from triage.domain.tool import Rates, Receipt, RunRecord

_MOVES = ("open", "find", "wait", "take", "request", "cancel")
"""Calls that move a run; the others only tell of it."""
_REFUSED = (State.FORBIDDEN, State.INVALID)


@dataclass(frozen=True, slots=True)
class RunLine:
    """One use of a run id as a page shows it. Without its address: a page is seen by more people than its owner.

    `state`, `reason` and `next_action` are those of the last result that moved the run: one that was refused did not.
    """

    id: str
    generation: int
    account: str
    purpose: str
    opened_at: datetime
    expires_at: datetime
    live: bool
    state: State
    reason: str
    next_action: NextAction
    attempts: int
    reads: int
    requests: int
    reuse_reason: str | None


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything a page of the mail tool shows. `live` counts all the runs that live, shown or not."""

    runs: tuple[RunLine, ...]
    receipts: tuple[Receipt, ...]
    rates: Rates
    live: int


def overview(
    ledger: ToolLedger, now: datetime, since: datetime, account: str | None = None, limit: int = 50
) -> Overview:
    """Runs and receipts, newest first, and the rates since an instant. Raises LedgerError."""
    return Overview(
        runs=tuple(run_line(ledger, run, now) for run in ledger.tool_runs(account, limit=limit)),
        receipts=ledger.receipts(limit=limit, account=account),
        rates=ledger.tool_rates(since, account),
        live=ledger.live_runs(now, account),
    )


def run_line(ledger: ToolLedger, run: RunRecord, now: datetime) -> RunLine:
    """How one run stands. Raises LedgerError."""
    last = ledger.last_receipt(run.id, run.generation, _MOVES, but=_REFUSED)
    state, reason, action = State.PENDING, "run_opened", NextAction.CONTINUE
    if last is not None:
        state, reason, action = State(last.state), last.reason, NextAction(last.next_action)
    if state is State.PENDING and (denial := ended(run, now)):
        state, reason, action = denial.state, denial.reason, next_action(denial.state, denial.reason)
    return RunLine(
        id=run.id,
        generation=run.generation,
        account=run.account,
        purpose=run.purpose,
        opened_at=run.opened_at,
        expires_at=run.expires_at,
        live=run.live(now),
        state=state,
        reason=reason,
        next_action=action,
        attempts=run.attempts_used,
        reads=run.reads_used,
        requests=run.requests_used,
        reuse_reason=run.reuse_reason,
    )
