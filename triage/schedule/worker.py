"""The worker: claims a run from the queue, makes it, closes it. All triggers go through here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from triage.domain.errors import LeaseLost, LedgerError, LoginRefused, MailboxBusy, TriageError
from triage.domain.record import Run
from triage.pipeline.lease import Lease
from triage.pipeline.plan import AccountPlan, Counts, RunScope, Tools
from triage.pipeline.run import execute
from triage.ports import Clock, Ledger

LEASE = timedelta(seconds=90)
"""How long a run stays ours without a heartbeat; renewed every third of it."""
FINISH_TRIES = 3
FINISH_PAUSE_S = 1.0


class Gate(Protocol):
    """Remembers, over restarts, that an account must not be tried now (wrong password, throttled)."""

    def closed(self, run: Run) -> TriageError | None:
        """Why this run must not touch the mailbox, or None."""
        ...

    def refused(self, run: Run, error: LoginRefused) -> None: ...
    def busy(self, run: Run, error: MailboxBusy) -> None: ...
    def passed(self, run: Run) -> None: ...


@dataclass(frozen=True, slots=True)
class Workplace:
    """What a worker needs of the process it works in.

    `desk` opens the plan and the tools of a run's account, raising TriageError where there is none. `gate` guards the
    account. `owner` names this process in leases.
    """

    ledger: Ledger
    desk: Callable[[Run], AbstractContextManager[tuple[AccountPlan, Tools]]]
    gate: Gate
    clock: Clock
    owner: str
    stop: threading.Event
    lease: timedelta = LEASE


def work(place: Workplace, accounts: Sequence[str] | None = None, run_id: str | None = None) -> Run | None:
    """Claim the oldest run that may start (or exactly `run_id`) and make it; the run as closed, None if there is none.

    Raises LedgerError if the ledger does not answer. Whatever else happens is the run's, recorded with it.
    """
    if place.stop.is_set():
        return None
    run = place.ledger.claim(place.owner, place.lease, accounts, run_id)
    if run is None:
        return None
    counts: Counts = {}
    reason, error = _make(place, run, counts)
    if not _finish(place, run, reason, error, counts):
        place.ledger.expire()
    return place.ledger.run(run.id)


def _finish(place: Workplace, run: Run, reason: str | None, error: str | None, counts: Counts) -> bool:
    """Close the run; a ledger that is locked or full for a moment is asked again, or the account would wait for the
    lease to run out."""
    for _ in range(FINISH_TRIES - 1):
        try:
            return place.ledger.finish(run.id, place.owner, failed=reason, error=error, counts=counts)
        except LedgerError as failure:
            if not failure.temporary:
                raise
            place.clock.wait(threading.Event(), FINISH_PAUSE_S)
    return place.ledger.finish(run.id, place.owner, failed=reason, error=error, counts=counts)


def _make(place: Workplace, run: Run, counts: Counts) -> tuple[str | None, str | None]:
    """Make a claimed run; (None, None) or the reason code and the sentence of its failure."""
    try:
        closed = place.gate.closed(run)
        if closed is not None:
            return closed.code, str(closed)
        with place.desk(run) as (plan, tools), Lease(place.ledger, run, place.owner, place.lease, place.clock) as lease:
            tools.log.event("run_started", trigger=str(run.trigger), mode=plan.for_run(run).mode)
            try:
                execute(RunScope(run, plan.for_run(run), tools, lease, place.stop), counts)
            except TriageError as failure:
                tools.log.event("run_failed", reason=failure.code, detail=str(failure))
                raise
            except Exception as crash:
                tools.log.event("run_failed", reason="error", detail=type(crash).__name__, exc_info=crash)
                raise
            tools.log.event("run_finished", **counts)
    except LoginRefused as refused:
        place.gate.refused(run, refused)
        return refused.code, str(refused)
    except MailboxBusy as busy:
        place.gate.busy(run, busy)
        return busy.code, str(busy)
    except LeaseLost as lost:
        return "cut", str(lost)
    except TriageError as failure:
        return failure.code, str(failure)
    except Exception as crash:  # noqa: BLE001 - the one guard of a run: the next fire must come whatever happened here
        return "error", f"{type(crash).__name__} in the run; the log has the traceback"
    place.gate.passed(run)
    return None, None
