"""The ground the ledger's parts stand on: one engine, one clock, reading and writing transactions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Executable, Row
from sqlalchemy.exc import DBAPIError

from triage.domain.errors import LedgerError
from triage.ledger.backend import Backend, PostgresBackend, SqliteBackend
from triage.ledger.engine import place_of, writer_of
from triage.ledger.errors import rolled_back, translated
from triage.ports import Clock

T = TypeVar("T")
_ATTEMPTS = 4


class Riders:
    """Statements that are worth a row but no transaction of their own: they ride along with the next write.

    One whose transaction fails rides along with the one after it. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[Executable, Mapping[str, Any]]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, statement: Executable, values: Mapping[str, Any]) -> None:
        with self._lock:
            self._waiting.append((statement, values))

    @contextmanager
    def aboard(self) -> Iterator[list[tuple[Executable, Mapping[str, Any]]]]:
        with self._lock:
            riders, self._waiting = self._waiting, []
        try:
            yield riders
        except BaseException:
            with self._lock:
                self._waiting = riders + self._waiting
            raise


class Store:
    """Engine, clock and transactions. Every public call of the parts is one transaction: all of it or nothing."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._riders = Riders()
        self._engine = engine
        self._clock = clock
        self._where = place_of(engine)
        self._reader = engine
        self._writer = writer_of(engine)
        if engine.dialect.name == "sqlite":
            self._backend: Backend = SqliteBackend(clock)
            self._snapshots, self._single = engine, self._writer
        else:
            # PostgreSQL makes a transaction of a lone statement by itself: one round trip instead of three.
            self._backend = PostgresBackend()
            self._snapshots, self._single = engine.execution_options(isolation_level="REPEATABLE READ"), engine

    def close(self) -> None:
        """Write what still waits for a ride, and close every connection. The ledger may not be used afterwards."""
        with suppress(LedgerError):  # steps of a run are the least of what an unreachable ledger loses
            self._let_ride()
        self._engine.dispose()

    def _let_ride(self) -> None:
        """Write now what waits for a ride."""
        if self._riders:
            self._write(lambda _: None)

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A connection to read with. Each statement sees what is committed by then."""
        with translated(self._where), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def _snapshot(self) -> Iterator[Connection]:
        """A connection to read with whose statements all see the same state."""
        with translated(self._where), self._snapshots.connect() as connection:
            yield connection

    def _write_one(self, statement: Executable, values: Mapping[str, Any]) -> Row[Any] | None:
        """Run one statement that changes at most one row and returns it."""
        rows = self._write_rows(statement, values)
        return rows[0] if rows else None

    def _write_rows(self, statement: Executable, values: Mapping[str, Any]) -> Sequence[Row[Any]]:
        """Run one statement that returns the rows it changed."""
        with translated(self._where), self._single.begin() as connection:
            return connection.execute(statement, values).all()

    def _write(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction; again if PostgreSQL made it give way to another one."""
        with translated(self._where):
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    with self._riders.aboard() as riders, self._writer.begin() as connection:
                        done = work(connection)
                        for statement, values in riders:
                            connection.execute(statement, values)
                except DBAPIError as error:
                    if attempt == _ATTEMPTS or not rolled_back(error):
                        raise
                else:
                    return done
            raise AssertionError("unreachable")
