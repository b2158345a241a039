"""The queue's conditional statements, built once: they run for every run, and building them costs more than running."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, literal_column, select, update
from sqlalchemy.sql.dml import ReturningUpdate

from triage.domain.record import RunState
from triage.ledger.backend import Backend
from triage.ledger.chain import end_of
from triage.ledger.schema import QUEUED, RUNNING, runs
from triage.ledger.types import BigInt

_SLACK_MS = 2_000  # a clock that is being slewed may run back a little


def alive(backend: Backend) -> ColumnElement[bool]:
    """The lease of a run has not run out (see queue.py for what that means)."""
    now = backend.lease_ms()
    return and_(runs.c.lease_renewed_ms <= now + _SLACK_MS, now < runs.c.lease_expires_ms)


class QueueStatements:
    """Statements that take their values when they are executed: run, owner, and those of a lease."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        ours = and_(runs.c.id == bindparam("run"), runs.c.lease_owner == bindparam("owner"), RUNNING, alive(backend))
        self.holds: Select[Any] = select(runs.c.id).where(ours)
        self.renew: ReturningUpdate[Any] = update(runs).where(ours).values(self._lease()).returning(runs.c.id)
        self.finish: ReturningUpdate[Any] = (
            update(runs)
            .where(ours)
            .values(
                state=bindparam("ended"),
                reason=bindparam("because"),
                error=bindparam("told"),
                counts=bindparam("counted"),
                finished_at=backend.now(),
            )
            .returning(*runs.c, *end_of("runs.account"))
        )
        self._claims = {
            (of_accounts, of_id): self._claim(of_accounts=of_accounts, of_id=of_id)
            for of_accounts in (False, True)
            for of_id in (False, True)
        }

    def claim(self, *, of_accounts: bool, of_id: bool) -> ReturningUpdate[Any]:
        """Take the oldest fire whose account has no running run; only `accounts`, only `run`, where so asked."""
        return self._claims[of_accounts, of_id]

    def _claim(self, *, of_accounts: bool, of_id: bool) -> ReturningUpdate[Any]:
        other = runs.alias("other")
        busy = select(other.c.id).where(other.c.account == runs.c.account, other.c.state == literal_column("'running'"))
        oldest = select(runs.c.id).where(QUEUED, ~busy.exists())
        if of_id:
            oldest = oldest.where(runs.c.id == bindparam("run"))
        if of_accounts:
            oldest = oldest.where(self._backend.among(runs.c.account, "accounts"))
        oldest = oldest.order_by(runs.c.fire_time, runs.c.id).limit(1).with_for_update(of=runs, skip_locked=True)
        return (
            update(runs)
            .where(runs.c.id == oldest.scalar_subquery(), QUEUED)
            .values(
                state=RunState.RUNNING.value,
                started_at=self._backend.now(),
                lease_owner=bindparam("owner"),
                **self._lease(),
            )
            .returning(*runs.c)
        )

    def _lease(self) -> dict[str, Any]:
        now = self._backend.lease_ms()
        return {
            "lease_until": self._backend.lease_until(),
            "lease_renewed_ms": now,
            "lease_expires_ms": now + bindparam("lease_ms", type_=BigInt),
        }
