"""One message's probabilities as bars, with the floor drawn where it bites."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from triage.domain.record import DecisionRecord
from triage.web.charts.svg import element, group, label, percent, picture

ROW = 22
HEAD = 20
NAMES = 0.36  # of the width
NUMBERS = 0.12
_BARS = 1 - NAMES - NUMBERS


def distribution(decision: DecisionRecord, most: int) -> Markup:
    """The `most` probable options by name, the others together; the lines show which probability reaches the floors."""
    rows = _rows(decision.probabilities, most)
    options = len(decision.probabilities)
    body = HEAD + ROW * len(rows)
    floors = [("floor", decision.floor)]
    if decision.archive_floor > decision.floor:
        floors.append(("archive", decision.archive_floor))
    drawn = [_row(index, name, p, name == decision.choice) for index, (name, p) in enumerate(rows)]
    lines = [_floor(name, floor, needed(floor, options), body) for name, floor in floors]
    said = ", ".join(f"{name} {p:.2f}" for name, p in rows)
    limits = " and ".join(f"{name} at {needed(floor, options):.2f}" for name, floor in floors)
    return picture("Probabilities", f"{said}. {limits}.", body + 4, *drawn, *lines, kind="distribution")


def needed(floor: float, options: int) -> float:
    """The probability at which the confidence of the best of `options` options reaches a floor (DESIGN 6)."""
    return floor if options < 2 else floor * (1 - 1 / options) + 1 / options


def _rows(probabilities: Mapping[str, float], most: int) -> list[tuple[str, float]]:
    ranked = sorted(probabilities.items(), key=lambda item: (-item[1], item[0]))
    if len(ranked) <= most + 1:
        return ranked
    rest = ranked[most:]
    return [*ranked[:most], (f"{len(rest)} others", sum(p for _, p in rest))]


def _row(index: int, name: str, p: float, chosen: bool) -> Markup:
    top = HEAD + index * ROW
    kind = "chosen" if chosen else "other"
    return group(
        label(name, percent(NAMES - 0.02), top + 15, anchor="end", kind=f"name {kind}"),
        element("rect", x=percent(NAMES), y=top + 3, width=percent(_BARS), height=ROW - 8, class_="track"),
        element("rect", x=percent(NAMES), y=top + 3, width=percent(_BARS * p), height=ROW - 8, class_=f"bar {kind}"),
        label(f"{p:.2f}", "100%", top + 15, anchor="end", kind=f"number {kind}"),
    )


def _floor(name: str, floor: float, p: float, bottom: float) -> Markup:
    x = percent(NAMES + _BARS * p)
    # The lower floor is lettered to its left, the higher to its right: side by side they would run into each other.
    anchor = "end" if name == "floor" else "start"
    return group(
        element("line", x1=x, x2=x, y1=HEAD - 4, y2=bottom, class_=f"limit {name}"),
        label(f"{name} {floor:.2f}", x, HEAD - 8, anchor=anchor, kind="tick limit-name"),
    )
