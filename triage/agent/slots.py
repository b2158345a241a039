"""When a wait looks: absolute slots from its start, so that a slow look pushes no other. Arithmetic, in ms."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat


def slots(deadline_ms: int, intervals: Sequence[float], min_read_ms: int, max_polls: int) -> tuple[int, ...]:
    """The instants to look at, at most `max_polls`, the last one as late as a look can still finish.

    Intervals 1, 2, 4, 8, 8 s give 1, 3, 7, 15, 23, 31, ... s. Where there are more instants than polls, the first ones
    and the last one stay: quick mail is found quickly, and nothing that came in time is missed.
    """
    last = max(0, deadline_ms - min_read_ms)
    found: list[int] = []
    at = 0
    for interval in chain(intervals, repeat(intervals[-1])):
        at += round(interval * 1000)
        if at >= last:
            break
        found.append(at)
    return (*found[: max(0, max_polls - 1)], last)


def can_retry(attempts_left: int, remaining_ms: int) -> bool:
    """Two limits, always both: attempts and time."""
    return attempts_left > 0 and remaining_ms > 0
