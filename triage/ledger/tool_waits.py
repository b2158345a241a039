"""The mail tool's waits: one budget over any number of calls, processes and restarts.

What a wait has spent is counted on the clock that all processes of the ledger share (the operating system's monotonic
clock for SQLite, PostgreSQL's own). Where that clock began anew, because the machine was started again, the wall clock
says how long it was away. A deadline never grows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, and_, insert, or_, select, update

from triage.domain.tool import Claim, Mark, Receipt, Taking, ToolRefused, WaitRecord
from triage.ledger.backend import PostgresBackend
from triage.ledger.errors import Contradiction
from triage.ledger.tool_rows import (
    claim_values,
    taking_values,
    to_claim,
    to_taking,
    to_wait,
    wait_values,
)
from triage.ledger.tool_runs import ToolRunsPart
from triage.ledger.tool_schema import tool_claims, tool_runs, tool_takings, tool_waits

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MANY = 500


@cache
def _boot() -> str:
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except OSError:
        return ""


class ToolPart(ToolRunsPart):
    """`triage.agent.ports.ToolLedger`."""

    def mark(self) -> Mark:
        with self._reading() as connection:
            return self._clock_mark(connection)

    def begin_wait(self, wait: WaitRecord, most: int) -> WaitRecord:
        def work(connection: Connection) -> WaitRecord:
            self._backend.one_at_a_time(connection, f"tool:{wait.account}")
            ours = and_(tool_runs.c.id == wait.run_id, tool_runs.c.generation == wait.generation)
            under_way = select(tool_waits.c.id).where(
                tool_waits.c.run_id == wait.run_id,
                tool_waits.c.generation == wait.generation,
                tool_waits.c.state == "pending",
                tool_waits.c.cancelled.is_(False),
                tool_waits.c.held_until_ms > self._clock_mark(connection).ms,
            )
            if connection.execute(under_way).first() is not None:
                raise ToolRefused("wait_in_progress")
            counted = (
                update(tool_runs)
                .where(ours, tool_runs.c.attempts_used < most)
                .values(attempts_used=tool_runs.c.attempts_used + 1)
                .returning(tool_runs.c.attempts_used)
            )
            attempt = connection.execute(counted).scalar_one_or_none()
            if attempt is None:
                raise ToolRefused("attempts_exhausted")
            # A wait that nobody goes on with must not come back beside the new one.
            connection.execute(
                update(tool_waits)
                .where(
                    tool_waits.c.run_id == wait.run_id,
                    tool_waits.c.generation == wait.generation,
                    tool_waits.c.state == "pending",
                )
                .values(state="cancelled", reason="superseded", cancelled=True)
            )
            begun = replace(wait, attempt=attempt)
            mark = self._clock_mark(connection)
            connection.execute(
                insert(tool_waits).values(
                    **wait_values(begun),
                    mark_epoch=mark.epoch,
                    mark_ms=mark.ms,
                    mark_at=self._clock.now(),
                    held_until_ms=0,
                )
            )
            return begun

        return self._write(work)

    def wait_record(self, wait_id: str) -> WaitRecord | None:
        with self._reading() as connection:
            row = connection.execute(select(tool_waits).where(tool_waits.c.id == wait_id)).one_or_none()
        return None if row is None else to_wait(row)

    def last_wait(self, run_id: str, generation: int) -> WaitRecord | None:
        statement = (
            select(tool_waits)
            .where(tool_waits.c.run_id == run_id, tool_waits.c.generation == generation)
            .order_by(tool_waits.c.attempt.desc())
            .limit(1)
        )
        with self._reading() as connection:
            row = connection.execute(statement).one_or_none()
        return None if row is None else to_wait(row)

    def hold_wait(self, wait_id: str, owner: str, hold_ms: int) -> WaitRecord | None:
        def work(connection: Connection) -> WaitRecord | None:
            row = connection.execute(select(tool_waits).where(tool_waits.c.id == wait_id).with_for_update()).one()
            mark, now = self._clock_mark(connection), self._clock.now()
            same = row.mark_epoch == mark.epoch and mark.ms >= row.mark_ms
            if row.holder not in (None, owner) and same and row.held_until_ms > mark.ms:
                return None
            away = mark.ms - row.mark_ms if same else int((now - row.mark_at) / timedelta(milliseconds=1))
            spent = row.spent_ms + max(0, away) if row.state == "pending" else row.spent_ms
            values = {
                "spent_ms": spent,
                "mark_epoch": mark.epoch,
                "mark_ms": mark.ms,
                "mark_at": now,
                "holder": owner,
                "held_until_ms": mark.ms + hold_ms,
            }
            held = update(tool_waits).where(tool_waits.c.id == wait_id).values(**values).returning(*tool_waits.c)
            return to_wait(connection.execute(held).one())

        return self._write(work)

    def save_wait(self, wait: WaitRecord, owner: str, receipt: Receipt | None, *, release: bool) -> bool:
        def work(connection: Connection) -> bool:
            if not self._save_wait(connection, wait, owner, release=release):
                return False
            if receipt is not None:
                self._add_receipt(connection, receipt)
            return True

        return self._write(work)

    def cancel_waits(self, run_id: str, wait_id: str | None) -> int:
        statement = update(tool_waits).where(
            tool_waits.c.run_id == run_id, tool_waits.c.state == "pending", tool_waits.c.cancelled.is_(False)
        )
        if wait_id is not None:
            statement = statement.where(tool_waits.c.id == wait_id)
        return self._write(lambda connection: int(connection.execute(statement.values(cancelled=True)).rowcount))

    # ------------------------------------------------------------ claims

    def claim_message(self, claim: Claim, taking: Taking | None, receipt: Receipt, wait: WaitRecord | None) -> bool:
        if self.claims(claim.account, [claim.message_key]):
            return False  # looking takes no lock; whoever comes at the same instant is stopped by the key below

        def work(connection: Connection) -> bool:
            connection.execute(insert(tool_claims).values(**claim_values(claim)))
            if taking is not None:
                connection.execute(insert(tool_takings).values(**taking_values(taking)))
            if wait is not None:
                self._save_wait(connection, wait, None, release=True)
            self._add_receipt(connection, receipt)
            return True

        try:
            return self._write(work)
        except Contradiction:
            return False

    def take(self, taking: Taking, receipt: Receipt) -> bool:
        def work(connection: Connection) -> bool:
            connection.execute(insert(tool_takings).values(**taking_values(taking)))
            self._add_receipt(connection, receipt)
            return True

        try:
            return self._write(work)
        except Contradiction:
            return False

    def redeem(self, handle_key: str, run_id: str, at: datetime) -> tuple[Claim, Taking] | None:
        def work(connection: Connection) -> tuple[Claim, Taking] | None:
            used = (
                update(tool_takings)
                .where(
                    tool_takings.c.handle_key == handle_key,
                    tool_takings.c.run_id == run_id,
                    tool_takings.c.redeemed_at.is_(None),
                )
                .values(redeemed_at=at)
                .returning(*tool_takings.c)
            )
            row = connection.execute(used).one_or_none()
            if row is None:
                return None
            claimed = select(tool_claims).where(
                tool_claims.c.account == row.account, tool_claims.c.message_key == row.message_key
            )
            return to_claim(connection.execute(claimed).one()), to_taking(row)

        return self._write(work)

    def claims(self, account: str, message_keys: Sequence[str]) -> dict[str, Claim]:
        keys = list(dict.fromkeys(message_keys))
        found: dict[str, Claim] = {}
        with self._reading() as connection:
            for start in range(0, len(keys), _MANY):
                some = tool_claims.c.message_key.in_(keys[start : start + _MANY])
                for row in connection.execute(select(tool_claims).where(tool_claims.c.account == account, some)):
                    found[row.message_key] = to_claim(row)
        return found

    def claims_of(self, run_id: str, generation: int) -> tuple[Claim, ...]:
        statement = (
            select(tool_claims)
            .where(tool_claims.c.run_id == run_id, tool_claims.c.generation == generation)
            .order_by(tool_claims.c.claimed_at)
        )
        with self._reading() as connection:
            return tuple(to_claim(row) for row in connection.execute(statement))

    def takings_of(self, run_id: str, generation: int) -> tuple[Taking, ...]:
        statement = select(tool_takings).where(tool_takings.c.run_id == run_id, tool_takings.c.generation == generation)
        with self._reading() as connection:
            return tuple(to_taking(row) for row in connection.execute(statement.order_by(tool_takings.c.taken_at)))

    # ------------------------------------------------------------

    def _clock_mark(self, connection: Connection) -> Mark:
        shared = isinstance(self._backend, PostgresBackend)
        ms = connection.execute(select(self._backend.lease_ms())).scalar_one()
        return Mark("database" if shared else _boot(), int(ms))

    def _save_wait(self, connection: Connection, wait: WaitRecord, owner: str | None, *, release: bool) -> bool:
        """`spent_ms` and `cancelled` have their own writers and are left alone."""
        values = wait_values(wait)
        for name in ("id", "spent_ms", "cancelled", "terms", "started_at"):
            del values[name]
        if release:
            values |= {"holder": None, "held_until_ms": 0}
        mine = [tool_waits.c.id == wait.id]
        if owner is not None:
            mine.append(or_(tool_waits.c.holder == owner, tool_waits.c.holder.is_(None)))
        return bool(connection.execute(update(tool_waits).where(*mine).values(**values)).rowcount)
