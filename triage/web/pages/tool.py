"""The mail tool: its runs and their receipts, in the words of the results that its callers got."""

from __future__ import annotations

from triage.agent.overview import overview, run_line
from triage.agent.states import TO_DO, Stage
from triage.web.messages import Request
from triage.web.page import NotThere, Page
from triage.web.pages.asking import days_of, known_account
from triage.web.room import PERIODS, Room

NEWEST = 50
RECEIPTS_OF_A_RUN = 100


def all_runs(room: Room, request: Request) -> Page:
    """How calls ended in a period, the newest runs and the newest receipts, of one account or of all."""
    asked, days = request.query.get("account", ""), days_of(request)
    account = known_account(room, asked) if asked else None
    since, now = room.period(days)
    values = {
        "seen": overview(room.ledger, now, since, account, NEWEST),
        "account": account,
        "accounts": room.accounts(),
        "days": days,
        "periods": PERIODS,
        "to_do": TO_DO,
    }
    return Page("tool.html", "Mail tool", "tool", values)


def one_run(room: Room, request: Request, run_id: str) -> Page:
    """One run and its receipts, newest first: what was asked, how far it came, each look, how it ended."""
    del request
    run = room.ledger.tool_run(run_id)
    if run is None:
        raise NotThere(f"The mail tool knows no run {run_id}. Retention may have taken it.")
    values = {
        "run": run_line(room.ledger, run, room.now()),
        "receipts": room.ledger.receipts(run.id, RECEIPTS_OF_A_RUN),
        "most": RECEIPTS_OF_A_RUN,
        "stages": tuple(Stage),
        "to_do": TO_DO,
    }
    return Page("tool_run.html", f"Run {run.id} of the mail tool", "tool", values)
