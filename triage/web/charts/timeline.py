"""The steps of a run on its own time line."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from triage.domain.record import StepRecord
from triage.web.charts.svg import element, group, label, percent, picture

ROW = 26
NAMES = 0.20
_TRACK = 1 - NAMES
_LEAST = 0.004  # of the track: a step of no time is still to be seen


def timeline(steps: Sequence[StepRecord]) -> Markup:
    """One row a step: when it began after the first, and how long it took."""
    start = min(step.started_at for step in steps)
    began = [(step.started_at - start).total_seconds() * 1000 for step in steps]
    whole = max(1.0, *(at + step.duration_ms for at, step in zip(began, steps, strict=True)))
    rows = [_row(i, step, at, whole) for i, (step, at) in enumerate(zip(steps, began, strict=True))]
    bottom = ROW * len(steps)
    axis = [_tick(share, whole, bottom) for share in (0.0, 0.5, 1.0)]
    said = ", ".join(f"{step.name} {step.duration_ms} ms" for step in steps)
    return picture("Steps of the run", f"{said}.", bottom + 22, *axis, *rows, kind="timeline")


def duration(ms: float) -> str:
    """`840 ms`, `2.4 s`, `3 min`."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    return f"{ms / 1000:.1f} s" if ms < 120_000 else f"{ms / 60_000:.0f} min"


def _row(index: int, step: StepRecord, began: float, whole: float) -> Markup:
    top = index * ROW
    left, share = began / whole, max(_LEAST, step.duration_ms / whole)
    right = NAMES + _TRACK * min(1.0, left + share)
    at_left = right > 0.84  # no room to the right of the bar
    x, anchor = (NAMES + _TRACK * left, "end") if at_left else (right, "start")
    inside = at_left and left < 0.16
    if inside:
        x, anchor = right, "end"
    return group(
        label(step.name, percent(NAMES - 0.02), top + 17, anchor="end", kind="name"),
        element("rect", x=percent(NAMES + _TRACK * left), y=top + 5, width=percent(_TRACK * share), height=ROW - 10,
                rx=2, class_="bar"),
        element("text", duration(step.duration_ms), x=percent(x), y=top + 17, dx=-6 if anchor == "end" else 6,
                text_anchor=anchor, class_="number inside" if inside else "number"),
    )  # fmt: skip


def _tick(share: float, whole: float, bottom: float) -> Markup:
    x = percent(NAMES + _TRACK * share)
    anchor = "start" if share == 0 else "end" if share == 1 else "middle"
    return group(
        element("line", x1=x, x2=x, y1=0, y2=bottom, class_="grid"),
        label(duration(whole * share), x, bottom + 15, anchor=anchor),
    )
