"""Runs: the list of them, and the whole story of one."""

from __future__ import annotations

from datetime import datetime

from triage.domain.record import Run
from triage.web.charts.timeline import timeline
from triage.web.messages import Request
from triage.web.page import NotThere, Page
from triage.web.pages.asking import known_account
from triage.web.pages.telling import tell_all
from triage.web.room import Room

ON_A_PAGE = 50


def all_runs(room: Room, request: Request) -> Page:
    """The runs of one account or of all, newest first, a page at a time."""
    asked = request.query.get("account", "")
    account = known_account(room, asked) if asked else None
    runs = room.ledger.page_of_runs(account, _before(request), ON_A_PAGE + 1)
    more = len(runs) > ON_A_PAGE
    values = {
        "account": account,
        "accounts": room.accounts(),
        "runs": runs[:ON_A_PAGE],
        "older": runs[ON_A_PAGE - 1].enqueued_at.isoformat() if more else None,
        "newest": "before" not in request.query,
    }
    return Page("runs.html", "Runs", "runs", values)


def one_run(room: Room, request: Request, run_id: str) -> Page:
    """The steps of a run on a time line, and each of its decisions with all that led to it."""
    del request
    run = room.ledger.run(run_id)
    if run is None:
        raise NotThere(f"There is no run {run_id}. Retention may have taken it.")
    archiving = room.archiving(run.account)
    steps = room.ledger.steps(run.id)
    decisions = room.ledger.decisions(run.id)
    values = {
        "run": run,
        "took_ms": _took_ms(run),
        "steps": steps,
        "timeline": timeline(steps) if steps else None,
        "told": tell_all(decisions, archiving),
        "recovered": tell_all(room.ledger.recovered(run.id), archiving),
        "cost_usd": sum(d.cost_usd for d in decisions),
        "tokens": sum(d.input_tokens for d in decisions),
    }
    return Page("run.html", f"Run {run.id}", "runs", values)


def _before(request: Request) -> datetime | None:
    """Where a page of older runs begins; the newest ones for what is no time."""
    try:
        before = datetime.fromisoformat(request.query["before"])
    except (KeyError, ValueError):
        return None
    return before if before.tzinfo else None


def _took_ms(run: Run) -> float | None:
    if run.started_at is None or run.finished_at is None:
        return None
    return (run.finished_at - run.started_at).total_seconds() * 1000
