"""Many independent trials side by side, in forked processes that share what is imported already."""

from __future__ import annotations

import multiprocessing
import os
import traceback
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
fork = multiprocessing.get_context("fork")
WORKERS = min(4, os.cpu_count() or 1)


def failures_of(trial: Callable[[T], list[str]], points: Sequence[T], workers: int = WORKERS) -> dict[str, list[str]]:
    """What each trial found wrong, by the name of its point; empty if all went well."""
    results = fork.SimpleQueue()

    def body(mine: Sequence[T]) -> None:
        for point in mine:
            try:
                bad = trial(point)
            except BaseException:  # noqa: BLE001 - whatever it was, it is told in the parent
                bad = [traceback.format_exc()]
            results.put((str(point), bad))
        os._exit(0)

    shards = [fork.Process(target=body, args=(points[n::workers],)) for n in range(workers)]
    for shard in shards:
        shard.start()
    told = dict(results.get() for _ in points)
    for shard in shards:
        shard.join()
    return {name: bad for name, bad in told.items() if bad}
