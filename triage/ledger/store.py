"""The ground the ledger's parts stand on: one engine, one clock, reading and writing transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from triage.ledger.backend import Backend, PostgresBackend, SqliteBackend
from triage.ledger.engine import WRITES, place_of
from triage.ledger.errors import rolled_back, translated
from triage.ports import Clock

T = TypeVar("T")
_ATTEMPTS = 4


class Store:
    """Engine, clock and transactions. Every public call of the parts is one transaction: all of it or nothing."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._writer = engine.execution_options(**WRITES)
        self._clock = clock
        self._where = place_of(engine)
        self._backend: Backend = SqliteBackend(clock) if engine.dialect.name == "sqlite" else PostgresBackend()

    def close(self) -> None:
        """Close every connection. The ledger may not be used afterwards."""
        self._engine.dispose()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A transaction that only reads: it sees one state and waits for nobody."""
        with translated(self._where), self._engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    def _write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction; again if PostgreSQL made it give way to another one."""
        with translated(self._where):
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    with self._writer.begin() as connection:
                        return work(connection)
                except DBAPIError as error:
                    if attempt == _ATTEMPTS or not rolled_back(error):
                        raise
            raise AssertionError("unreachable")
