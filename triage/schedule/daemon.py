"""The daemon: fires the timetable into the queue, keeps workers at it, and ends cleanly.

One thread watches the clock; workers make the runs. Nothing here decides anything: the queue in the ledger does, so
any number of daemons on any number of machines may share one ledger.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from triage.domain.errors import LedgerError
from triage.domain.record import Fire
from triage.ports import Clock, Ledger
from triage.schedule.firing import put_fires
from triage.schedule.timetable import FireTimes, Timetable
from triage.schedule.worker import Workplace, work

TICK_S = 1.0
"""How often the clock and the queue are looked at."""
EXPIRE_EVERY = timedelta(seconds=10)
RETAIN_EVERY = timedelta(hours=1)
GRACE_S = 30.0
"""How long a stop waits for runs under way (DESIGN 4)."""
MOST_WORKERS = 8
PORTION = 1_000
"""So many fires go into the queue at once; then workers are roused."""


class Office(Protocol):
    """What the daemon serves, as it is configured now; a reload replaces it."""

    @property
    def times(self) -> Mapping[str, FireTimes]:
        """The enabled accounts and when they fire."""
        ...

    @property
    def accounts(self) -> Sequence[str]:
        """Every account whose queued runs this process may make."""
        ...

    def workplace(self) -> Workplace: ...

    def keep_house(self, now: datetime) -> None:
        """Enforce retention and the like. Raises LedgerError."""
        ...


class Daemon:
    """`run` blocks until `stop` is set. `office` is asked anew at every tick, so a reload takes hold at once."""

    def __init__(self, office: Callable[[], Office], ledger: Ledger, clock: Clock, stop: threading.Event, log: Any):
        self._office, self._ledger, self._clock, self._stop, self._log = office, ledger, clock, stop, log
        self._timetable = Timetable()
        self._due: dict[str, Fire] = {}  # fires that are not in the queue yet: they stay due until the ledger took them
        self._wake = threading.Condition()
        self._work_waits = False
        self._expire_at = self._retain_at = clock.monotonic()

    def run(self, on_tick: Callable[[], None] = lambda: None) -> bool:
        """Serve until stopped, calling `on_tick` before each look at the clock; True if every run under way ended
        within the grace period."""
        self._begin()
        count = min(MOST_WORKERS, max(1, len(self._office().accounts)))
        workers = [threading.Thread(target=self._work, name=f"worker-{i}", daemon=True) for i in range(count)]
        for worker in workers:
            worker.start()
        self._log.info("serving", accounts=len(self._office().accounts), workers=count)
        while not self._stop.is_set():
            self.tick(on_tick)
            self._clock.wait(self._stop, TICK_S)
        self._log.info("stopping", grace_s=GRACE_S)
        self._rouse()
        deadline = self._clock.monotonic() + GRACE_S
        for worker in workers:
            worker.join(max(0.0, deadline - self._clock.monotonic()))
        late = sum(worker.is_alive() for worker in workers)
        self._log.info("stopped", unfinished_runs=late)
        return late == 0

    def reload(self) -> None:
        """Take the office's schedules as they are now; to be called from `on_tick`."""
        times = self._office().times
        self._timetable.set(times, self._clock.now())
        self._due = {account: fire for account, fire in self._due.items() if account in times}

    def tick(self, on_tick: Callable[[], None] = lambda: None) -> None:
        """One look at the clock and the queue; what goes wrong is logged, and the next tick tries again."""
        try:
            on_tick()
            self._fire()
            self._keep_house()
            if self._ledger.depth():
                self._rouse()
        except LedgerError as error:
            self._log.warning("ledger_failed", detail=str(error))
        except Exception as error:  # noqa: BLE001 - the clock must go on ticking whatever one tick met
            self._log.error("tick_failed", detail=type(error).__name__, exc_info=error)

    def _begin(self) -> None:
        """Start where the schedule left off: fires missed while no daemon ran are one fire now. An account that never
        fired waits for its first fire time."""
        times = self._office().times
        self._timetable.set(times, self._clock.now(), self._ledger.last_fires(list(times)))

    def _fire(self) -> None:
        for fire in self._timetable.due(self._clock.now()):
            self._due[fire.account] = _together(self._due.get(fire.account), fire)
        accounts = list(self._due)
        random.shuffle(accounts)  # servers that fire together put in different accounts first, and so share the work
        for n in range(0, len(accounts), PORTION):
            some = [self._due[account] for account in accounts[n : n + PORTION]]
            let_in = put_fires(self._ledger, some)
            for fire in some:
                del self._due[fire.account]
                self._tell(fire, let_in.get(fire.account))
            if let_in:
                self._rouse()

    def _tell(self, fire: Fire, run: str | None) -> None:
        facts = {"account": fire.account, "fire_time": fire.fire_time.isoformat(), "missed": fire.missed}
        if run is None:
            self._log.debug("fire_taken", **facts)
        else:
            self._log.info("fired", run=run, **facts)

    def _keep_house(self) -> None:
        now = self._clock.monotonic()
        if now >= self._expire_at:
            self._expire_at = now + EXPIRE_EVERY.total_seconds()
            for run in self._ledger.expire():
                self._log.warning("run_failed", account=run.account, run=run.id, reason="cut")
        if now >= self._retain_at:
            self._retain_at = now + RETAIN_EVERY.total_seconds()
            self._office().keep_house(self._clock.now())

    def _rouse(self) -> None:
        with self._wake:
            self._work_waits = True
            self._wake.notify_all()

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                if work(self._office().workplace(), self._office().accounts) is not None:
                    continue
            except LedgerError as error:
                self._log.warning("ledger_failed", detail=str(error))
            except BaseException as error:  # noqa: BLE001 - a worker that dies silently is a service that stopped
                self._log.error("worker_failed", detail=type(error).__name__, exc_info=error)
            with self._wake:
                if not self._work_waits and not self._stop.is_set():
                    self._wake.wait(TICK_S * 30)
                self._work_waits = False


def _together(waiting: Fire | None, fire: Fire) -> Fire:
    """A fire with an earlier one of its account that the ledger has not taken yet, which is missed now."""
    if waiting is None:
        return fire
    missed = waiting.missed + 1 + fire.missed
    return replace(fire, missed=missed, missed_since=waiting.missed_since or waiting.fire_time)
