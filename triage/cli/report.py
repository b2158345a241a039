"""`triage report`: what the records say about categories, models and cost; terminal, JSON, or one HTML file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from triage.bootstrap import App
from triage.cli import open as parts
from triage.cli import period, theme
from triage.cli.theme import make_console
from triage.config.settings import AccountSettings
from triage.domain.errors import ConfigError, MailboxError
from triage.pipeline.corrections import look_for_corrections
from triage.report.text import minute, money
from triage.report.tool_rates import tool_words
from triage.report.tuning import EXPECTED_UNSURE, Report
from triage.report.tuning_build import build
from triage.report.tuning_html import report_html
from triage.report.tuning_json import report_json


def report_command(
    config: str | None, account: str | None, *, since: str, html: Path | None = None, look: bool = True, as_json: bool
) -> int:
    """Report on each account. The mailbox is looked at first for corrections, unless `look` is False."""
    with parts.opened(config) as app:
        until = app.clock.now()
        began = period.since(since, until)
        chosen = parts.chosen(app, account)
        if look:
            for settings in chosen:
                look_at(app, settings)
        reports = [build(app.ledger, a.name, a.categories, began, app.clock.now()) for a in chosen]
        floors = sorted({app.settings.decision.floor, *(p.archive_floor for p in app.settings.decision.chain)})
    if html is not None:
        write(html, report_html(reports, floors))
        parts.say(f"Written: {html}")
    if as_json:
        parts.print_json([report_json(r) for r in reports])
    elif html is None:
        for report in reports:
            show(make_console(), report)
    return 0


def look_at(app: App, settings: AccountSettings) -> None:
    """Look for corrections now; a mailbox that cannot be reached is told, and the report goes on without."""
    if not app.look_terms.limit:
        return
    mailbox = app.mailbox(settings)
    try:
        closed = app.gate.refusal(settings.name)
        if closed is not None:
            raise closed
        look_for_corrections(mailbox, app.ledger, settings.name, settings.categories, app.look_terms, app.clock.now())
    except MailboxError as error:
        parts.say(f"account {settings.name}: corrections were not looked for: {error}")
    finally:
        mailbox.close()


def write(path: Path, text: str) -> None:
    """Write a file for a person. Raises ConfigError."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from error


def show(console: Console, report: Report) -> None:
    """One account's report on a terminal."""
    console.print(Text(f"{report.account}: {minute(report.since)} to {minute(report.until)} UTC", style=theme.HEAD))
    if report.decisions:
        _decided(console, report)
    else:
        console.print(_in(Text("Nothing was decided in this time.", style=theme.CALM)))
    if report.tool.calls:
        _section(console, "Mail tool", [Text(tool_words(report.tool))])


def _decided(console: Console, report: Report) -> None:
    console.print(_in(Text(_summary(report))))
    _section(console, "What to do", [_point(each) for each in report.advice] or [Text("Nothing stands out.")])
    _section(console, "Categories", [_categories(report)])
    pairs = [Text(f"{p.count:>5} x  {p.first} / {p.second}{'  (swap)' if p.swaps else ''}") for p in report.pairs]
    _section(console, "Came first and second near 0.4", pairs or [Text("None came close to another.")])
    _section(console, "Corrections", _corrections(report))
    _section(console, "Calibration", _calibration(report))
    _section(console, "Answers", _answers(report))
    _section(console, "Cost", _cost(report))


def _summary(report: Report) -> str:
    return (
        f"{report.decisions:,} decisions, {report.archived:,} archived; {report.below_share:.1%} of the answers under "
        f"the floor (about {EXPECTED_UNSURE:.0%} is usual); {report.inherited_share:.1%} inherited, "
        f"{report.recovered:,} recovered, {report.fallback_share:.1%} by a fallback, "
        f"{report.failed:,} without an answer."
    )


def _categories(report: Report) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style=theme.LABEL)
    for _ in range(6):
        table.add_column(justify="right", no_wrap=True)
    table.add_row(*(Text(h, style=theme.HEAD) for h in
                    ("Label", "Mails", "Archived", "Inherited", "Under floor", "Share", "Corrected")))  # fmt: skip
    for c in report.categories:
        numbers = (c.count, c.archived, c.inherited, c.nearly)
        table.add_row(c.label_id, *(f"{n:,}" for n in numbers), f"{c.below_share:.0%}", f"{c.corrected:,}")
    return table


def _corrections(report: Report) -> Sequence[RenderableType]:
    c = report.corrections
    lines = [f"{n:>5} x  {before} became {after}" for before, after, n in c.relabelled]
    lines += [f"{n:>5} x  {label}: label taken off" for label, n in c.unlabelled.items()]
    lines += [f"{n:>5} x  {label}: moved back from the archive" for label, n in c.moved_back.items()]
    lines += [f"{c.undone:>5} x  taken back by triage undo"] if c.undone else []
    lines.append(f"{sum(c.confirmed.values()):,} decisions were read and left as they were.")
    return [Text(line) for line in lines]


def _calibration(report: Report) -> Sequence[RenderableType]:
    if not report.calibration:
        return [Text("Nothing was reviewed yet.", style=theme.CALM)]
    return [
        Text(f"{c.label_id:<20} {c.right:,} of {c.reviewed:,} reviewed were right, calibration error {c.ece:.3f}")
        for c in report.calibration
    ]


def _answers(report: Report) -> Sequence[RenderableType]:
    lines = [
        f"{e.provider:<20} {e.count:,} answers; median {e.p50:,} ms, 95% {e.p95:,} ms, 99% {e.p99:,} ms"
        for e in report.latency
    ]
    models = ", ".join(f"{theme.harmless(s.model)} ({s.answers:,})" for s in report.served)
    return [Text(line) for line in lines] + [Text(f"Models as served: {models or 'none'}", style=theme.CALM)]


def _cost(report: Report) -> Sequence[RenderableType]:
    c = report.cost
    lines = [
        f"{money(c.usd)} in all, {money(c.per_1000)} per 1,000 mails; {c.input_tokens:,} tokens read, "
        f"{c.question_tokens:,} of them the question itself.",
        f"Threads saved about {c.saved_by_threads_tokens:,} tokens ({money(c.saved_by_threads_usd)}); "
        f"{c.links_removed:,} removed links about {c.saved_by_links_tokens:,}.",
    ]
    if c.tail:
        tail = ", ".join(f"{theme.harmless(d) or 'unknown'} ({t:,})" for d, _, t in c.tail[:8])
        more = f" and {len(c.tail) - 8} more" if len(c.tail) > 8 else ""
        lines.append(f"{c.tail_share:.0%} of all tokens go to {len(c.tail)} sender(s): {tail}{more}.")
    return [Text(line) for line in lines]


def _section(console: Console, title: str, lines: Sequence[RenderableType]) -> None:
    console.print(Text(f"\n{title}", style=theme.HEAD))
    for line in lines:
        console.print(_in(line))


def _point(text: str) -> RenderableType:
    """A sentence after a dash, its further lines under its first word."""
    table = Table.grid(padding=(0, 1))
    table.add_row("-", Text(theme.harmless(text)))
    return table


def _in(what: RenderableType) -> Padding:
    return Padding(what, (0, 0, 0, 2))
