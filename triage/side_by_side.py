"""Many slow calls side by side, none of which is waited for longer than a deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from queue import Empty, SimpleQueue
from typing import TypeVar

A = TypeVar("A")
T = TypeVar("T")


def side_by_side(call: Callable[[A], T], asked: Mapping[str, A], at_once: int, within_s: float) -> dict[str, T]:
    """`call` for each of `asked`, at most `at_once` at a time; the results by name that came within `within_s` seconds.

    Calls that are late are left to end by themselves, their results unread, and no new ones begin; they never keep the
    process from ending. What a call raises is raised here.
    """
    waiting: SimpleQueue[tuple[str, A]] = SimpleQueue()
    for item in asked.items():
        waiting.put(item)
    told: SimpleQueue[tuple[str, T] | BaseException] = SimpleQueue()
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            try:
                name, argument = waiting.get_nowait()
            except Empty:
                return
            try:
                told.put((name, call(argument)))
            except BaseException as error:  # noqa: BLE001 - raised again where somebody waits for it
                told.put(error)

    for n in range(min(at_once, len(asked))):
        threading.Thread(target=work, name=f"side-{n}", daemon=True).start()
    results: dict[str, T] = {}
    deadline = time.monotonic() + within_s
    try:
        while len(results) < len(asked):
            result = told.get(timeout=max(0.0, deadline - time.monotonic()))
            if isinstance(result, BaseException):
                raise result
            results[result[0]] = result[1]
    except Empty:
        pass
    finally:
        over.set()
    return results
