"""The ledger as one object, and how it is opened."""

from __future__ import annotations

from triage.ledger.auditing import AuditPart
from triage.ledger.corrections import CorrectionsPart
from triage.ledger.engine import make_engine
from triage.ledger.figures import FiguresPart
from triage.ledger.forget import ForgetPart
from triage.ledger.migrate import upgrade_engine
from triage.ledger.queue import QueuePart
from triage.ledger.records import RecordsPart
from triage.ledger.seals import SealsPart
from triage.ledger.tool_waits import ToolPart
from triage.ledger.web_queries import WebPart
from triage.ports import Clock


class SqlLedger(
    QueuePart, RecordsPart, CorrectionsPart, ForgetPart, SealsPart, FiguresPart, AuditPart, ToolPart, WebPart
):
    """`triage.ports.Ledger` and `BreakerStore` on SQLite or PostgreSQL. Thread-safe; open one in each process."""


def open_ledger(url: str, clock: Clock) -> SqlLedger:
    """Open the ledger at `sqlite:///FILE` or `postgresql://...`, made or upgraded first where that is needed.

    Any number of processes may do so at once. Raises LedgerError, which says what to do.
    """
    engine = make_engine(url)
    try:
        upgrade_engine(engine)
    except BaseException:
        engine.dispose()
        raise
    return SqlLedger(engine, clock)
