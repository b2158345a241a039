"""The short and the full form of the torture tests: `TRIAGE_TORTURE=full` (make torture) tries every point."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
FULL = os.environ.get("TRIAGE_TORTURE") == "full"


def some(points: Sequence[T], few: int) -> Sequence[T]:
    """All points in the full form, `few` of them evenly spread in the short one."""
    return points if FULL or len(points) <= few else [points[i * len(points) // few] for i in range(few)]


@dataclass
class Tally:
    """What was tried in this session, for the line at its end."""

    tried: int = 0
    survived: int = 0
    points: int = 0

    def add(self, kind: str, tried: int, failures: int, there_are: int | None = None) -> None:
        self.tried += tried
        self.survived += tried - failures
        self.points += there_are or tried
        of = f" (of {there_are} there are)" if there_are else ""
        print(f"\n{kind}: survived / tried: {tried - failures} / {tried}{of}")
