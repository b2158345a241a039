"""How things look on a terminal: styles, marks, the confidence bar, and mail text made harmless.

Only the sixteen colours of the terminal's own theme are used, so that light and dark both work.
"""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.text import Text

from triage.report.text import harmless as harmless
from triage.report.text import joined as joined
from triage.report.text import truncated as truncated
from triage.report.words import Tone

CALM = "dim"
GOOD = "green"
DOUBT = "yellow"
BAD = "red"
LABEL = "cyan"
HEAD = "bold"
TONES: dict[Tone, str] = {"plain": "", "calm": CALM, "doubt": DOUBT, "bad": BAD}

BAR_CELLS = 10


@dataclass(frozen=True, slots=True)
class Marks:
    """The signs of a rendering; the plain set is for output that is not UTF-8."""

    full: str
    full_tick: str
    empty: str
    empty_tick: str
    ok: str
    warn: str
    fail: str
    thread: str
    none: str


FINE = Marks("━", "╋", "─", "┼", "✓", "!", "✗", "↳", "–")
PLAIN = Marks("=", "|", ".", "|", "ok", "!", "x", ">", "-")


def marks(options: ConsoleOptions) -> Marks:
    return PLAIN if options.ascii_only else FINE


@dataclass(frozen=True, slots=True)
class ConfidenceBar:
    """A confidence (0..1) as a number and, if `cells`, a bar with a tick at each floor.

    The bar never contradicts its number: it passes a tick exactly when the confidence reaches that floor.
    """

    confidence: float
    floors: tuple[float, ...] = ()
    cells: int = BAR_CELLS
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = Text(f"{truncated(self.confidence)}", no_wrap=True)
        if self.cells:
            text.append(" ")
            self._draw(text, marks(options))
        yield text

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width = 4 + (1 + self.cells if self.cells else 0)
        return Measurement(width, width)

    def _draw(self, text: Text, sign: Marks) -> None:
        ticks = {min(self.cells - 1, int(floor * self.cells)): floor for floor in self.floors}
        filled = int(self.confidence * self.cells)
        for cell, floor in ticks.items():
            filled = max(filled, cell + 1) if self.confidence >= floor else min(filled, cell)
        for cell in range(self.cells):
            tick = cell in ticks
            if cell < filled:
                text.append(sign.full_tick if tick else sign.full, style=self.style)
            else:
                text.append(sign.empty_tick if tick else sign.empty, style=CALM)


def make_console(*, stderr: bool = False) -> Console:
    """A console that never fails for a character the terminal's encoding lacks: it shows `?` instead."""
    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    return Console(stderr=stderr, highlight=False, emoji=False, markup=False)
