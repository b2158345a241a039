"""The lease of a run under way: renewed in the background, checked before every write."""

from __future__ import annotations

import threading
from datetime import timedelta
from types import TracebackType

from triage.domain.errors import LeaseLost, LedgerError
from triage.domain.record import Run
from triage.ports import Clock, RunQueue


class Lease:
    """Renews a run's lease every third of its length while the `with` block lives."""

    def __init__(self, queue: RunQueue, run: Run, owner: str, length: timedelta, clock: Clock) -> None:
        self._queue, self._run, self._owner, self._length, self._clock = queue, run, owner, length, clock
        self._ended = threading.Event()
        self._lost = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=f"lease-{run.account}", daemon=True)

    def check(self) -> None:
        """Raises LeaseLost unless the ledger says, now, that the run is ours."""
        if self._lost.is_set() or not self._queue.holds(self._run.id, self._owner):
            self._lost.set()
            raise LeaseLost(f"run {self._run.id}: the lease is no longer ours; nothing more is written")

    def __enter__(self) -> Lease:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def _renew(self) -> None:
        while not self._clock.wait(self._ended, self._length.total_seconds() / 3):
            try:
                if not self._queue.renew(self._run.id, self._owner, self._length):
                    self._lost.set()
                    return
            except LedgerError:
                # The next beat tries again; check() asks the ledger itself before anything is written.
                continue
