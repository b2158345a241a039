"""`triage show --message KEY`: why one message landed where it is, from the thread rule to the archive, in words."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from triage.bootstrap import App
from triage.cli import open as parts
from triage.cli import theme
from triage.cli.jsonview import correction_json, decision_json
from triage.cli.theme import make_console
from triage.domain.errors import ConfigError
from triage.domain.record import DecisionRecord
from triage.report.story import Event, tell
from triage.report.text import stamp


def story_command(app: App, key: str, *, as_json: bool) -> int:
    """Tell the whole story of the one message whose key begins so. Raises ConfigError if there is none, or several."""
    decisions = find(app, key)
    ledger = app.ledger
    corrections = ledger.corrections_of([d.id for d in decisions])
    runs = {d.run_id: run for d in decisions if (run := ledger.run(d.run_id)) is not None}
    heirs = [d for d in decisions if d.inherited_from]
    ancestors = ledger.explained(heirs[0].account, [d.inherited_from or "" for d in heirs]) if heirs else {}
    events = tell(decisions, corrections, runs, ancestors)
    if as_json:
        account = app.settings.account(decisions[0].account)
        parent = account.categories.parent if account else "Triage"
        parts.print_json(
            {
                "message_key": decisions[0].message_key,
                "account": decisions[0].account,
                "story": [{"at": stamp(e.at), "what": e.what} for e in events],
                "decisions": [decision_json(d, parent=parent) for d in decisions],
                "corrections": [correction_json(c) for c in corrections],
            }
        )
    else:
        show(make_console(), decisions, events)
    return 0


def find(app: App, key: str) -> tuple[DecisionRecord, ...]:
    """All decisions of the message, oldest first, those under its other keys (it was moved) too. Raises ConfigError."""
    found = app.ledger.decision_by_key(key)
    if not found:
        raise ConfigError(f"No message's key begins with {key}, or several do. `triage show RUN --json` lists keys.")
    newest = found[0]
    same = {d.id: d for d in found}
    if newest.message_id_key:
        same |= {d.id: d for d in app.ledger.decisions_by_message(newest.account, newest.message_id_key)}
    return tuple(sorted(same.values(), key=lambda d: (d.decided_at, d.id)))


def show(console: Console, decisions: tuple[DecisionRecord, ...], events: tuple[Event, ...]) -> None:
    newest = decisions[-1]
    subject = f": {theme.harmless(newest.subject)}" if newest.subject else ""
    console.print(Text(f"Message {newest.message_key[:12]} of account {newest.account}{subject}", style=theme.HEAD))
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style=theme.CALM)
    table.add_column(overflow="fold")
    for event in events:
        table.add_row(f"{event.at:%Y-%m-%d %H:%M:%S}" if event.at else "", Text(theme.harmless(event.what)))
    console.print(table)
