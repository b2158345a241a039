"""`triage audit`: do the six invariants hold, in the records and in the mailbox?"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from triage.bootstrap import App
from triage.cli import open as parts
from triage.cli import period, render, theme
from triage.cli.theme import make_console
from triage.config.settings import AccountSettings
from triage.domain.errors import MailboxError
from triage.pipeline.corrections import look_for_corrections
from triage.report.audit import Audit, Chain, together
from triage.report.audit_ledger import Scope, audit_ledger
from triage.report.audit_mailbox import Looked, judge_mailbox, look


def audit_command(config: str | None, account: str | None, *, since: str, whole: bool = False, as_json: bool) -> int:
    """Check every account; 0 if all invariants hold, 1 if one does not."""
    with parts.opened(config) as app:
        began = period.since(since, app.clock.now())
        audits = [audit_account(app, settings, began, whole=whole) for settings in parts.chosen(app, account)]
    audit = together(audits)
    if as_json:
        parts.print_json(audit_json(audit, began))
    else:
        show(make_console(), audit, began)
    return 0 if audit.holds else 1


def audit_account(app: App, settings: AccountSettings, since: datetime, *, whole: bool = False) -> Audit:
    """One account's audit: mailbox first, so that what people did meanwhile is on record before the records are read.

    A mailbox that cannot be reached leaves the records to be checked, and is told. Raises LedgerError.
    """
    ledger, categories = app.ledger, settings.categories
    mailbox = app.mailbox(settings)
    looked: Looked | None = None
    unread: tuple[str, ...] = ()
    try:
        closed = app.gate.refusal(settings.name)
        if closed is not None:
            raise closed
        looked = look(mailbox, categories, since)
        look_for_corrections(mailbox, ledger, settings.name, categories, app.look_terms, app.clock.now())
    except MailboxError as error:
        unread = (f"account {settings.name}: the mailbox was not read: {error}",)
    finally:
        mailbox.close()
    archive = looked.facts.archive or looked.facts.archive_to_create if looked else None
    audit = audit_ledger(ledger, Scope(settings.name, categories, since, archive, whole))
    if looked is None:
        return replace(audit, unread=unread)
    judged = audit.plus(judge_mailbox(looked, ledger, settings.name, categories, since, audit.chain))
    return replace(judged, looked=(f"account {settings.name}: {looked.words}",))


def audit_json(audit: Audit, since: datetime) -> dict[str, Any]:
    """`triage audit --json` (DESIGN 7)."""
    return {
        "holds": audit.holds,
        "since": since.isoformat(timespec="seconds"),
        "invariants": [
            {
                "id": i.id,
                "words": i.words,
                "holds": i.holds,
                "checked": i.checked,
                "violations": list(i.violations),
                "notes": list(i.notes),
                "how": i.how,
            }
            for i in audit.invariants
        ],
        "chain": _chain_json(audit.chain),
        "receipts": _chain_json(audit.receipts),
        "mailboxes": list(audit.looked),
        "mailboxes_not_read": list(audit.unread),
    }


def _chain_json(chain: Chain) -> dict[str, Any]:
    return {
        "words": chain.words,
        "holds": chain.holds,
        "checked": chain.checked,
        "violations": list(chain.violations),
        "notes": list(chain.notes),
    }


def show(console: Console, audit: Audit, since: datetime) -> None:
    """The audit for a person: its lines, what breaks them, and how each was checked."""
    verdict = "Everything holds" if audit.holds else "Something does not hold"
    console.print(Text(f"{verdict}, in what was recorded since {render.minute(since)} UTC.", style=theme.HEAD))
    console.print(render.audit_table(audit.checks))
    lines = [*audit.looked, *(note for check in audit.checks[::-1] for note in check.notes)]
    for line in audit.unread:
        console.print(Padding(Text(theme.harmless(line), style=theme.DOUBT), (0, 0, 0, 2)))
    for line in lines:
        console.print(Padding(Text(theme.harmless(line), style=theme.CALM), (0, 0, 0, 2)))
    console.print(Padding(Text("How each was checked: docs/audit.md, or --json.", style=theme.CALM), (0, 0, 0, 2)))
