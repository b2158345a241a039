"""The table of messages, and the columns all tables are made of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from triage.cli import theme
from triage.domain.decision import Outcome
from triage.domain.mail import MessageRef
from triage.domain.record import DecisionRecord
from triage.report import words

WIDE = 112
"""From this many columns on tables show bars and longer words."""

NO_SUBJECT = "(no subject)"
_RUNNER_UP = {True: 17, False: 12}


@dataclass(frozen=True, slots=True)
class Face:
    """How a message introduces itself: read live from the mailbox, never from the ledger."""

    sender: str
    subject: str


Faces = Mapping[MessageRef, Face]
NO_FACES: Faces = {}


@dataclass(frozen=True, slots=True)
class BatchTable:
    """The messages of a run, one line each: who, what, label, how sure, what else it might be, what became of it."""

    decisions: Sequence[DecisionRecord]
    faces: Faces = field(default_factory=dict)
    archiving: Collection[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.max_width >= WIDE
        table = new_table()
        add_column(table, "Sender", width=17 if wide else 13)
        add_column(table, "Subject", ratio=1)
        add_column(table, "Label", width=15, style=theme.LABEL)
        add_column(table, "Sure")
        add_column(table, "Runner-up", width=_RUNNER_UP[wide])
        add_column(table, "Outcome", width=22 if wide else 10)
        sign = theme.marks(options)
        for decision in self.decisions:
            fate = words.fate(decision, self.archiving)
            face = face_of(decision, self.faces)
            table.add_row(
                Text(face.sender),
                Text(face.subject),
                Text(decision.label_id),
                _sure(decision, wide),
                _runner_up(decision, sign, wide),
                Text(fate.long if wide else fate.short, style=theme.TONES[fate.tone]),
            )
        yield table


def face_of(decision: DecisionRecord, faces: Faces) -> Face:
    """The live sender and subject, else what the ledger may know: the sender's domain, perhaps the subject."""
    face = faces.get(decision.ref)
    if face is not None:
        return Face(theme.harmless(face.sender), theme.harmless(face.subject) or NO_SUBJECT)
    subject = decision.subject if decision.subject is not None else f"message {decision.message_key[:8]}"
    return Face(theme.harmless(decision.sender_domain), theme.harmless(subject) or NO_SUBJECT)


def new_table() -> Table:
    return Table(box=SIMPLE_HEAD, padding=0, show_edge=False, pad_edge=False, expand=True, header_style=theme.HEAD)


def add_column(
    table: Table,
    head: str,
    *,
    width: int | None = None,
    ratio: int | None = None,
    min_width: int | None = None,
    style: str = "",
    justify: Literal["left", "right"] = "left",
) -> None:
    table.add_column(
        head,
        width=width,
        ratio=ratio,
        min_width=min_width,
        style=style,
        justify=justify,
        no_wrap=True,
        overflow="ellipsis",
    )


def _sure(decision: DecisionRecord, wide: bool) -> theme.ConfidenceBar:
    floors = tuple(sorted({decision.floor, decision.archive_floor}))
    style = theme.GOOD if decision.confidence >= decision.floor else theme.DOUBT
    return theme.ConfidenceBar(decision.confidence, floors, theme.BAR_CELLS if wide else 0, style)


def _runner_up(decision: DecisionRecord, sign: theme.Marks, wide: bool) -> Text:
    if decision.outcome is Outcome.INHERITED:
        who = "a person" if decision.inherited_source == "person" else "its thread"
        return Text(f"{sign.thread} {who}", style=theme.CALM)
    second = words.leanings(decision, 1)
    if not second:
        return Text(sign.none, style=theme.CALM)
    name, p = second[0]
    room = _RUNNER_UP[wide] - 4
    cut = name if len(name) <= room else name[: room - 1] + ("…" if sign is theme.FINE else ".")
    return Text(f"{cut} {words.share(p)}", style=theme.CALM)
