"""Receipts: one for every call of the mail tool, chained like every record, and the rates that reports read.

They hang on a chain of their own beside the account's, because they are kept for another time.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from triage.domain.tool import Rates, Receipt
from triage.ledger.chain import HOLDS_RECEIPTS, Kind, Link, append, digest, receipts_chain
from triage.ledger.forget import base_digest
from triage.ledger.schema import chains, events
from triage.ledger.states import StatesPart
from triage.ledger.tool_rows import RECEIPT, receipt_values, to_receipt
from triage.ledger.tool_schema import tool_receipts, tool_runs

_NEWEST = select(tool_receipts).order_by(tool_receipts.c.at.desc(), tool_receipts.c.id.desc())
INCONSISTENT = ("run_not_yours", "unknown_run", "mailbox_of_another_run", "scope_of_another_run", "wait_of_another_run")
"""Reasons that say that a call named one run and meant another."""


class ToolReceiptsPart(StatesPart):
    """Receipts of `triage.agent.ports.ToolLedger`."""

    def record(self, receipt: Receipt) -> None:
        self._write(lambda connection: self._add_receipt(connection, receipt))

    def receipts(
        self, run_id: str | None = None, limit: int = 50, *, account: str | None = None
    ) -> tuple[Receipt, ...]:
        statement = _NEWEST.limit(limit)
        if run_id is not None:
            statement = statement.where(tool_receipts.c.run_id == run_id)
        if account is not None:
            statement = statement.where(tool_receipts.c.account == account)
        with self._reading() as connection:
            return tuple(to_receipt(row) for row in connection.execute(statement))

    def last_receipt(
        self, run_id: str, generation: int, calls: Sequence[str], *, but: Sequence[str] = ()
    ) -> Receipt | None:
        known = tool_receipts.c
        told = _NEWEST.where(known.run_id == run_id, known.generation == generation, known.call.in_(calls))
        with self._reading() as connection:
            row = connection.execute(told.where(known.state.not_in([*map(str, but)])).limit(1)).one_or_none()
        return None if row is None else to_receipt(row)

    def receipt(self, receipt_id: str) -> Receipt | None:
        with self._reading() as connection:
            row = connection.execute(select(tool_receipts).where(tool_receipts.c.id == receipt_id)).one_or_none()
        return None if row is None else to_receipt(row)

    def tool_rates(self, since: datetime, account: str | None = None) -> Rates:
        """How the calls since then ended."""
        known = tool_receipts.c
        statement = select(known.state, known.reason, func.count()).where(known.at >= since)
        if account is not None:
            statement = statement.where(known.account == account)
        by_state: dict[str, int] = {}
        inconsistent = 0
        with self._reading() as connection:
            for state, reason, n in connection.execute(statement.group_by(known.state, known.reason)):
                by_state[state] = by_state.get(state, 0) + n
                inconsistent += n if reason in INCONSISTENT else 0
        return Rates(
            calls=sum(by_state.values()),
            forbidden=by_state.get("forbidden", 0),
            timeout=by_state.get("timeout", 0),
            inconsistent_run=inconsistent,
            by_state=by_state,
        )

    def forget_receipts(self, before: datetime) -> int:
        """Retention: receipts from before an instant go, with their links and the runs that ended before it."""

        def work(connection: Connection) -> int:
            gone = 0
            names = connection.execute(select(chains.c.account).where(HOLDS_RECEIPTS)).scalars().all()
            for name in names:
                gone += self._cut_receipts(connection, name, before)
            connection.execute(delete(tool_runs).where(tool_runs.c.watch_until < before))
            return gone

        return self._write(work)

    def _cut_receipts(self, connection: Connection, name: str, before: datetime) -> int:
        chain = connection.execute(select(chains).where(chains.c.account == name).with_for_update()).one()
        old = (events.c.account == name, events.c.seq > chain.base_seq)
        first_kept = select(func.min(events.c.seq)).where(*old, events.c.at >= before)
        last = connection.execute(first_kept).scalar_one()
        end = chain.seq if last is None else last - 1
        if end <= chain.base_seq:
            return 0
        base = connection.execute(select(events).where(events.c.account == name, events.c.seq == end)).one()
        ids = select(events.c.subject).where(*old, events.c.seq <= end, events.c.kind == Kind.RECEIPT.value)
        gone = connection.execute(delete(tool_receipts).where(tool_receipts.c.id.in_(ids))).rowcount
        connection.execute(delete(events).where(events.c.account == name, events.c.seq <= end))
        cut = update(chains).where(chains.c.account == name).values(base_seq=base.seq, base_hash=base.hash)
        connection.execute(cut)
        told = Link(Kind.PRUNED, str(base.seq), base_digest(base.seq, base.hash))
        append(connection, self._backend, name, self._clock.now(), [told])
        return int(gone)

    def _add_receipt(self, connection: Connection, receipt: Receipt) -> None:
        values = receipt_values(receipt)
        salt = secrets.token_bytes(16)
        connection.execute(insert(tool_receipts).values(**values, salt=salt))
        content = [_utc(values[name]) for name in RECEIPT]
        link = Link(Kind.RECEIPT, receipt.id, digest(content, salt))
        append(connection, self._backend, receipts_chain(receipt.account), receipt.at, [link])


def _utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value
