"""A workplace whose runs do what the test says, on a real queue."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from triage.domain.errors import LoginRefused, MailboxBusy, TriageError
from triage.domain.record import Run
from triage.ledger.ledger import SqlLedger
from triage.pipeline.plan import AccountPlan, Tools
from triage.ports import Clock
from triage.schedule.worker import LEASE, Workplace


class OpenGate:
    """A gate that is never closed; `told` says what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def closed(self, run: Run) -> TriageError | None:
        return None

    def refused(self, run: Run, error: LoginRefused) -> None:
        self.told.append("refused")

    def busy(self, run: Run, error: MailboxBusy) -> None:
        self.told.append("busy")

    def passed(self, run: Run) -> None:
        self.told.append("passed")


def workplace(
    ledger: SqlLedger,
    clock: Clock,
    desk: Callable[[Run], object],
    *,
    stop: threading.Event | None = None,
    lease: timedelta = LEASE,
    owner: str = "w1",
) -> Workplace:
    """`desk` is called when a run's desk is opened; it may raise. There is no mailbox behind it."""

    @contextmanager
    def opened(run: Run) -> Iterator[tuple[AccountPlan, Tools]]:
        desk(run)
        raise DeskClosed("this desk has no mailbox")
        yield  # type: ignore[unreachable]

    return Workplace(
        ledger=ledger,
        desk=opened,
        gate=OpenGate(),
        clock=clock,
        owner=owner,
        stop=stop or threading.Event(),
        lease=lease,
    )


class DeskClosed(TriageError):
    """What every run at a stub's desk ends with."""

    code = "desk_closed"
