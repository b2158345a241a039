"""What was claimed against what turned out right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from markupsafe import Markup

from triage.web.charts.svg import element, group, label

SIDE = 240
LEFT, TOP = 58, 16


class Bin(Protocol):
    """Answers of similar confidence: how many, what they claimed on average, how many were right."""

    @property
    def count(self) -> int: ...
    @property
    def mean(self) -> float: ...
    @property
    def right(self) -> float: ...


def calibration_plot(bins: Sequence[Bin], title: str) -> Markup:
    """A dot for each bin, larger the more answers it holds, and the diagonal on which claims come true."""
    total = max(1, sum(each.count for each in bins))
    dots = [_dot(each, total) for each in bins if each.count]
    axis = [_tick(n / 4) for n in range(5)]
    frame = element("rect", x=LEFT, y=TOP, width=SIDE, height=SIDE, class_="frame")
    diagonal = element("line", x1=_x(0), y1=_y(0), x2=_x(1), y2=_y(1), class_="limit")
    words = [
        label("claimed", LEFT + SIDE / 2, TOP + SIDE + 34, anchor="middle"),
        element("text", "right", x=14, y=TOP + SIDE / 2, text_anchor="middle", class_="tick",
                transform=f"rotate(-90 14 {TOP + SIDE // 2})"),
    ]  # fmt: skip
    said = "; ".join(f"claimed {b.mean:.2f}, right {b.right:.2f} of {b.count:,}" for b in bins if b.count)
    width, height = LEFT + SIDE + 16, TOP + SIDE + 42
    return element(
        "svg", element("title", title), element("desc", said), *axis, frame, diagonal, *dots, *words,
        role="img", class_="plot calibration", width=width, height=height, viewBox=f"0 0 {width} {height}",
        aria_label=f"{title}. {said}",
    )  # fmt: skip


def _dot(each: Bin, total: int) -> Markup:
    radius = 4 + 10 * (each.count / total) ** 0.5
    told = element("title", f"{each.count:,} answers claimed {each.mean:.2f}; {each.right:.2f} of them were right")
    return group(
        element("line", x1=_x(each.mean), x2=_x(each.mean), y1=_y(each.mean), y2=_y(each.right), class_="gap"),
        element("circle", told, cx=_x(each.mean), cy=_y(each.right), r=radius, class_="dot"),
    )


def _tick(value: float) -> Markup:
    return group(
        element("line", x1=_x(value), x2=_x(value), y1=_y(0), y2=_y(1), class_="grid"),
        element("line", x1=_x(0), x2=_x(1), y1=_y(value), y2=_y(value), class_="grid"),
        label(f"{value:g}", _x(value), TOP + SIDE + 16, anchor="middle"),
        label(f"{value:g}", LEFT - 6, _y(value) + 4, anchor="end"),
    )


def _x(value: float) -> float:
    return LEFT + value * SIDE


def _y(value: float) -> float:
    return TOP + (1 - value) * SIDE
