"""`triage suggest`: what corrections say about categories.yaml, as a diff to review. Nothing is applied."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from triage.bootstrap import App
from triage.cli import open as parts
from triage.cli import period
from triage.cli.report import look_at
from triage.config.settings import AccountSettings
from triage.domain.correction import Correction, CorrectionKind
from triage.domain.errors import ConfigError, MailboxError
from triage.domain.record import DecisionRecord
from triage.prepare.headers import Fields, decode_words
from triage.report.suggest import Suggestion, as_diff, suggest
from triage.report.text import harmless
from triage.report.tuning_build import build

MOST_SUBJECTS = 200


def suggest_command(config: str | None, account: str | None, *, since: str, as_json: bool) -> int:
    """Print a diff of the categories file; 0 if there is something to suggest or nothing to change."""
    with parts.opened(config) as app:
        settings = parts.one_account(app, account)
        began = period.since(since, app.clock.now())
        look_at(app, settings)
        suggestions = suggestions_for(app, settings, began)
        text = _read(settings)
    diff = as_diff(text, suggestions, str(settings.categories_file.name))
    if as_json:
        parts.print_json(
            [
                {"category": s.category, "examples": list(s.examples), "floor": s.floor, "notes": list(s.notes)}
                for s in suggestions
            ]
        )
    elif diff:
        print(diff, end="")  # noqa: T201
        parts.say("Nothing was changed. Review it, edit the file, then `triage replay FILE` shows what would flip.")
    else:
        parts.say("Nothing to suggest: no corrections, and no categories that compete again and again.")
    return 0


def suggestions_for(app: App, settings: AccountSettings, since: datetime) -> tuple[Suggestion, ...]:
    """Suggestions for one account. Subjects are read from the mailbox at this moment and shown, never kept."""
    reviewed = app.ledger.reviewed(settings.name, since)
    pairs = build(app.ledger, settings.name, settings.categories, since, app.clock.now()).pairs
    subjects = {r.id: r.subject for _, r in reviewed if r.subject}
    subjects |= _live_subjects(app, settings, [pair for pair in reviewed if pair[1].id not in subjects])
    return suggest(settings.categories, reviewed, pairs, subjects, app.settings.decision.floor)


def _live_subjects(
    app: App, settings: AccountSettings, reviewed: Sequence[tuple[Correction, DecisionRecord]]
) -> dict[str, str]:
    wanted = [(c, r) for c, r in reviewed if c.kind is CorrectionKind.RELABELLED and c.ref is not None][:MOST_SUBJECTS]
    if not wanted:
        return {}
    mailbox = app.mailbox(settings)
    found: dict[str, str] = {}
    try:
        mailbox.open()
        for box in dict.fromkeys(c.ref.mailbox for c, _ in wanted if c.ref):
            there = {c.ref.uid: (c, r) for c, r in wanted if c.ref and c.ref.mailbox == box}
            for uid, head in mailbox.fetch_flags(box, sorted(there)).items():
                correction, record = there[uid]
                subject = harmless(decode_words(Fields(head.headers).first("subject")))
                if head.ref == correction.ref and subject:
                    found[record.id] = subject[:200]
    except MailboxError as error:
        parts.say(f"account {settings.name}: subjects could not be read: {error}")
    finally:
        mailbox.close()
    return found


def _read(settings: AccountSettings) -> str:
    try:
        return settings.categories_file.read_text("utf-8")
    except OSError as error:
        raise ConfigError(f"{settings.categories_file}: cannot be read: {error.strerror}") from error
