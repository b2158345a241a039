"""From corrections and figures to edits of categories.yaml that a person reviews. Nothing is applied. Pure."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff

from triage.domain.category import Action, CategorySet
from triage.domain.correction import Correction, CorrectionKind
from triage.domain.record import DecisionRecord
from triage.report.tuning import Pair, times

MOST_EXAMPLES = 3
ENOUGH = 5
"""A floor is suggested only from so many reviewed decisions of a label."""
WANTED_RIGHT = 0.95
HIGHEST_FLOOR = 0.95


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One edit: `examples` to add to a category, a `floor` for it, and `notes` as comments above it."""

    category: str
    examples: tuple[str, ...] = ()
    floor: float | None = None
    notes: tuple[str, ...] = ()


def suggest(
    categories: CategorySet,
    reviewed: Sequence[tuple[Correction, DecisionRecord]],
    pairs: Sequence[Pair],
    subjects: Mapping[str, str],
    general_floor: float,
) -> tuple[Suggestion, ...]:
    """Suggestions, in the order of the categories. `subjects` by decision id: recorded, or fetched this very moment."""
    latest: dict[str, tuple[Correction, DecisionRecord]] = {}
    for correction, record in reviewed:  # newest first
        latest.setdefault(record.id, (correction, record))
    examples: dict[str, list[str]] = defaultdict(list)
    made: Counter[tuple[str, str]] = Counter()
    back: Counter[str] = Counter()
    for correction, record in latest.values():
        if correction.kind is CorrectionKind.RELABELLED and correction.to_label:
            made[record.label_id, correction.to_label] += 1
            if subject := subjects.get(record.id):
                examples[correction.to_label].append(subject)
        elif correction.kind is CorrectionKind.MOVED_BACK:
            back[record.label_id] += 1
    found = []
    for category in categories.categories:
        known = {e.casefold() for e in category.examples}
        new = tuple(dict.fromkeys(e for e in examples[category.id] if e.casefold() not in known))[:MOST_EXAMPLES]
        floor = _floor([r for r in latest.values() if r[1].label_id == category.id], category.floor or general_floor)
        if category.action is not Action.ARCHIVE:
            floor = None
        notes = _notes(category.id, made, back, pairs)
        if new or floor is not None or notes:
            found.append(Suggestion(category.id, new, floor, tuple(notes)))
    return tuple(found)


def _notes(label: str, made: Counter[tuple[str, str]], back: Counter[str], pairs: Sequence[Pair]) -> list[str]:
    notes = [f"people made {b} of {a} {times(n)}: what tells them apart?" for (a, b), n in made.items() if a == label]
    notes += [f"people moved {label} back from the archive {times(n)}" for n in [back[label]] if n]
    notes += [
        f"came close to {pair.second if pair.first == label else pair.first} {times(pair.count)}: say where it ends"
        for pair in pairs
        if label in (pair.first, pair.second) and pair.count >= 3
    ]
    return notes


def _floor(reviewed: Sequence[tuple[Correction, DecisionRecord]], now: float) -> float | None:
    """The lowest floor above which nineteen of twenty reviewed decisions were right, if that is higher than now."""
    points = sorted(
        (
            (record.confidence, correction.kind is CorrectionKind.CONFIRMED)
            for correction, record in reviewed
            if record.provider is not None and correction.kind is not CorrectionKind.UNDONE
        ),
        reverse=True,
    )
    points = [p for p in points if p[0] >= now]
    if len(points) < ENOUGH or all(right for _, right in points):
        return None
    best = None
    right = 0
    for n, (sure, ok) in enumerate(points, 1):
        right += ok
        if right / n >= WANTED_RIGHT:
            best = sure
    wrong = max(sure for sure, ok in points if not ok)
    floor = math.ceil((best if best is not None else wrong + 0.01) * 100) / 100
    floor = min(HIGHEST_FLOOR, floor)
    return floor if floor > now else None


def as_diff(text: str, suggestions: Sequence[Suggestion], name: str) -> str:
    """The suggestions as a unified diff of the categories file, to be read and applied by hand or with `patch`."""
    return "".join(
        unified_diff(
            text.splitlines(keepends=True),
            edited(text, suggestions).splitlines(keepends=True),
            name,
            f"{name} (suggested)",
        )
    )


def edited(text: str, suggestions: Sequence[Suggestion]) -> str:
    """The categories file with the suggestions written in; comments and order stay as they are."""
    lines = text.splitlines()
    for suggestion in suggestions:
        at = _entry(lines, suggestion.category)
        if at is not None:
            lines = _write(lines, *at, suggestion)
    return "\n".join(lines) + "\n"


def _entry(lines: Sequence[str], category: str) -> tuple[int, int, int] | None:
    """Where a category stands: first line, line behind its last, and the column of its keys."""
    for n, line in enumerate(lines):
        stripped = line.lstrip()
        bare = stripped.removeprefix("-").strip()
        if (
            stripped.startswith("-")
            and bare.split("#")[0].strip().replace("'", "").replace('"', "") == f"id: {category}"
        ):
            dash = len(line) - len(stripped)
            column = line.index("id:")
            end = n + 1
            while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > dash):
                end += 1
            while not lines[end - 1].strip():
                end -= 1
            return n, end, column
    return None


def _write(lines: list[str], first: int, end: int, column: int, suggestion: Suggestion) -> list[str]:
    pad = " " * column
    body = lines[first:end]
    if suggestion.floor is not None:
        body = [line for line in body if not line.strip().startswith("floor:")]
        body.append(f"{pad}floor: {suggestion.floor:g}")
    if suggestion.examples:
        at = next((n for n, line in enumerate(body) if line.strip() == "examples:"), None)
        new = [f"{pad}  - {_quoted(example)}" for example in suggestion.examples]
        if at is None:
            body += [f"{pad}examples:", *new]
        else:
            body[at + 1 : at + 1] = new
    dash = " " * (len(body[0]) - len(body[0].lstrip()))
    notes = [f"{dash}# {note}" for note in suggestion.notes]
    return [*lines[:first], *notes, *body, *lines[end:]]


def _quoted(text: str) -> str:
    """One line of text as a YAML scalar in double quotes."""
    safe = "".join(c if c.isprintable() else " " for c in text)
    return '"' + safe.replace("\\", "\\\\").replace('"', '\\"') + '"'
