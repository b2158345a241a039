"""Timing of steps: each ends as a record in the ledger and a line in the log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from triage.domain.record import StepRecord
from triage.pipeline.plan import Counts, RunScope


@contextmanager
def step(scope: RunScope, name: str) -> Iterator[Counts]:
    """Time one step; what the body puts into the yielded counts is recorded with it, also when it raises."""
    clock = scope.tools.clock
    started_at, start = clock.now(), clock.monotonic()
    counts: Counts = {}
    scope.tools.log.begin(name)
    try:
        yield counts
    finally:
        record = StepRecord(name, started_at, round((clock.monotonic() - start) * 1000), counts)
        scope.tools.journal.record_step(scope.run.id, record)
        scope.tools.log.step(record)
