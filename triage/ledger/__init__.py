"""The run records: queue, journal, hash chain and what reports read, on SQLite or PostgreSQL.

`open_ledger` is the way in; nothing heavy is imported before it is called for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from triage.ledger.ledger import SqlLedger, open_ledger

__all__ = ["SqlLedger", "open_ledger"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from triage.ledger import ledger

        return getattr(ledger, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
