"""One place where the database's errors become ours. SQL, parameters and row values never get into a message."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, DisconnectionError, IntegrityError, SQLAlchemyError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from triage.domain.errors import LedgerError

_SQLITE_ADVICE = (
    ("database is locked", True, "another process keeps it locked; the call may be repeated"),
    ("database or disk is full", True, "the disk is full: free some space; nothing was half-written"),
    ("disk i/o error", True, "the disk does not read or write: check it, and free space; nothing was half-written"),
    ("readonly database", False, "the file or its directory cannot be written: check owner and mode"),
    ("unable to open database file", False, "the file cannot be opened: check path, owner and mode"),
    ("file is not a database", False, "the file is not an SQLite database: check the path, or restore a backup"),
    ("malformed", False, "the file is damaged: restore a backup, or recover it with `sqlite3 FILE .recover`"),
)
_TEMPORARY_SQLSTATES = ("08", "40", "53", "55", "57")  # connection, rollback, resources, lock, shutdown
_RETRIED_SQLSTATES = ("40001", "40P01")


class Contradiction(LedgerError):
    """A unique index or a foreign key refused a row: the ledger's own code knows what that means."""


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Run database calls; whatever SQLAlchemy raises comes out as LedgerError. `where` names the ledger."""
    try:
        yield
    except SQLAlchemyError as error:
        raise _translate(error, where) from error
    except sqlite3.Error as error:  # while a connection is being set up, before SQLAlchemy wraps anything
        raise sqlite_error(where, str(error)) from error


def rolled_back(error: DBAPIError) -> bool:
    """PostgreSQL chose this transaction to give way (deadlock, serialization): the same call may be made again."""
    return sqlstate(error) in _RETRIED_SQLSTATES


def sqlstate(error: DBAPIError) -> str:
    """PostgreSQL's five-character error code, or ""."""
    return str(getattr(error.orig, "sqlstate", None) or "")


def _translate(error: SQLAlchemyError, where: str) -> LedgerError:
    if isinstance(error, PoolTimeout):
        return LedgerError(f"{where}: no free connection; too many calls at once", temporary=True)
    if isinstance(error, IntegrityError):
        return Contradiction(f"{where}: the record contradicts one that is there already")
    if isinstance(error, DisconnectionError):
        return LedgerError(f"{where}: the connection was lost; is the database running?", temporary=True)
    if isinstance(error, StatementError) and isinstance(error.orig, ValueError):
        return LedgerError(f"{where}: {error.orig}")  # refused by a column type of ours
    if not isinstance(error, DBAPIError):
        return LedgerError(f"{where}: {type(error).__name__}")
    code = sqlstate(error)
    if code:
        return LedgerError(f"{where}: {_pg_text(error)} (SQLSTATE {code})", code[:2] in _TEMPORARY_SQLSTATES)
    if isinstance(error.orig, sqlite3.Error):
        return sqlite_error(where, str(error.orig))
    if error.connection_invalidated or type(error.orig).__name__ in ("OperationalError", "ConnectionTimeout"):
        return LedgerError(f"{where}: the database does not answer; is it running, is the URL right?", temporary=True)
    return LedgerError(f"{where}: {type(error.orig).__name__}")


def sqlite_error(where: str, said: str) -> LedgerError:
    """What SQLite said, with what to do about it."""
    for phrase, temporary, advice in _SQLITE_ADVICE:
        if phrase in said.casefold():
            return LedgerError(f"{where}: {advice}", temporary)
    return LedgerError(f"{where}: SQLite says: {said}")


def _pg_text(error: DBAPIError) -> str:
    """The server's own sentence without DETAIL, which may quote a row."""
    diagnostics = getattr(error.orig, "diag", None)
    said = getattr(diagnostics, "message_primary", None)
    return str(said or type(error.orig).__name__)
