"""`triage undo`: take back what a run did, or one message's decision."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from triage.bootstrap import App
from triage.cli import open as parts
from triage.cli import theme
from triage.cli.show import find_run
from triage.cli.theme import make_console
from triage.config.settings import AccountSettings
from triage.domain.errors import ConfigError
from triage.domain.record import DecisionRecord, RunState
from triage.pipeline.undo import Undone, UndoStep, carry_out, plan_undo

_DEEDS = {
    "label_off": "label off",
    "move_back": "back to the inbox, label off",
    "finish": "already done; only the record was missing",
    "none": "left alone",
}


def undo_command(
    config: str | None, run_id: str | None, *, message: str | None, dry_run: bool = False, as_json: bool = False
) -> int:
    """Show what would be taken back, and do it; 0 done, 1 if the server refused something."""
    if (run_id is None) == (message is None):
        raise ConfigError("triage undo needs a RUN, or --message KEY (not both).")
    with parts.opened(config) as app:
        records = message_decision(app, message) if message else run_decisions(app, run_id)
        account = app.account(records[0].account) if records else None
        steps: tuple[UndoStep, ...] = ()
        undone = Undone((), {})
        if account is not None:
            steps, undone = undo(app, account, records, dry_run=dry_run, tell=None if as_json else make_console())
    if as_json:
        parts.print_json(undo_json(steps, undone, dry_run=dry_run))
    elif not records:
        parts.say("That run decided nothing.")
    planned = {s.record.id for s in steps if s.deed != "none"}
    return 1 if not dry_run and planned - {r.id for r in undone.taken_back} else 0


def undo(
    app: App,
    account: AccountSettings,
    records: Sequence[DecisionRecord],
    *,
    dry_run: bool = False,
    tell: Console | None = None,
) -> tuple[tuple[UndoStep, ...], Undone]:
    """Plan, tell, and unless it is a dry run do it. Raises MailboxError, LedgerError."""
    mailbox = app.mailbox(account)
    try:
        steps = plan_undo(mailbox, app.ledger, records, account.categories)
        if tell is not None:
            show(tell, steps)
        if dry_run:
            return steps, Undone((), {s.record.id: s.why for s in steps if s.deed == "none"})
        undone = carry_out(mailbox, app.ledger, steps, account.categories, app.clock.now())
    finally:
        mailbox.close()
    if tell is not None:
        summary(tell, steps, undone)
    return steps, undone


def run_decisions(app: App, run_id: str | None) -> tuple[DecisionRecord, ...]:
    """What a run did: its own decisions, and those of earlier runs that it finished. Raises ConfigError."""
    run = find_run(app, run_id)
    if run.state in (RunState.QUEUED, RunState.RUNNING):
        raise ConfigError(f"Run {run.id} is {run.state.value}; it can be taken back once it is over.")
    return (*app.ledger.decisions(run.id), *app.ledger.recovered(run.id))


def message_decision(app: App, key: str) -> tuple[DecisionRecord, ...]:
    """The newest decision of a message that was applied. Raises ConfigError."""
    found = app.ledger.decision_by_key(key)
    if not found:
        raise ConfigError(f"No message's key begins with {key}, or several do. `triage show` lists keys (--json).")
    return tuple(d for d in found if d.labelled_at is not None)[:1]


def show(console: Console, steps: Sequence[UndoStep]) -> None:
    table = Table.grid(padding=(0, 2))
    for _ in range(3):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold", style=theme.CALM)
    for step in steps:
        record = step.record
        style = theme.CALM if step.deed == "none" else theme.GOOD
        table.add_row(
            record.message_key[:8],
            Text(theme.harmless(record.sender_domain)),
            Text(record.label_id, style=theme.LABEL),
            Text(f"{_DEEDS[step.deed]}{': ' if step.why else ''}{step.why}", style=style),
        )
    console.print(Text("Plan", style=theme.HEAD))
    console.print(Padding(table, (0, 0, 0, 2)))


def summary(console: Console, steps: Sequence[UndoStep], undone: Undone) -> None:
    back = sum(1 for s in steps if s.deed == "move_back" and s.record in undone.taken_back)
    console.print(
        f"Taken back: {len(undone.taken_back)} of {len(steps)} decisions, {back} of them out of the archive. "
        "The next run decides these messages again; none of them is archived again."
    )
    for step in steps:
        if step.deed != "none" and step.record.id in undone.left:
            console.print(Text(f"{step.record.message_key[:8]}: {undone.left[step.record.id]}", style=theme.BAD))


def undo_json(steps: Sequence[UndoStep], undone: Undone, *, dry_run: bool) -> dict[str, object]:
    taken = {r.id for r in undone.taken_back}
    return {
        "dry_run": dry_run,
        "taken_back": len(taken),
        "steps": [
            {
                "decision": s.record.id,
                "message_key": s.record.message_key,
                "label": s.record.label_id,
                "archived": s.record.archived_at is not None,
                "deed": s.deed,
                "done": s.record.id in taken,
                "why": undone.left.get(s.record.id, s.why),
            }
            for s in steps
        ],
    }
