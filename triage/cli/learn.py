"""`triage learn`: what the embedded classifier learned from people's corrections, and why it is in use or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from triage.bootstrap import App
from triage.cli import open as parts
from triage.cli import theme
from triage.cli.report import look_at
from triage.cli.run import stop_on_signals
from triage.cli.theme import make_console
from triage.config.settings import AccountSettings
from triage.decide.embedded.learn import ENOUGH, FEWEST
from triage.domain.correction import CorrectionKind
from triage.pipeline.learning import FAILED, KEPT, TOO_FEW, Summary
from triage.report.text import minute

OFF = "off"
NEVER = "never"
_VERDICTS = {
    KEPT: "In use.",
    "archives_more": "Not in use: it would have archived more mail that people wanted to keep.",
    "no_better": "Not in use: it was not right more often than without.",
    TOO_FEW: f"Nothing learned yet: {FEWEST} corrections are the least, about {ENOUGH} make a difference.",
    NEVER: "Nothing was tried yet: the next run with new mail does, or `triage learn`.",
    FAILED: "It has not worked yet.",
    OFF: "Not learning: learning is switched off, or the embedded classifier is not in the chain.",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an account's learning stands: a summary, or why there is none; what people corrected since it was made."""

    account: str
    reason: str
    summary: Summary | None = None
    since: int = 0


def learn_command(config: str | None, account: str | None, *, status: bool, as_json: bool) -> int:
    """Learn now, unless only the status is asked for, and tell of each account; 1 if learning failed.

    What is learned here is tried and told; the daemon learns by itself, when it starts and daily.
    """
    with parts.opened(config) as app, stop_on_signals(app.stop):
        chosen = parts.chosen(app, account)
        failed = False
        for settings in chosen if not status else ():
            failed |= not learn_now(app, settings)
        found = [standing(app, settings) for settings in chosen]
    if as_json:
        parts.print_json([standing_json(each) for each in found])
    else:
        for each in found:
            show(make_console(), each)
    return 1 if failed else 0


def learn_now(app: App, settings: AccountSettings) -> bool:
    """Look for corrections and learn from them; False if that failed, which is told."""
    study = app.study(settings)
    if study is None:
        return True
    refused = app.gate.refusal(settings.name)
    if refused is not None:
        parts.say(f"account {settings.name}: {refused}")
        return False
    look_at(app, settings)
    return not study.learn(app.stop).detail


def standing(app: App, settings: AccountSettings) -> Standing:
    """Where an account stands, from the ledger alone."""
    if app.study(settings) is None:
        return Standing(settings.name, OFF)
    summary = Summary.from_json(app.ledger.learning(settings.name))
    if summary is None:
        return Standing(settings.name, NEVER)
    since = app.ledger.correction_counts(settings.name, summary.at)
    kinds = (CorrectionKind.RELABELLED, CorrectionKind.MOVED_BACK)
    return Standing(settings.name, summary.reason, summary, sum(n for (kind, *_), n in since.items() if kind in kinds))


def standing_json(each: Standing) -> dict[str, Any]:
    """`triage learn --json`, one account."""
    summary = each.summary.to_json() if each.summary else {}
    used = each.summary.used if each.summary else 0
    return {
        "account": each.account,
        **summary,
        "reason": each.reason,
        "in_use": each.reason == KEPT,
        "corrections_since": each.since,
        "until_it_makes_a_difference": max(0, ENOUGH - used),
    }


def show(console: Console, each: Standing) -> None:
    """One account's standing on a terminal."""
    console.print(Text(each.account, style=theme.HEAD))
    good = theme.GOOD if each.reason == KEPT else theme.CALM
    console.print(Padding(Text(_VERDICTS[each.reason], style=good), (0, 0, 0, 2)))
    if each.summary is None:
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column()
    for name, value in _rows(each, each.summary):
        table.add_row(Text(name, style=theme.CALM), Text(theme.harmless(value)))
    console.print(Padding(table, (0, 0, 0, 2)))


def _rows(each: Standing, summary: Summary) -> list[tuple[str, str]]:
    labels = ", ".join(f"{label} {count}" for label, count in summary.by_label.items())
    sources = ", ".join(f"{source.replace('_', ' ')} {count}" for source, count in summary.by_source.items())
    rows = [("Fitted", f"{minute(summary.at)} UTC"), ("Corrections", f"{summary.used} ({sources or 'none yet'})")]
    if summary.by_label:
        rows.append(("Towards", labels))
    if summary.reason not in (TOO_FEW, FAILED):
        before, after = summary.before, summary.after
        rows += [
            ("Right", f"{before.right} before, {after.right} after, of {summary.used} it had not seen"),
            ("Wrongly archived", f"{before.wrongly_archived} before, {after.wrongly_archived} after, of "
             f"{summary.protected} that were to stay"),
            ("Answers as", summary.model),
        ]  # fmt: skip
    if summary.held:
        rows.append(("Held", f"{summary.held} mails that were read and left as they were"))
    if each.since:
        rows.append(("Since then", f"{each.since} more corrections, for the next time"))
    if summary.used < ENOUGH:
        rows.append(("To come", f"about {ENOUGH - summary.used} more corrections until it makes a difference"))
    if summary.detail:
        rows.append(("Last try", f"failed: {summary.detail}"))
    return rows
