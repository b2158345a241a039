"""One column a day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date

from markupsafe import Markup

from triage.web.charts.svg import element, group, label, percent, picture

HEIGHT = 120
TOP = 18


def daily_columns(days: Sequence[tuple[date, float]], title: str, write: Callable[[float], str]) -> Markup:
    """A value for each day, oldest first, days without anything included. `write` words a value."""
    most = max((value for _, value in days), default=0.0)
    total = sum(value for _, value in days)
    bars = [_column(i, len(days), day, value, most, write) for i, (day, value) in enumerate(days)]
    base = element("line", x1="0%", x2="100%", y1=TOP + HEIGHT, y2=TOP + HEIGHT, class_="axis")
    ceiling = element("line", x1="0%", x2="100%", y1=TOP, y2=TOP, class_="grid")
    ends = [
        label(f"{days[0][0]:%d %b}", "0%", TOP + HEIGHT + 16),
        label(f"{days[-1][0]:%d %b}", "100%", TOP + HEIGHT + 16, anchor="end"),
        label(write(most), "0%", TOP - 5),
    ]
    said = f"{len(days)} days, {write(total)} in all, at most {write(most)} a day."
    return picture(title, said, TOP + HEIGHT + 24, ceiling, *bars, base, *ends, kind="columns")


def _column(index: int, count: int, day: date, value: float, most: float, write: Callable[[float], str]) -> Markup:
    tall = max(1.5, HEIGHT * value / most) if value else 0.0
    gap = 0.15 / count
    told = element("title", f"{day:%a %d %b %Y}: {write(value)}")
    return group(
        element("rect", told, x=percent(index / count + gap), y=TOP + HEIGHT - tall,
                width=percent(1 / count - 2 * gap), height=tall, class_="bar"),
    )  # fmt: skip
