"""From the records of a run to what a person reads on a terminal. Pure: no I/O, no clock.

Everything fits 80 columns and uses the room of 120; mail text is made harmless before it gets here or here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from triage.cli import theme
from triage.cli.tables import NO_FACES, WIDE, BatchTable, Faces, add_column, face_of, new_table
from triage.domain.decision import Outcome
from triage.domain.record import DecisionRecord, Run, RunState, StepRecord
from triage.report import words
from triage.report.finding import Finding
from triage.report.text import minute as minute
from triage.report.text import money as money

SHOWN_VIOLATIONS = 5


def batch_table(
    decisions: Sequence[DecisionRecord], faces: Faces = NO_FACES, archiving: Collection[str] = ()
) -> RenderableType:
    """The run table. `archiving` names the categories whose action is archive, so that "held back" can be told."""
    return BatchTable(decisions, faces, archiving)


def runs_table(runs: Sequence[Run]) -> RenderableType:
    """The list of runs, one line each; times in UTC."""
    if not runs:
        return Text("No runs yet. `triage run` makes one.", style=theme.CALM)
    return _Runs(tuple(runs))


def run_view(
    run: Run,
    steps: Sequence[StepRecord],
    decisions: Sequence[DecisionRecord],
    faces: Faces = NO_FACES,
    archiving: Collection[str] = (),
) -> RenderableType:
    """The whole story of one run: what it was, how long each step took, every decision, why mail stayed, the cost."""
    parts: list[RenderableType] = [_header(run)]
    if run.error:
        parts.append(Text(theme.harmless(run.error), style=theme.BAD))
    if steps:
        parts += [_heading("Steps"), _steps_table(steps)]
    if decisions:
        parts += [_heading("Decisions"), batch_table(decisions, faces, archiving)]
        parts += [_heading("Why"), _why_table(decisions, faces), Text(), cost_line(decisions)]
    else:
        parts.append(Text("No decisions: there was nothing to sort.", style=theme.CALM))
    return Group(*parts)


def inbox_left_table(
    decisions: Sequence[DecisionRecord], faces: Faces = NO_FACES, archiving: Collection[str] = ()
) -> RenderableType:
    """What stayed in the inbox, grouped by why."""
    stayed = [(words.fate(d, archiving), d) for d in decisions]
    parts: list[RenderableType] = []
    for group in words.GROUPS:
        members = sorted(((f, d) for f, d in stayed if f.group == group), key=lambda pair: pair[1].label_id)
        if members:
            parts += [_heading(f"{group} ({len(members)})"), _Stayed(tuple(members), faces)]
    return Group(*parts) if parts else Text("Nothing stayed in the inbox.", style=theme.CALM)


def cost_line(decisions: Sequence[DecisionRecord]) -> Text:
    """What the decisions cost in USD, with the mails that inherited counted as free (DESIGN 6)."""
    inherited = sum(d.outcome is Outcome.INHERITED for d in decisions)
    usd = sum(d.cost_usd for d in decisions)
    line = Text(f"Cost: {money(usd)} for {_mails(len(decisions))}")
    if inherited:
        line.append(f", {inherited} of them free (inherited from their thread)")
    if decisions:
        line.append(f"; {money(1000 * usd / len(decisions))} per 1,000 mails")
    tokens = sum(d.input_tokens for d in decisions)
    line.append(f"; {tokens:,} tokens read by models." if tokens else ".")
    return line


class Invariant(Protocol):
    """One line of an audit: which invariant, over how many items, and what breaks it."""

    @property
    def id(self) -> int | str: ...
    @property
    def words(self) -> str: ...
    @property
    def checked(self) -> int: ...
    @property
    def violations(self) -> Sequence[str]: ...


def audit_table(invariants: Iterable[Invariant]) -> RenderableType:
    """The six invariants, each with how much was looked at, and the first few violations."""
    return _Audit(tuple(invariants))


def check_report(items: Iterable[Finding]) -> RenderableType:
    """A list of findings, each with what to do where something is to be done."""
    return _CheckReport(tuple(items))


@dataclass(frozen=True, slots=True)
class _Audit:
    invariants: tuple[Invariant, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        sign = theme.marks(options)
        table = Table.grid(padding=(0, 2))
        for _ in range(3):
            table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for each in self.invariants:
            bad = len(each.violations)
            found = Text(f"{each.checked:,} checked", style=theme.CALM)
            if bad:
                named = ", ".join(theme.harmless(v) for v in each.violations[:SHOWN_VIOLATIONS])
                found = Text(f"{bad:,} of {each.checked:,}: {named}{' ...' if bad > SHOWN_VIOLATIONS else ''}")
            mark = Text(sign.fail, style=theme.BAD) if bad else Text(sign.ok, style=theme.GOOD)
            table.add_row(mark, str(each.id), each.words, found)
        yield Padding(table, (0, 0, 0, 2))


@dataclass(frozen=True, slots=True)
class _Runs:
    runs: tuple[Run, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.max_width >= WIDE
        table = new_table()
        add_column(table, "Run", width=22)  # whole: it is what `show` and `undo` want, and it begins with the time
        add_column(table, "Account", ratio=1)
        add_column(table, "Trigger", width=8)
        if wide:
            add_column(table, "Fired (UTC)", width=16)
        add_column(table, "State", width=30 if wide else 13)
        for head in ("Mails", "Archived", "Unsure"):
            add_column(table, head, justify="right")
        for run in self.runs:
            table.add_row(
                run.id,
                Text(theme.harmless(run.account)),
                run.trigger.value,
                *([minute(run.fire_time)] if wide else []),
                _state(run),
                *(str(run.counts.get(key, 0)) for key in ("selected", "archived", "below_floor")),
            )
        yield table


@dataclass(frozen=True, slots=True)
class _Stayed:
    members: tuple[tuple[words.Fate, DecisionRecord], ...]
    faces: Faces

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.max_width >= WIDE
        table = Table.grid(padding=(0, 2), expand=True)
        add_column(table, "", width=22 if wide else 14)
        add_column(table, "", ratio=1)
        add_column(table, "", width=46 if wide else 26, style=theme.CALM)
        for fate, decision in self.members:
            face = face_of(decision, self.faces)
            table.add_row(Text(face.sender), Text(face.subject), Text(_stayed_because(fate, decision, wide)))
        yield Padding(table, (0, 0, 0, 2))


@dataclass(frozen=True, slots=True)
class _CheckReport:
    items: tuple[Finding, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        sign = theme.marks(options)
        styles = {"ok": theme.GOOD, "warn": theme.DOUBT, "fail": theme.BAD}
        table = Table.grid(padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for item in self.items:
            text = Text(theme.harmless(item.found))
            if item.remedy:
                text.append(f"\n{theme.harmless(item.remedy)}", style=theme.HEAD)
            table.add_row(Text(getattr(sign, item.state), style=styles[item.state]), Text(item.what), text)
        yield table


def _heading(text: str) -> RenderableType:
    return Text(f"\n{text}", style=theme.HEAD)


def _mails(count: int) -> str:
    return "1 mail" if count == 1 else f"{count:,} mails"


def _stayed_because(fate: words.Fate, decision: DecisionRecord, wide: bool) -> str:
    if fate.group == words.HELD:
        return f"{decision.label_id}: {words.held_back(decision)[wide]}"
    if fate.group == words.UNSURE and decision.probabilities:
        nearest = words.leanings(decision, 2 if wide else 1)
        return " or ".join(f"{name} {words.share(p)}" for name, p in nearest) + "?"
    if fate.group == words.NEEDS:
        inherited = decision.outcome is Outcome.INHERITED
        return f"{decision.label_id}, as its thread" if inherited else decision.label_id
    if fate.group == words.SUSPECT:
        return decision.label_id
    return fate.long


def _state(run: Run) -> Text:
    style = {RunState.DONE: theme.GOOD, RunState.FAILED: theme.BAD}.get(run.state, theme.CALM)
    return Text(f"{run.state.value}: {words.spaced(run.reason)}" if run.reason else run.state.value, style=style)


def _header(run: Run) -> Text:
    line = Text(f"Run {run.id}", style=theme.HEAD)
    line.append(f"\nAccount {theme.harmless(run.account)}, {run.trigger.value}, fired {minute(run.fire_time)} UTC, ")
    line.stylize("not bold", len(f"Run {run.id}"))
    line.append_text(_state(run))
    if run.started_at and run.finished_at:
        line.append(f" after {(run.finished_at - run.started_at).total_seconds():.1f} s")
    if run.counts:
        line.append("\n" + theme.joined([f"{words.spaced(k)} {v}" for k, v in run.counts.items() if v]))
    return line


def _steps_table(steps: Sequence[StepRecord]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(overflow="fold", style=theme.CALM)
    for step in steps:
        counts = theme.joined([f"{words.spaced(key)} {value}" for key, value in step.counts.items()])
        table.add_row(step.name, f"{step.duration_ms:,} ms", counts)
    return Padding(table, (0, 0, 0, 2))


def _why_table(decisions: Sequence[DecisionRecord], faces: Faces) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, max_width=30, overflow="ellipsis")
    table.add_column(overflow="fold", style=theme.CALM)
    for decision in decisions:
        face = face_of(decision, faces)
        table.add_row(
            Text(face.subject or face.sender), Text(f"{theme.harmless(decision.why)} {_answered_by(decision)}")
        )
    return Padding(table, (0, 0, 0, 2))


def _answered_by(decision: DecisionRecord) -> str:
    if decision.provider is None:
        return ""
    model = f" ({theme.harmless(decision.model)})" if decision.model else ""
    place = f", number {decision.chain_position + 1} of the chain" if decision.chain_position else ""
    return f"Answered by {decision.provider}{model}{place} in {decision.latency_ms} ms."
