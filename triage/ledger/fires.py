"""Fires into the queue: each an insert that the database lets in once, however many servers try.

Every call is a single statement and needs no lock. Between a fire and the coalescing of those that wait a worker may
claim one of them; then the newer one waits its turn, as any fire that comes while a run is on.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from sqlalchemy import Row, Text, bindparam, literal, select, update
from sqlalchemy.sql.dml import ReturningInsert, Update

from triage.domain.record import Fire, Run, RunState, Trigger
from triage.ledger.errors import Contradiction
from triage.ledger.rows import to_json, to_run
from triage.ledger.schema import QUEUED, runs
from triage.ledger.store import Store
from triage.ledger.types import UtcDateTime

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # no i, l, o, u: an id is read out and typed
_ID_ATTEMPTS = 8
_PORTION = 1_000
"""Accounts that one statement fires for: PostgreSQL and SQLite let others in between."""


def new_run_id(now: datetime) -> str:
    """A run id that sorts by time and can be read out: UTC date, time, six random letters."""
    tail = "".join(secrets.choice(_ALPHABET) for _ in range(6))
    return f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{tail}"


class FiresPart(Store):
    """The part of `RunQueue` of `triage.ports` that fills the queue."""

    def enqueue(
        self, account: str, trigger: Trigger, fire_time: datetime, options: Mapping[str, str] | None = None
    ) -> Run | None:
        rows = self._let_in([account], trigger, fire_time, options or {})
        if not rows:
            return None
        if trigger is not Trigger.SCHEDULE:
            return to_run(rows[0])
        self._coalesce([account])
        with self._reading() as connection:
            return to_run(connection.execute(select(runs).where(runs.c.id == rows[0].id)).one())

    def fire(self, fires: Sequence[Fire]) -> Mapping[str, str]:
        alike: dict[tuple[datetime, int, datetime | None], list[str]] = defaultdict(list)
        for fire in fires:
            alike[fire.fire_time, fire.missed, fire.missed_since].append(fire.account)
        let_in: dict[str, str] = {}
        for (fire_time, missed, since), accounts in alike.items():
            options = {"missed": str(missed), "missed_since": since.isoformat()} if since else {}
            for some in _portions(accounts):
                rows = self._let_in(some, Trigger.SCHEDULE, fire_time, options)
                let_in |= {row.account: row.id for row in rows}
        for some in _portions(let_in):
            self._coalesce(some)
        return let_in

    def _let_in(
        self, accounts: Sequence[str], trigger: Trigger, fire_time: datetime, options: Mapping[str, str]
    ) -> Sequence[Row[Any]]:
        """Insert one fire an account; the rows of those that were not there already."""
        values = {"why": trigger.value, "at": fire_time, "told": to_json(dict(options))}
        for attempt in range(1, _ID_ATTEMPTS + 1):
            ids = {account: new_run_id(self._clock.now()) for account in accounts}
            try:
                return self._write_rows(self._insert, {"ids": to_json(ids), **values})
            except Contradiction:  # an id was taken: draw others
                if attempt == _ID_ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    def _coalesce(self, accounts: Sequence[str]) -> None:
        values = {"accounts": self._backend.list_value(accounts)}
        self._write(lambda connection: connection.execute(self._into_newest, values))

    @cached_property
    def _insert(self) -> ReturningInsert[Any]:
        asked = self._backend.pairs("ids")
        columns = {
            runs.c.id: asked.c.value,
            runs.c.account: asked.c.key,
            runs.c.trigger: bindparam("why", type_=Text),
            runs.c.fire_time: bindparam("at", type_=UtcDateTime),
            runs.c.state: literal(RunState.QUEUED.value, Text),
            runs.c.enqueued_at: self._backend.now(),
            runs.c.counts: literal("{}", Text),
            runs.c.options: bindparam("told", type_=Text),
        }
        # Without a WHERE, SQLite takes ON CONFLICT for a join's ON.
        fires = select(*columns.values()).where(asked.c.key.is_not(None))
        statement: ReturningInsert[Any] = (
            self._backend.insert(runs)
            .from_select(list(columns), fires)
            .on_conflict_do_nothing(index_elements=[runs.c.account, runs.c.fire_time])
            .returning(*runs.c)
        )
        return statement

    @cached_property
    def _into_newest(self) -> Update:
        later = runs.alias("later")
        newest = (
            select(later.c.id)
            .where(later.c.account == runs.c.account, later.c.fire_time > runs.c.fire_time)
            .where(later.c.state == QUEUED.right, later.c.trigger == Trigger.SCHEDULE.value)
            .order_by(later.c.fire_time.desc())
            .limit(1)
        )
        return (
            update(runs)
            .where(QUEUED, runs.c.trigger == Trigger.SCHEDULE.value, newest.exists())
            .where(self._backend.among(runs.c.account, "accounts"))
            .values(
                state=RunState.COALESCED.value,
                reason=literal("into ", Text) + newest.scalar_subquery(),
                finished_at=self._backend.now(),
            )
        )


def _portions(accounts: Iterable[str]) -> Iterator[Sequence[str]]:
    those = list(accounts)
    return (those[n : n + _PORTION] for n in range(0, len(those), _PORTION))
