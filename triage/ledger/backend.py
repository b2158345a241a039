"""The few expressions that SQLite and PostgreSQL spell differently. Every statement is written once, over these."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from sqlalchemy import ARRAY, BigInteger, ColumnElement, Connection, Table, Text, any_, cast, func, literal, select
from sqlalchemy.dialects import postgresql, sqlite

from triage.ledger.types import BigInt, UtcDateTime
from triage.ports import Clock


class Backend(Protocol):
    """What a statement needs of its database."""

    def now(self) -> ColumnElement[datetime]:
        """The instant for records."""
        ...

    def later(self, span: timedelta) -> ColumnElement[datetime]: ...

    def lease_ms(self) -> ColumnElement[int]:
        """The lease clock in milliseconds: the one clock that all processes of this ledger share."""
        ...

    def insert(self, table: Table) -> Any:
        """An INSERT with on_conflict_do_nothing and on_conflict_do_update."""
        ...

    def among(self, column: ColumnElement[str], values: Sequence[str]) -> ColumnElement[bool]:
        """`column` is one of `values`, which may be thousands: one parameter, whatever their number."""
        ...

    def one_at_a_time(self, connection: Connection, name: str) -> None:
        """Until this transaction ends, no other one passes here with the same name."""
        ...


class SqliteBackend:
    """One machine: the injected clock. Writers already queue for the file's one write lock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> ColumnElement[datetime]:
        return literal(self._clock.now(), UtcDateTime)

    def later(self, span: timedelta) -> ColumnElement[datetime]:
        return literal(self._clock.now() + span, UtcDateTime)

    def lease_ms(self) -> ColumnElement[int]:
        return literal(int(self._clock.monotonic() * 1000), BigInt)

    def insert(self, table: Table) -> sqlite.Insert:
        return sqlite.insert(table)

    def among(self, column: ColumnElement[str], values: Sequence[str]) -> ColumnElement[bool]:
        return column.in_(select(func.json_each(json.dumps(list(values))).table_valued("value").c.value))

    def one_at_a_time(self, connection: Connection, name: str) -> None:
        del connection, name


class PostgresBackend:
    """Many machines: the database's own clock, read at the statement, not at the transaction's start."""

    def now(self) -> ColumnElement[datetime]:
        return func.clock_timestamp(type_=UtcDateTime)

    def later(self, span: timedelta) -> ColumnElement[datetime]:
        return cast(func.clock_timestamp() + span, UtcDateTime)

    def lease_ms(self) -> ColumnElement[int]:
        return cast(func.extract("epoch", func.clock_timestamp()) * 1000, BigInteger)

    def insert(self, table: Table) -> postgresql.Insert:
        return postgresql.insert(table)

    def among(self, column: ColumnElement[str], values: Sequence[str]) -> ColumnElement[bool]:
        return column == any_(literal(list(values), ARRAY(Text)))

    def one_at_a_time(self, connection: Connection, name: str) -> None:
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))
