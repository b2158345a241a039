"""The reliability plot of an evaluation as one SVG: what was claimed against what was right."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from triage.report.evaluation import Bin

SIZE = 360
MARGIN = 48


def reliability_svg(bins: Sequence[Bin], title: str) -> str:
    """A bar for each bin (height: share that was right, label: how many mails) and the diagonal of perfect honesty."""
    bars = "\n".join(_bar(b) for b in bins)
    ticks = "\n".join(_tick(n / 5) for n in range(6))
    full = SIZE + 2 * MARGIN
    middle = MARGIN + SIZE / 2
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{full}" height="{full}" viewBox="0 0 {full} {full}" \
role="img" font-family="sans-serif" font-size="11">
<title>{escape(title)}</title>
<rect width="{full}" height="{full}" fill="#ffffff"/>
<text x="{MARGIN}" y="24" font-size="14">{escape(title)}</text>
{bars}
<line x1="{_x(0):.1f}" y1="{_y(0):.1f}" x2="{_x(1):.1f}" y2="{_y(1):.1f}" stroke="#888888" stroke-dasharray="4 4"/>
<rect x="{MARGIN}" y="{MARGIN}" width="{SIZE}" height="{SIZE}" fill="none" stroke="#444444"/>
{ticks}
<text x="{middle}" y="{full - 10}" text-anchor="middle">highest probability</text>
<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">share right</text>
</svg>
"""


def _x(value: float) -> float:
    return MARGIN + value * SIZE


def _y(value: float) -> float:
    return MARGIN + (1 - value) * SIZE


def _bar(b: Bin) -> str:
    left, right, top = _x(b.low), _x(b.high), _y(b.accuracy)
    return (
        f'<rect x="{left + 1:.1f}" y="{top:.1f}" width="{right - left - 2:.1f}" height="{_y(0) - top:.1f}" '
        f'fill="#4477aa" fill-opacity="0.75"><title>{b.count} mails: claimed {b.mean_probability:.2f}, '
        f"right {b.accuracy:.2f}</title></rect>"
        f'<text x="{(left + right) / 2:.1f}" y="{top - 4:.1f}" text-anchor="middle">{b.count}</text>'
    )


def _tick(value: float) -> str:
    return (
        f'<text x="{_x(value):.1f}" y="{_y(0) + 16:.1f}" text-anchor="middle">{value:.1f}</text>'
        f'<text x="{MARGIN - 6}" y="{_y(value) + 4:.1f}" text-anchor="end">{value:.1f}</text>'
    )
