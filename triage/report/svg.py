"""Plots as inline SVG, without script and without colours of their own: they take the page's. Pure.

Classes are drawn by the style sheet of the page: `bar`, `bar2`, `axis`, `grid`, `mark`, `label`. Each plot has a title
and a description that say in words what it shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

WIDTH = 640


def bars(rows: Sequence[tuple[str, float, float]], title: str, described: str, unit: str = "") -> str:
    """Horizontal bars: (name, whole, part of it that is drawn darker), the number behind each."""
    most = max((whole for _, whole, _ in rows), default=0) or 1
    room, left, step = WIDTH - 260, 180, 26
    parts = []
    for n, (name, whole, part) in enumerate(rows):
        y = n * step + 4
        parts.append(
            f'<text class="label" x="{left - 8}" y="{y + 13}" text-anchor="end">{escape(_cut(name, 24))}</text>'
        )
        parts.append(f'<rect class="bar" x="{left}" y="{y}" width="{room * whole / most:.1f}" height="16" rx="2"/>')
        if part:
            parts.append(f'<rect class="bar2" x="{left}" y="{y}" width="{room * part / most:.1f}" height="16" rx="2"/>')
        number = f"{whole:,.0f}{unit}" if whole == int(whole) else f"{whole:,.2f}{unit}"
        parts.append(f'<text class="label" x="{left + room * whole / most + 6:.1f}" y="{y + 13}">{number}</text>')
    return _plot(parts, WIDTH, len(rows) * step + 8, title, described)


def columns(values: Sequence[tuple[str, float, float]], title: str, described: str, *, height: int = 140) -> str:
    """Columns side by side: (name, whole, darker part); the first and the last are named."""
    most = max((whole for _, whole, _ in values), default=0) or 1
    left, base = 40, height - 22
    step = (WIDTH - left - 8) / max(1, len(values))
    parts = [f'<line class="axis" x1="{left}" y1="{base}" x2="{WIDTH - 8}" y2="{base}"/>']
    parts.append(f'<text class="label" x="{left - 6}" y="14" text-anchor="end">{most:,.0f}</text>')
    for n, (name, whole, part) in enumerate(values):
        x, tall = left + n * step, (base - 8) * whole / most
        parts.append(
            f'<rect class="bar" x="{x:.1f}" y="{base - tall:.1f}" width="{max(1.0, step - 1):.1f}" height="{tall:.1f}">'
            f"<title>{escape(name)}: {whole:,.0f}</title></rect>"
        )
        if part:
            dark = (base - 8) * part / most
            parts.append(
                f'<rect class="bar2" x="{x:.1f}" y="{base - dark:.1f}" width="{max(1.0, step - 1):.1f}" '
                f'height="{dark:.1f}"/>'
            )
    for n, anchor in {0: "start", len(values) - 1: "end"}.items():
        if 0 <= n < len(values):
            x = left + n * step + (step if anchor == "end" else 0)
            parts.append(
                f'<text class="label" x="{x:.1f}" y="{height - 6}" text-anchor="{anchor}">{escape(values[n][0])}</text>'
            )
    return _plot(parts, WIDTH, height, title, described)


def histogram(counts: Sequence[int], floors: Sequence[float], title: str, described: str, *, width: int = 300) -> str:
    """How often each confidence (0..1, in equal bins) came; a mark at each floor."""
    most = max(counts, default=0) or 1
    height, base = 76, 60
    step = width / max(1, len(counts))
    parts = [f'<line class="axis" x1="0" y1="{base}" x2="{width}" y2="{base}"/>']
    for n, count in enumerate(counts):
        tall = (base - 4) * count / most
        if count:
            parts.append(
                f'<rect class="bar" x="{n * step:.1f}" y="{base - tall:.1f}" width="{step - 1:.1f}" '
                f'height="{tall:.1f}">'
                f"<title>{n / len(counts):.2f}: {count:,}</title></rect>"
            )
    parts += [f'<line class="mark" x1="{f * width:.1f}" y1="0" x2="{f * width:.1f}" y2="{base}"/>' for f in floors]
    parts += [f'<text class="label" x="{x * width:.0f}" y="{height - 3}" text-anchor="{a}">{x:g}</text>'
              for x, a in ((0, "start"), (0.5, "middle"), (1, "end"))]  # fmt: skip
    return _plot(parts, width, height, title, described)


def reliability(points: Sequence[tuple[float, float, int]], title: str, described: str, *, size: int = 260) -> str:
    """(claimed, right, how many): dots on the diagonal are honest, dots under it too sure."""
    left, room = 34, size - 44
    most = max((n for *_, n in points), default=1)

    def x(value: float) -> float:
        return left + value * room

    def y(value: float) -> float:
        return 8 + (1 - value) * room

    parts = [f'<rect class="grid" x="{left}" y="8" width="{room}" height="{room}"/>']
    parts.append(f'<line class="mark" x1="{x(0):.1f}" y1="{y(0):.1f}" x2="{x(1):.1f}" y2="{y(1):.1f}"/>')
    for claimed, right, n in points:
        r = 3 + 7 * (n / most) ** 0.5
        parts.append(
            f'<circle class="bar2" cx="{x(claimed):.1f}" cy="{y(right):.1f}" r="{r:.1f}">'
            f"<title>{n} mails: claimed {claimed:.2f}, right {right:.2f}</title></circle>"
        )
    for tick in (0.0, 0.5, 1.0):
        parts.append(f'<text class="label" x="{x(tick):.1f}" y="{size - 20}" text-anchor="middle">{tick:g}</text>')
        parts.append(f'<text class="label" x="{left - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    parts.append(f'<text class="label" x="{x(0.5):.1f}" y="{size - 4}" text-anchor="middle">highest probability</text>')
    return _plot(parts, size, size, title, described)


def _plot(parts: Sequence[str], width: float, height: float, title: str, described: str) -> str:
    return (
        f'<svg class="plot" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'role="img">'
        f"<title>{escape(title)}</title><desc>{escape(described)}</desc>{''.join(parts)}</svg>"
    )


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"
