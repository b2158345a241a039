"""The demo's runs: ordinary manual ones, through the queue, until there is nothing left to sort."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from triage import logs
from triage.bootstrap import App
from triage.cli import demo_text, render, theme
from triage.cli.audit import audit_account
from triage.cli.run import make_run, stop_on_signals
from triage.cli.tables import Face, Faces
from triage.config.load import load
from triage.config.settings import AccountSettings
from triage.decide.cost import PRICES
from triage.demo.config import ACCOUNT
from triage.demo.cost import estimate
from triage.demo.mails import Sample
from triage.demo.score import score
from triage.domain.category import Action
from triage.domain.mail import MessageRef
from triage.domain.record import DecisionRecord, Run, RunState
from triage.prepare.addresses import readable
from triage.prepare.headers import Fields, decode_words
from triage.report.audit import Audit

MODEL = "jev-latest"
"""The decision model whose published price the demo compares with."""


def sort_and_tell(directory: Path, samples: Sequence[Sample], console: Console) -> bool:
    """Sort the mailbox that the configuration in `directory` names, and show what came of it.

    True if everything was sorted and every invariant held.
    """
    logs.configure("error")
    app = App(load(directory, {}))
    try:
        account = app.account(ACCOUNT)
        sorting = _sort(app, account, samples, console)
        audit = audit_account(app, account, datetime.combine(account.since, time.min, tzinfo=UTC))
        _tell(app, account, sorting, audit, console)
    finally:
        app.close()
    finished = len(sorting.decisions) == len(sorting.truth) and all(r.state is RunState.DONE for r in sorting.runs)
    return finished and audit.holds


@contextmanager
def dashboard(directory: Path) -> Iterator[str]:
    """The address of the pages about what was sorted, served until the end of the block."""
    import structlog

    from triage.web.server import web_server

    app = App(load(directory, {}))
    try:
        with web_server(lambda: app, structlog.get_logger()) as address:
            yield address
    finally:
        app.close()


@dataclass(frozen=True, slots=True)
class _Sorting:
    """What the runs did; the faces of the mail, and what a person would have chosen for it."""

    runs: tuple[Run, ...]
    decisions: tuple[DecisionRecord, ...]
    faces: Faces
    truth: Mapping[MessageRef, str]


def _sort(app: App, account: AccountSettings, samples: Sequence[Sample], console: Console) -> _Sorting:
    faces = _look(app, account)
    inbox = [sample for sample in samples if sample.mailbox == account.inbox]
    truth = {ref: each.category for ref, each in zip(sorted(faces), inbox, strict=True) if each.unsorted}
    runs: list[Run] = []
    decisions: list[DecisionRecord] = []
    with stop_on_signals(app.stop), _progress(console) as progress:
        task = progress.add_task("Sorting", total=len(truth))
        while len(decisions) < len(truth):
            run = make_run(app, account.name, {})
            if run is None or app.stop.is_set():
                break
            made = app.ledger.decisions(run.id)
            runs.append(run)
            decisions += made
            progress.update(task, completed=len(decisions))
            progress.console.print(demo_text.run_line(len(runs), run))
            if run.state is not RunState.DONE or not made:
                break
    return _Sorting(tuple(runs), tuple(decisions), faces, truth)


def _look(app: App, account: AccountSettings) -> Faces:
    """Sender and subject of everything in the inbox, read as any mail client would."""
    mailbox = app.mailbox(account)
    try:
        mailbox.open()
        heads = mailbox.fetch_flags(account.inbox, mailbox.search(account.inbox, ["ALL"]))
    finally:
        mailbox.close()
    return {head.ref: _face(Fields(head.headers)) for head in heads.values()}


def _face(fields: Fields) -> Face:
    sender = readable(fields.first("from"), 1)
    return Face(sender.partition(" <")[0], decode_words(fields.first("subject")))


def _tell(app: App, account: AccountSettings, sorting: _Sorting, audit: Audit, console: Console) -> None:
    archiving = frozenset(c.id for c in account.categories.categories if c.action is Action.ARCHIVE)
    decisions, faces = sorting.decisions, sorting.faces
    console.print()
    console.print(render.batch_table(decisions, faces, archiving))
    stayed = sum(d.archived_at is None for d in decisions)
    _title(console, f"What stayed in the inbox, and why ({stayed} of {len(decisions)})")
    console.print(render.inbox_left_table(decisions, faces, archiving))
    _title(console, "Audit")
    console.print(render.audit_table(audit.checks))
    console.print()
    console.print(render.cost_line(decisions))
    price = next((entry for entry in PRICES if entry.models == MODEL), None)
    if price is not None:
        would_be = estimate(decisions, app.plan(account).question, price)
        console.print(demo_text.model_cost(would_be, MODEL, price))
    console.print()
    console.print(demo_text.honesty(score(decisions, sorting.truth, account.categories)))


def _title(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style=theme.HEAD))


def _progress(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
