"""Slow calls side by side: as slow as the deadline, whatever one of them does."""

from __future__ import annotations

import threading
import time

import pytest

from triage.side_by_side import side_by_side

LONG_S = 60.0


def test_every_result_comes_under_its_name() -> None:
    assert side_by_side(lambda n: n * n, {str(n): n for n in range(50)}, 4, LONG_S) == {
        str(n): n * n for n in range(50)
    }
    assert side_by_side(lambda n: n, {}, 4, LONG_S) == {}


def test_no_more_than_so_many_run_at_a_time_and_that_many_do() -> None:
    together = threading.Barrier(3)  # only three calls at a time get past it
    running, most, lock = [0], [0], threading.Lock()

    def call(n: int) -> int:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        together.wait(LONG_S)
        with lock:
            running[0] -= 1
        return n

    assert len(side_by_side(call, {str(n): n for n in range(9)}, 3, LONG_S)) == 9
    assert most[0] <= 3


def test_a_call_that_hangs_is_left_behind_and_nothing_new_begins() -> None:
    hangs, begun = threading.Event(), []

    def call(n: int) -> int:
        begun.append(n)
        if n >= 2:
            hangs.wait(LONG_S)
        return n

    asked = {str(n): n for n in range(6)}
    assert side_by_side(call, asked, 2, 0.5) == {"0": 0, "1": 1}
    hangs.set()
    deadline = time.monotonic() + LONG_S
    while any(thread.name.startswith("side-") for thread in threading.enumerate()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sorted(begun) == [0, 1, 2, 3]


def test_what_a_call_raises_is_raised() -> None:
    def call(n: int) -> int:
        raise ValueError(n)

    with pytest.raises(ValueError, match="7"):
        side_by_side(call, {"seven": 7}, 2, LONG_S)
