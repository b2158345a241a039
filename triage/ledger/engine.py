"""From a ledger URL to an engine: files made private, connections set up so that a commit is on the disk."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

from triage.domain.errors import LedgerError
from triage.ledger.errors import sqlite_error, translated
from triage.ledger.netfs import network_filesystem

BUSY_TIMEOUT_S = 10.0
"""How long a writer waits for its turn before the call fails as temporary."""

_WAL_ATTEMPTS = 200
_IDLE_S = 1.0


def make_engine(url: str) -> Engine:
    """An engine for `sqlite:///FILE` or `postgresql://...`. Raises LedgerError if the URL or the place is unfit."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise LedgerError("the ledger's URL cannot be read; write sqlite:///FILE or postgresql://HOST/DB") from error
    match parsed.get_backend_name():
        case "sqlite":
            return _sqlite(parsed.set(drivername="sqlite+pysqlite"))
        case "postgresql" | "postgres":
            return _postgres(parsed.set(drivername="postgresql+psycopg"))
        case other:
            raise LedgerError(f"a ledger on {other} is not supported; use sqlite:///FILE or postgresql://HOST/DB")


def writer_of(engine: Engine) -> Engine:
    """The engine for transactions of several statements that write."""
    if engine.dialect.name == "sqlite":
        return engine.execution_options(triage_writes=True)
    return engine.execution_options(isolation_level="READ COMMITTED")


def place_of(engine: Engine) -> str:
    """The ledger's name in messages: its URL without the password and without parameters."""
    return f"ledger {engine.url.set(query={}).render_as_string(hide_password=True)}"


def _sqlite(url: URL) -> Engine:
    if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
        raise LedgerError("the ledger needs a file: write sqlite:///FILE")
    path = Path(url.database).absolute()
    _make_private(path)
    kind = network_filesystem(path)
    if kind is not None:
        raise LedgerError(
            f"ledger {path}: this is on a network file system ({kind}), where SQLite loses records; "
            "use a local disk, or PostgreSQL for several machines"
        )
    engine = create_engine(url.set(database=str(path)), hide_parameters=True, connect_args={"timeout": BUSY_TIMEOUT_S})
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    with translated(f"ledger {path}"):
        _write_ahead(engine, path)
    return engine


def _make_private(path: Path) -> None:
    """Create the file for its owner only; SQLite gives its -wal and -shm companions the same mode."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise LedgerError(f"ledger {path}: cannot be created or opened: {error.strerror}") from error


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions are begun by _begin_sqlite, not guessed by the driver
    connection.execute("PRAGMA foreign_keys=ON")
    # In WAL mode NORMAL may forget the last commits when the power fails; a journal may not.
    connection.execute("PRAGMA synchronous=FULL")


def _begin_sqlite(connection: Connection) -> None:
    # A deferred transaction that turns to writing fails at once when somebody else wrote; an immediate one waits.
    writes = connection.get_execution_options().get("triage_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _write_ahead(engine: Engine, path: Path) -> None:
    """Switch the file to WAL, once in its life. SQLite does not wait for other openers here, so we do."""
    for attempt in range(1, _WAL_ATTEMPTS + 1):
        try:
            with closing(engine.raw_connection()) as connection:
                cursor = connection.cursor()
                for pragma in ("PRAGMA journal_mode", "PRAGMA journal_mode=WAL"):
                    if cursor.execute(pragma).fetchone()[0] == "wal":
                        return
            raise LedgerError(f"ledger {path}: this place cannot hold a write-ahead log; use a local disk")
        except sqlite3.Error as error:
            told = sqlite_error(f"ledger {path}", str(error))
            if not told.temporary or attempt == _WAL_ATTEMPTS:
                raise told from error
            time.sleep(BUSY_TIMEOUT_S / _WAL_ATTEMPTS)


def _postgres(url: URL) -> Engine:
    patience: dict[str, Any] = {"connect_timeout": 10, "tcp_user_timeout": 20_000, "application_name": "triage"}
    try:
        engine = create_engine(
            url,
            hide_parameters=True,
            # Most statements are a transaction by themselves; setting this on every connection anew would cost as much
            # as sending the statement.
            isolation_level="AUTOCOMMIT",
            pool_recycle=1800,
            connect_args={name: value for name, value in patience.items() if name not in url.query},
        )
    except ModuleNotFoundError as error:
        raise LedgerError("a PostgreSQL ledger needs its driver: pip install 'triage[postgres]'") from error
    event.listen(engine, "connect", _set_up_postgres)
    event.listen(engine, "checkin", _note_use)
    event.listen(engine, "checkout", _ping_after_idling)
    return engine


def _set_up_postgres(connection: Any, _record: object) -> None:
    # A process that is stopped in mid-transaction must not hold the others' rows for longer than this.
    try:
        connection.execute(f"SET lock_timeout = '{int(BUSY_TIMEOUT_S)}s'")
        connection.execute(f"SET idle_in_transaction_session_timeout = '{int(2 * BUSY_TIMEOUT_S)}s'")
    except _driver_error() as error:
        raise DisconnectionError from error


def _note_use(_connection: Any, record: ConnectionPoolEntry) -> None:
    record.info["used"] = time.monotonic()


def _ping_after_idling(connection: Any, record: ConnectionPoolEntry, _proxy: object) -> None:
    """As pool_pre_ping, but a connection in constant use is not asked each time whether it still lives."""
    if time.monotonic() - record.info.get("used", -_IDLE_S) < _IDLE_S:
        return
    try:
        connection.execute("SELECT 1")
    except _driver_error() as error:
        raise DisconnectionError from error


def _driver_error() -> type[Exception]:
    """Every error of the PostgreSQL driver, which is imported only where there is a PostgreSQL."""
    import psycopg

    return psycopg.Error
