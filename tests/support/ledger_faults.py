"""A ledger whose database refuses to begin or to commit a transaction, as SQLite does when it is locked or full."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass
from typing import Any

from sqlalchemy import event

from triage.ledger.ledger import SqlLedger

SAYS = {"locked": "database is locked", "full": "database or disk is full", "broken": "disk I/O error"}


@dataclass(frozen=True)
class Fault:
    """`what` happens at the n-th writing transaction, and at all after it if `lasting`. A locked database refuses at
    BEGIN, a full or broken disk at COMMIT."""

    what: str
    n: int
    lasting: bool = False

    def __str__(self) -> str:
        return f"{self.what}-{'from' if self.lasting else 'at'}-{self.n}"


def break_at(ledger: SqlLedger, fault: Fault) -> list[int]:
    """Inject the fault below SQLAlchemy, where the driver would raise it; the transactions that were refused so."""
    struck: list[int] = []
    engine = ledger._engine
    count = [0]
    lock = threading.Lock()

    def strike() -> None:
        if count[0] == fault.n or (fault.lasting and count[0] > fault.n):
            struck.append(count[0])
            raise sqlite3.OperationalError(SAYS[fault.what])

    @event.listens_for(engine, "do_execute")  # type: ignore[untyped-decorator]
    def begin(cursor: Any, statement: str, parameters: Any, context: Any) -> None:
        if statement == "BEGIN IMMEDIATE":
            with lock:
                count[0] += 1
            if fault.what == "locked":
                strike()

    commit = engine.dialect.do_commit

    def do_commit(connection: Any) -> None:
        if fault.what != "locked" and connection.in_transaction:
            strike()
        commit(connection)

    engine.dialect.do_commit = do_commit  # type: ignore[method-assign]
    return struck
