"""Runs and receipts for a dashboard page and for reports: the same story as the results tell, and nothing more."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from triage.agent.ports import ToolLedger
from triage.domain.tool import Rates, Receipt, RunRecord


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run as a page shows it. Without its address: a page is seen by more people than its owner."""

    id: str
    generation: int
    account: str
    purpose: str
    opened_at: datetime
    expires_at: datetime
    state: str
    reason: str
    next_action: str
    attempts: int
    reads: int
    requests: int
    reuse_reason: str | None


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything a page of the mail tool shows."""

    runs: tuple[RunLine, ...]
    receipts: tuple[Receipt, ...]
    rates: Rates
    live: int


def overview(
    ledger: ToolLedger, now: datetime, since: datetime, account: str | None = None, limit: int = 50
) -> Overview:
    """Runs and receipts, newest first, and the rates since an instant."""
    runs = ledger.tool_runs(account, limit=limit)
    receipts = tuple(r for r in ledger.receipts(limit=limit) if account in (None, r.account))
    return Overview(
        runs=tuple(_line(ledger, run, now) for run in runs),
        receipts=receipts,
        rates=ledger.tool_rates(since, account),
        live=sum(run.live(now) for run in runs),
    )


def _line(ledger: ToolLedger, run: RunRecord, now: datetime) -> RunLine:
    told = [r for r in ledger.receipts(run.id, 20) if r.generation == run.generation and r.call not in _ASIDE]
    last = told[0] if told else None
    state, reason = (last.state, last.reason) if last else ("pending", "run_opened")
    if state == "pending" and not run.live(now):
        state, reason = "expired", run.end_reason or "run_expired"
    return RunLine(
        id=run.id,
        generation=run.generation,
        account=run.account,
        purpose=run.purpose,
        opened_at=run.opened_at,
        expires_at=run.expires_at,
        state=state,
        reason=reason,
        next_action=last.next_action if last else "continue",
        attempts=run.attempts_used,
        reads=run.reads_used,
        requests=run.requests_used,
        reuse_reason=run.reuse_reason,
    )


_ASIDE = frozenset({"status", "redeem", "ask"})
"""Calls that tell of a run and do not move it."""
