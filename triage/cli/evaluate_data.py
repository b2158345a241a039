"""`triage eval DATA`."""

from __future__ import annotations

from pathlib import Path

from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from triage.cli import open as parts
from triage.cli.deciding import bench
from triage.cli.evaluate import evaluation_json, render_evaluation, run_evaluation
from triage.cli.theme import make_console
from triage.domain.category import Action
from triage.domain.mail import PreparedMail
from triage.prepare import prepare, read_message


def evaluate_command(
    data: str,
    config: str | None,
    account: str | None,
    *,
    predictions: Path | None,
    plot: Path | None,
    as_json: bool,
) -> int:
    """Measure the configured chain on labelled mail. Raises ConfigError."""
    table = bench(config, account)
    archiving = frozenset(i for i in table.categories.ids if table.categories.action(i) is Action.ARCHIVE)

    def read(raw: bytes) -> PreparedMail:
        return prepare(read_message(raw), max_chars=table.decision.body_chars)

    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    try:
        with Progress(*columns, console=make_console(stderr=True), transient=True) as progress:
            task = progress.add_task("mails", total=None)
            found = run_evaluation(
                Path(data),
                read,
                table.decide,
                floor=table.decision.floor,
                archiving=archiving,
                predictions=predictions,
                plot=plot,
                on_mail=lambda n: progress.update(task, completed=n),
            )
    finally:
        table.chain.close()
    if as_json:
        parts.print_json(evaluation_json(found))
    else:
        make_console().print(render_evaluation(found))
    return 0
