"""`triage eval DATA`: figures of a provider on labelled mail, for a person or as JSON; predictions, plot as files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from triage.domain.errors import ConfigError
from triage.report.evaluation import Decide, Evaluation, Figures, Judged, Prepare, evaluate, judge_all
from triage.report.labelled_mail import LabelledMail, read_labelled
from triage.report.reliability_svg import reliability_svg


def run_evaluation(
    data: Path,
    prepare: Prepare,
    decide: Decide,
    *,
    floor: float,
    archiving: frozenset[str],
    predictions: Path | None = None,
    plot: Path | None = None,
    on_mail: Callable[[int], None] | None = None,
) -> Evaluation:
    """Read labelled mail, ask for each, write what was asked for, and give the figures.

    `predictions` gets one line a mail, as it is known; `plot` the reliability plot. `on_mail` hears how many are done.
    Raises ConfigError if the data cannot be read or holds no mail, or if a file cannot be written.
    """
    return evaluate_mails(
        read_labelled(data), prepare, decide, floor=floor, archiving=archiving,
        predictions=predictions, plot=plot, on_mail=on_mail, name=data.name,
    )  # fmt: skip


def evaluate_mails(
    mails: Iterator[LabelledMail],
    prepare: Prepare,
    decide: Decide,
    *,
    floor: float,
    archiving: frozenset[str],
    predictions: Path | None = None,
    plot: Path | None = None,
    on_mail: Callable[[int], None] | None = None,
    name: str = "labelled mail",
) -> Evaluation:
    """As `run_evaluation`, of mail that is already at hand (labels confirmed in a mailbox)."""
    judged: list[Judged] = []
    lines = _writable(predictions) if predictions else None
    try:
        for one in judge_all(mails, prepare, decide):
            judged.append(one)
            if lines:
                lines.write(json.dumps(prediction_json(one), ensure_ascii=False) + "\n")
            if on_mail:
                on_mail(len(judged))
    finally:
        if lines:
            lines.close()
    if not judged:
        raise ConfigError(f"{name}: there is no labelled mail in it.")
    found = evaluate(judged, floor=floor, archiving=archiving)
    if plot:
        with _writable(plot) as file:
            file.write(reliability_svg(found.all.bins, f"Reliability on {name}"))
    return found


def _writable(path: Path) -> TextIO:
    try:
        return path.open("w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror})") from None


def prediction_json(judged: Judged) -> dict[str, Any]:
    """One line of `--predictions` (DESIGN 7)."""
    return {
        "id": judged.id,
        "probabilities": judged.probabilities,
        "confidence": judged.confidence,
        "archive": judged.archived,
        "ms": round(judged.ms, 3),
    }


def evaluation_json(found: Evaluation) -> dict[str, Any]:
    """`triage eval --json`."""
    return {
        "floor": found.floor,
        **_figures_json(found.all),
        "by_category": {name: _figures_json(f) for name, f in found.by_category.items()},
        "by_lang": {name: _figures_json(f) for name, f in found.by_lang.items()},
    }


def render_evaluation(found: Evaluation) -> RenderableType:
    """The figures as a person reads them: the whole first, then by category and by language."""
    f = found.all
    head = [
        f"{f.mails} mails, {f.unanswered} without a usable answer",
        f"accuracy {f.accuracy:.3f}, macro-F1 {f.macro_f1:.3f}, calibration error {f.ece:.3f}",
        f"at the floor {found.floor:.2f}: {f.coverage:.1%} decided, {f.accuracy_covered:.1%} of them right",
        f"left the inbox: {f.noise_archived:.1%} of the mail that should",
    ]
    wrong = Text(
        f"wrongly archived: {f.wrongly_archived} of {f.protected} ({f.wrongly_archived_share:.2%})",
        style="bold red" if f.wrongly_archived else "bold green",
    )
    return Group(
        *(Text(line) for line in head),
        wrong,
        Text(f"median {f.ms_median:.1f} ms a mail"),
        _table("category", found.by_category, f.f1),
        _table("language", found.by_lang, None),
    )


def _figures_json(f: Figures) -> dict[str, Any]:
    return asdict(f) | {"wrongly_archived_share": f.wrongly_archived_share}


def _table(name: str, groups: dict[str, Figures], f1: dict[str, float] | None) -> Table:
    table = Table(box=None, header_style="bold", title_justify="left")
    table.add_column(name)
    for column in ("mails", "right", "F1", "decided", "archived", "wrongly"):
        if column != "F1" or f1 is not None:
            table.add_column(column, justify="right")
    for group, f in groups.items():
        row = [group, str(f.mails), f"{f.accuracy:.2f}"]
        row += [f"{f1[group]:.2f}"] if f1 is not None else []
        row += [f"{f.coverage:.2f}", f"{f.noise_archived:.2f}" if f.mails > f.protected else "-"]
        row += [str(f.wrongly_archived) if f.protected else "-"]
        table.add_row(*row)
    return table
