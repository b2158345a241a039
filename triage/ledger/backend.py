"""The few expressions that SQLite and PostgreSQL spell differently. Every statement is written once, over these."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from sqlalchemy import (
    ARRAY,
    JSON,
    BigInteger,
    ColumnElement,
    Connection,
    Interval,
    LargeBinary,
    Table,
    TableValuedAlias,
    Text,
    any_,
    bindparam,
    cast,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from triage.ledger.types import BigInt, UtcDateTime
from triage.ports import Clock


class Backend(Protocol):
    """What a statement needs of its database."""

    def now(self) -> ColumnElement[datetime]:
        """The instant for records, read whenever the statement runs."""
        ...

    def lease_until(self) -> ColumnElement[datetime]:
        """When a lease will end, for people to read; takes `lease_values`."""
        ...

    def lease_values(self, lease: timedelta) -> dict[str, object]: ...

    def lease_ms(self) -> ColumnElement[int]:
        """The lease clock in milliseconds: the one clock that all processes of this ledger share."""
        ...

    def insert(self, table: Table) -> Any:
        """An INSERT with on_conflict_do_nothing and on_conflict_do_update."""
        ...

    def among(self, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
        """`column` is in the list that is given as parameter `name`: one parameter, thousands of values or not."""
        ...

    def list_value(self, values: Sequence[str]) -> object:
        """The list as that parameter."""
        ...

    def pairs(self, name: str) -> TableValuedAlias:
        """The mapping that is given as parameter `name`, a JSON object of texts, as a table of `key` and `value`."""
        ...

    def one_at_a_time(self, connection: Connection, name: str) -> None:
        """Until this transaction ends, no other one passes here with the same name."""
        ...

    def row_text(self, table: Table) -> ColumnElement[str]:
        """All that a row holds, as one text: the same row gives the same text."""
        ...

    def together(self, text: ColumnElement[str]) -> ColumnElement[bytes]:
        """The texts of all rows, in their order, as bytes that differ if any of them does; None of no rows."""
        ...


class SqliteBackend:
    """One machine: the injected clock. Writers already queue for the file's one write lock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> ColumnElement[datetime]:
        return bindparam(None, type_=UtcDateTime, callable_=self._clock.now)

    def lease_until(self) -> ColumnElement[datetime]:
        return bindparam("until", type_=UtcDateTime)

    def lease_values(self, lease: timedelta) -> dict[str, object]:
        return {"until": self._clock.now() + lease}

    def lease_ms(self) -> ColumnElement[int]:
        return bindparam(None, type_=BigInt, callable_=lambda: int(self._clock.monotonic() * 1000))

    def insert(self, table: Table) -> sqlite.Insert:
        return sqlite.insert(table)

    def among(self, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
        return column.in_(select(func.json_each(bindparam(name, type_=Text)).table_valued("value").c.value))

    def list_value(self, values: Sequence[str]) -> object:
        return json.dumps(list(values))

    def pairs(self, name: str) -> TableValuedAlias:
        return func.json_each(bindparam(name, type_=Text)).table_valued("key", "value")

    def one_at_a_time(self, connection: Connection, name: str) -> None:
        del connection, name

    def row_text(self, table: Table) -> ColumnElement[str]:
        # One call that reads every column: less than half of what it costs to fetch them, or to concatenate them.
        return func.json_array(*(func.hex(c) if isinstance(c.type, LargeBinary) else c for c in table.c), type_=Text)

    def together(self, text: ColumnElement[str]) -> ColumnElement[bytes]:
        return cast(func.group_concat(text, "\n"), LargeBinary)


class PostgresBackend:
    """Many machines: the database's own clock, read at the statement, not at the transaction's start."""

    def now(self) -> ColumnElement[datetime]:
        return func.clock_timestamp(type_=UtcDateTime)

    def lease_until(self) -> ColumnElement[datetime]:
        return cast(func.clock_timestamp() + bindparam("span", type_=Interval), UtcDateTime)

    def lease_values(self, lease: timedelta) -> dict[str, object]:
        return {"span": lease}

    def lease_ms(self) -> ColumnElement[int]:
        return cast(func.extract("epoch", func.clock_timestamp()) * 1000, BigInteger)

    def insert(self, table: Table) -> postgresql.Insert:
        return postgresql.insert(table)

    def among(self, column: ColumnElement[str], name: str) -> ColumnElement[bool]:
        return column == any_(bindparam(name, type_=ARRAY(Text)))

    def list_value(self, values: Sequence[str]) -> object:
        return list(values)

    def pairs(self, name: str) -> TableValuedAlias:
        return func.json_each_text(cast(bindparam(name, type_=Text), JSON)).table_valued("key", "value")

    def one_at_a_time(self, connection: Connection, name: str) -> None:
        connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))

    def row_text(self, table: Table) -> ColumnElement[str]:
        return cast(literal_column(table.name), Text)

    def together(self, text: ColumnElement[str]) -> ColumnElement[bytes]:
        return func.sha256(func.convert_to(func.string_agg(text, "\n"), "UTF8"), type_=LargeBinary)
