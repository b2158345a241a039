"""`triage check`: the configuration, the secrets, each mailbox, and on request each decision model."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from triage.bootstrap import App
from triage.cli import open as parts
from triage.cli.render import CheckItem, check_report
from triage.cli.theme import make_console
from triage.config.load import check_secrets
from triage.config.settings import AccountSettings
from triage.decide.question import build_question
from triage.decide.remote import RemoteProvider
from triage.domain.category import NONE_ID
from triage.domain.decision import Failure
from triage.domain.errors import TriageError
from triage.report.mailbox_check import check_facts


def check_command(config: str | None, account: str | None, *, ask: bool, as_json: bool) -> int:
    """0 if everything works, 1 if something does not, 2 (raised) if the configuration itself cannot be read."""
    with parts.opened(config) as app:
        accounts = parts.chosen(app, account)
        items = [CheckItem("ok", "configuration", f"{app.settings.file}: {len(app.settings.accounts)} account(s)")]
        items += [CheckItem("warn", "configuration", warning) for warning in app.settings.warnings]
        items += [CheckItem("fail", "secret", problem) for problem in check_secrets(app.settings)]
        items += _ledger(app)
        items += _models(app, accounts, ask)
        for settings in accounts:
            items += _mailbox(app, settings)
    if as_json:
        parts.print_json(
            {"ok": all(i.state != "fail" for i in items), "findings": [dataclasses.asdict(i) for i in items]}
        )
    else:
        make_console().print(check_report(items))
    return 1 if any(i.state == "fail" for i in items) else 0


def _ledger(app: App) -> Iterator[CheckItem]:
    try:
        waiting = app.ledger.depth()
        yield CheckItem("ok", "ledger", f"opens and is up to date; {waiting} run(s) waiting")
    except TriageError as error:
        yield CheckItem("fail", "ledger", str(error))


def _models(app: App, accounts: tuple[AccountSettings, ...], ask: bool) -> Iterator[CheckItem]:
    """Each provider of the chain: can it be set up, does it take that many options, and (on request) does it answer."""
    most = max(
        (build_question(a.categories, app.settings.decision.offer_none) for a in accounts), key=lambda q: len(q.ids)
    )
    for settings in app.settings.decision.chain:
        name = f"model {settings.model or settings.provider}"
        try:
            provider = app.provider(settings)
        except TriageError as error:
            yield CheckItem("fail", name, str(error))
            continue
        try:
            if not isinstance(provider, RemoteProvider):
                yield CheckItem(
                    "ok", name, "embedded: no key, no network; modest, and it gets better with about 25 corrections"
                )
                continue
            needed = len([i for i in most.ids if i != NONE_ID])
            if provider.option_limit is not None and needed > provider.option_limit:
                yield CheckItem(
                    "fail",
                    name,
                    f"takes at most {provider.option_limit} options, the largest categories file has {needed}",
                    "Use fewer categories, or a server that takes more.",
                )
                continue
            if not ask:
                yield CheckItem(
                    "ok", name, f"{settings.base_url}: not asked (triage check --ask puts one tiny question)"
                )
                continue
            answer = provider.probe(most, app.clock.monotonic() + app.settings.decision.deadline_s)
            if isinstance(answer, Failure):
                yield CheckItem("fail", name, answer.message)
            else:
                yield CheckItem("ok", name, f"{answer.model} answered in {answer.latency_ms} ms")
        finally:
            provider.close()


def _mailbox(app: App, settings: AccountSettings) -> Iterator[CheckItem]:
    mailbox = app.mailbox(settings)
    try:
        facts = mailbox.open()
        for finding in check_facts(facts, settings.categories, settings.mode):
            yield CheckItem(finding.state, f"{settings.name}: {finding.what}", finding.found, finding.remedy)
        oldest = mailbox.oldest_unlabelled(settings.categories.settled_labels, settings.since)
        waiting = f"oldest unsorted message is of {oldest:%Y-%m-%d %H:%M}" if oldest else "nothing waits to be sorted"
        yield CheckItem("ok", f"{settings.name}: waiting", f"{waiting} (since {settings.since})")
    except TriageError as error:
        yield CheckItem("fail", f"{settings.name}: mailbox", f"{settings.where}: {error}")
    finally:
        mailbox.close()
