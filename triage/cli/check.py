"""`triage check`: the configuration, the secrets, each mailbox, and on request each decision model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from triage.bootstrap import App
from triage.cli import open as parts
from triage.cli.check_models import check_models
from triage.cli.render import check_report
from triage.cli.theme import make_console
from triage.config.load import check_secrets
from triage.config.settings import AccountSettings
from triage.domain.errors import TriageError
from triage.pipeline.run_mail import oldest_waiting
from triage.report.finding import Finding
from triage.report.mailbox_check import check_facts


def check_command(config: str | None, account: str | None, *, ask: bool, as_json: bool) -> int:
    """0 if everything works, 1 if something does not, 2 (raised) if the configuration itself cannot be read."""
    with parts.opened(config) as app:
        accounts = parts.chosen(app, account)
        items = [Finding("ok", "configuration", f"{app.settings.file}: {len(app.settings.accounts)} account(s)")]
        items += [Finding("warn", "configuration", warning) for warning in app.settings.warnings]
        items += [Finding("fail", "secret", problem) for problem in check_secrets(app.settings)]
        items += _ledger(app)
        items += check_models(app, accounts, ask=ask)
        for settings in accounts:
            items += _mailbox(app, settings)
    if as_json:
        parts.print_json(
            {"ok": all(i.state != "fail" for i in items), "findings": [dataclasses.asdict(i) for i in items]}
        )
    else:
        make_console().print(check_report(items))
    return 1 if any(i.state == "fail" for i in items) else 0


def _ledger(app: App) -> Iterator[Finding]:
    try:
        waiting = app.ledger.depth()
        yield Finding("ok", "ledger", f"opens and is up to date; {waiting} run(s) waiting")
    except TriageError as error:
        yield Finding("fail", "ledger", str(error))


def _mailbox(app: App, settings: AccountSettings) -> Iterator[Finding]:
    mailbox = app.mailbox(settings)
    try:
        facts = mailbox.open()
        for finding in check_facts(facts, settings.categories, settings.mode):
            yield Finding(finding.state, f"{settings.name}: {finding.what}", finding.found, finding.remedy)
        labels = settings.categories.settled_labels
        oldest = oldest_waiting(mailbox, app.run_mail(settings.name), labels, settings.since)
        waiting = f"oldest unsorted message is of {oldest:%Y-%m-%d %H:%M}" if oldest else "nothing waits to be sorted"
        yield Finding("ok", f"{settings.name}: waiting", f"{waiting} (since {settings.since})")
    except TriageError as error:
        yield Finding("fail", f"{settings.name}: mailbox", f"{settings.where}: {error}")
    finally:
        mailbox.close()
