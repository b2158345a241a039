"""The queue: claims and leases. Each call is one transaction around one conditional statement.

A lease is counted on the one clock that all processes of the ledger share, the *lease clock*: PostgreSQL's own clock
for many machines, the operating system's monotonic clock for the one machine of an SQLite file. The workers' wall
clocks, which differ and step, play no part. A lease lives while `renewed <= now < expires`. The first half covers a
clock that went back: after a reboot the monotonic clock starts again, after a step PostgreSQL's may fall behind the
last renewal. Such a lease counts as run out, so that a dead run never blocks its account for as long as the step was
wide. The worst that a step of PostgreSQL's clock does, either way, is to cut the runs that are on: they stop writing at
their next check, and the next fire picks up what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, Row, func, not_, select, update

from triage.domain.record import Run, RunState
from triage.ledger.chain import Kind, Link, append, begin, digest
from triage.ledger.errors import Contradiction
from triage.ledger.fires import FiresPart
from triage.ledger.queue_statements import QueueStatements, alive
from triage.ledger.rows import RUN, plain, to_json, to_run, values_of, whole
from triage.ledger.schema import QUEUED, RUNNING, runs
from triage.redact import redact

_CLAIM_ATTEMPTS = 8


class QueuePart(FiresPart):
    """RunQueue of `triage.ports`."""

    def claim(
        self, owner: str, lease: timedelta, accounts: Sequence[str] | None = None, run_id: str | None = None
    ) -> Run | None:
        statement = self._statements.claim(of_accounts=accounts is not None, of_id=run_id is not None)
        values = {"owner": owner, **self._lease_values(lease)}
        if accounts is not None:
            values["accounts"] = self._backend.list_value(accounts)
        if run_id is not None:
            values["run"] = run_id
        for _ in range(_CLAIM_ATTEMPTS):
            try:
                row = self._write_one(statement, values)
            except Contradiction:
                continue  # another worker has just started a run of that account: look for the next one
            return None if row is None else to_run(row)
        return None

    def renew(self, run_id: str, owner: str, lease: timedelta) -> bool:
        values = {"run": run_id, "owner": owner, **self._lease_values(lease)}
        return self._write_one(self._statements.renew, values) is not None

    def holds(self, run_id: str, owner: str) -> bool:
        with self._reading() as connection:
            return connection.execute(self._statements.holds, {"run": run_id, "owner": owner}).first() is not None

    def finish(
        self,
        run_id: str,
        owner: str,
        *,
        failed: str | None = None,
        error: str | None = None,
        counts: Mapping[str, int] | None = None,
    ) -> bool:
        values = {
            "run": run_id,
            "owner": owner,
            "ended": RunState.DONE.value if failed is None else RunState.FAILED.value,
            "because": plain(failed),
            "told": plain(redact(error)) if error else None,
            "counted": to_json({name: whole(n) for name, n in (counts or {}).items()}),
        }

        def work(connection: Connection) -> bool:
            row = connection.execute(self._statements.finish, values).one_or_none()
            if row is None:
                return False
            new = row.chain_seq is None
            end = begin(connection, self._backend, row.account) if new else (row.chain_seq, row.chain_hash)
            self._chain(connection, row, end)
            return True

        return self._write(work)

    def expire(self) -> tuple[Run, ...]:
        run_out = select(runs.c.id).where(RUNNING, not_(alive(self._backend)))
        with self._reading() as connection:  # looking takes no lock, and nearly always there is nothing to do
            if connection.execute(run_out.limit(1)).first() is None:
                return ()
        statement = (
            update(runs)
            .where(runs.c.id.in_(run_out.with_for_update(skip_locked=True)), RUNNING)
            .values(
                state=RunState.FAILED.value,
                reason="cut",
                error="the lease ran out: the process died or was stopped, or its machine lost the ledger",
                finished_at=self._backend.now(),
            )
            .returning(*runs.c)
        )

        def work(connection: Connection) -> tuple[Run, ...]:
            rows = sorted(connection.execute(statement).all(), key=lambda row: (row.account, row.id))
            for row in rows:
                self._chain(connection, row)
            return tuple(to_run(row) for row in rows)

        return self._write(work)

    def depth(self, account: str | None = None) -> int:
        statement = select(func.count()).select_from(runs).where(QUEUED)
        if account is not None:
            statement = statement.where(runs.c.account == account)
        with self._reading() as connection:
            return int(connection.execute(statement).scalar_one())

    def depths(self) -> Mapping[str, int]:
        """How many runs wait, by account; absent where none does."""
        statement = select(runs.c.account, func.count()).where(QUEUED).group_by(runs.c.account)
        with self._reading() as connection:
            return {account: int(count) for account, count in connection.execute(statement)}

    @cached_property
    def _statements(self) -> QueueStatements:
        return QueueStatements(self._backend)

    def _lease_values(self, lease: timedelta) -> dict[str, object]:
        return {"lease_ms": int(lease / timedelta(milliseconds=1)), **self._backend.lease_values(lease)}

    def _chain(self, connection: Connection, row: Row[Any], end: tuple[int, bytes] | None = None) -> None:
        link = Link(Kind.RUN_FINISHED, row.id, digest(values_of(row, RUN)))
        append(connection, self._backend, row.account, self._clock.now(), [link], end)
