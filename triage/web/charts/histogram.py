"""How sure the answers were: twenty bins of confidence, and the floor between what counted and what did not."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from triage.web.charts.svg import element, group, label, percent, picture

HEIGHT = 150
TOP = 18
BINS = 20


def confidence_histogram(counts: Sequence[int], floor: float, title: str) -> Markup:
    """`counts` holds the decisions of each twentieth of confidence; the last bin takes 1.0 too."""
    assert len(counts) == BINS
    total, most = sum(counts), max(1, *counts)
    bars = [_bar(index, count, most, floor) for index, count in enumerate(counts)]
    x = percent(floor)
    anchor = "end" if floor > 0.5 else "start"
    line = group(
        element("line", x1=x, x2=x, y1=TOP - 12, y2=TOP + HEIGHT, class_="limit floor"),
        element("text", f"floor {floor:.2f}", x=x, y=TOP - 6, dx=-5 if anchor == "end" else 5, text_anchor=anchor,
                class_="tick limit-name"),
    )  # fmt: skip
    axis = [
        label(
            f"{n / 5:.1f}",
            percent(n / 5),
            TOP + HEIGHT + 16,
            anchor="start" if n == 0 else "end" if n == 5 else "middle",
        )
        for n in range(6)
    ]
    base = element("line", x1="0%", x2="100%", y1=TOP + HEIGHT, y2=TOP + HEIGHT, class_="axis")
    sure = sum(count for index, count in enumerate(counts) if index / BINS >= floor - 1e-9)
    said = f"Of {total:,} answers {sure:,} were in bins at or above the floor of {floor:.2f}."
    return picture(title, said, TOP + HEIGHT + 24, *bars, base, line, *axis, kind="histogram")


def _bar(index: int, count: int, most: int, floor: float) -> Markup:
    tall = HEIGHT * count / most if count else 0.0
    tall = max(tall, 1.5) if count else 0.0
    low, high = index / BINS, (index + 1) / BINS
    kind = "bar above" if low >= floor - 1e-9 else "bar below" if high <= floor + 1e-9 else "bar astride"
    told = element("title", f"{low:.2f} to {high:.2f}: {count:,}")
    return element("rect", told, x=percent(low + 0.003), y=TOP + HEIGHT - tall, width=percent(1 / BINS - 0.006),
                   height=tall, class_=kind)  # fmt: skip
