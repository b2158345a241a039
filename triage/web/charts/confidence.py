"""A confidence in a table: a short bar with a tick at each floor."""

from __future__ import annotations

from markupsafe import Markup

from triage.domain.record import DecisionRecord
from triage.report.text import truncated
from triage.web.charts.svg import element, percent


def confidence_bar(decision: DecisionRecord) -> Markup:
    """The number stands beside it, so it is hidden from a screen reader."""
    reached = decision.confidence >= decision.floor
    ticks = [
        element("line", x1=percent(floor), x2=percent(floor), y1=0, y2=12, class_="limit")
        for floor in sorted({decision.floor, decision.archive_floor})
    ]
    return element(
        "svg",
        element("rect", x=0, y=3, width="100%", height=6, rx=3, class_="track"),
        element("rect", x=0, y=3, width=percent(decision.confidence), height=6, rx=3, class_=_kind(reached)),
        *ticks,
        class_="plot meter",
        width=96,
        height=12,
        aria_hidden="true",
        data_sure=truncated(decision.confidence),
    )


def _kind(reached: bool) -> str:
    return "bar above" if reached else "bar below"
