"""The mail tool's runs: opened once, lapsing by themselves, their limits counted here and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, func, insert, or_, select, update

from triage.domain.tool import Receipt, RunRecord, ToolRefused
from triage.ledger.rows import to_json
from triage.ledger.tool_receipts import ToolReceiptsPart
from triage.ledger.tool_rows import run_values, to_tool_run
from triage.ledger.tool_schema import tool_requests, tool_runs, tool_tokens, tool_waits

_LOGIN = "tool_login"
LOGIN_REST = timedelta(minutes=15)
"""So long a refused login is not tried again, unless it is another one by then."""

_WATCHED = (
    select(tool_runs)
    .where(
        tool_runs.c.account == bindparam("of"),
        or_(
            tool_runs.c.watch_until > bindparam("now"),
            and_(tool_runs.c.ended_at.is_(None), tool_runs.c.expires_at > bindparam("now")),
        ),
    )
    .order_by(tool_runs.c.opened_at)
)


def _of(account: str | None) -> tuple[ColumnElement[bool], ...]:
    return () if account is None else (tool_runs.c.account == account,)


def _live(at: datetime) -> tuple[ColumnElement[bool], ...]:
    return tool_runs.c.ended_at.is_(None), tool_runs.c.expires_at > at


class ToolRunsPart(ToolReceiptsPart):
    """Runs, requests, tokens and remembered logins of `triage.agent.ports.ToolLedger`."""

    def open_run(self, run: RunRecord, receipt: Receipt, max_live: int, lease_keys: Sequence[str]) -> RunRecord:
        def work(connection: Connection) -> RunRecord:
            self._backend.one_at_a_time(connection, f"tool:{run.account}")
            self._lapse(connection, run.account, run.opened_at)
            newest = select(func.max(tool_runs.c.generation)).where(tool_runs.c.id == run.id)
            generation = (connection.execute(newest).scalar_one() or 0) + 1
            if generation > 1 and not run.reuse_reason:
                raise ToolRefused("run_exists")
            self._end(connection, run.id, generation - 1, "reused", run.opened_at)
            live = select(tool_runs.c.lease_key).where(
                tool_runs.c.account == run.account, tool_runs.c.ended_at.is_(None)
            )
            taken = set(connection.execute(live).scalars())
            if len(taken) >= max_live:
                raise ToolRefused("too_many_runs")
            free = next((key for key in lease_keys if key not in taken), None)
            if free is None:
                raise ToolRefused("no_free_address")
            opened = replace(run, generation=generation, lease_key=free)
            if run.strategy == "pool":
                opened = replace(opened, address=free)
            connection.execute(insert(tool_runs).values(**run_values(opened)))
            self._add_receipt(connection, replace(receipt, generation=generation))
            return opened

        return self._write(work)

    def tool_run(self, run_id: str) -> RunRecord | None:
        statement = select(tool_runs).where(tool_runs.c.id == run_id).order_by(tool_runs.c.generation.desc()).limit(1)
        with self._reading() as connection:
            row = connection.execute(statement).one_or_none()
        return None if row is None else to_tool_run(row)

    def tool_runs(
        self, account: str | None = None, *, live_at: datetime | None = None, limit: int = 200
    ) -> tuple[RunRecord, ...]:
        statement = select(tool_runs).order_by(tool_runs.c.opened_at.desc(), tool_runs.c.id).limit(limit)
        with self._reading() as connection:
            found = connection.execute(statement.where(*_of(account), *(_live(live_at) if live_at else ())))
            return tuple(to_tool_run(row) for row in found)

    def live_runs(self, at: datetime, account: str | None = None) -> int:
        statement = select(func.count()).select_from(tool_runs).where(*_of(account), *_live(at))
        with self._reading() as connection:
            return int(connection.execute(statement).scalar_one())

    def watched_runs(self, account: str, at: datetime) -> tuple[RunRecord, ...]:
        with self._reading() as connection:
            return tuple(to_tool_run(row) for row in connection.execute(_WATCHED, {"of": account, "now": at}))

    def end_run(self, run_id: str, generation: int, reason: str, at: datetime) -> None:
        self._write(lambda connection: self._end(connection, run_id, generation, reason, at))

    def spend_read(self, run: RunRecord, most: int) -> bool:
        return self._spend(run, "reads_used", most)

    def begin_request(self, run: RunRecord, most: int) -> tuple[int, str]:
        def work(connection: Connection) -> tuple[int, str]:
            self._backend.one_at_a_time(connection, f"tool:{run.account}")
            ours = and_(tool_requests.c.run_id == run.id, tool_requests.c.generation == run.generation)
            newest = select(tool_requests).where(ours).order_by(tool_requests.c.number.desc()).limit(1)
            last = connection.execute(newest).one_or_none()
            if last is not None and last.state in ("new", "unknown") and last.tries < 2:
                again = update(tool_requests).where(ours, tool_requests.c.number == last.number)
                connection.execute(again.values(tries=last.tries + 1, at=self._clock.now()))
                return last.number, last.state
            number = (last.number if last else 0) + 1
            if number > most:
                raise ToolRefused("requests_exhausted")
            connection.execute(
                insert(tool_requests).values(
                    run_id=run.id,
                    generation=run.generation,
                    number=number,
                    state="new",
                    tries=1,
                    at=self._clock.now(),
                )
            )
            connection.execute(update(tool_runs).where(self._row(run)).values(requests_used=number))
            return number, "new"

        return self._write(work)

    def end_request(self, run: RunRecord, number: int, state: str) -> None:
        statement = (
            update(tool_requests)
            .where(
                tool_requests.c.run_id == run.id,
                tool_requests.c.generation == run.generation,
                tool_requests.c.number == number,
            )
            .values(state=state)
        )
        self._write(lambda connection: connection.execute(statement).rowcount)

    def request_state(self, run: RunRecord) -> str | None:
        statement = (
            select(tool_requests.c.state)
            .where(tool_requests.c.run_id == run.id, tool_requests.c.generation == run.generation)
            .order_by(tool_requests.c.number.desc())
            .limit(1)
        )
        with self._reading() as connection:
            return connection.execute(statement).scalar_one_or_none()

    def login_refusal(self, account: str) -> str | None:
        value = self._load(_LOGIN, account) or {}
        until = datetime.fromisoformat(str(value["until"])) if value.get("until") else None
        return str(value["refused"]) if until is not None and self._clock.now() < until else None

    def remember_login(self, account: str, refused: str | None) -> None:
        until = (self._clock.now() + LOGIN_REST).isoformat()
        self._save(_LOGIN, account, {"refused": refused, "until": until} if refused else {})

    def issue_token(self, token_key: str, runs: Sequence[str], until: datetime) -> None:
        values = {"token_key": token_key, "runs": to_json(sorted(runs)), "expires_at": until}

        def work(connection: Connection) -> None:
            now = self._clock.now()
            connection.execute(delete(tool_tokens).where(tool_tokens.c.expires_at < now))
            connection.execute(insert(tool_tokens).values(**values, issued_at=now))

        self._write(work)

    def token_runs(self, token_key: str, at: datetime) -> frozenset[str] | None:
        statement = select(tool_tokens.c.runs).where(
            tool_tokens.c.token_key == token_key, tool_tokens.c.expires_at > at
        )
        with self._reading() as connection:
            found = connection.execute(statement).scalar_one_or_none()
        return None if found is None else frozenset(json.loads(found))

    # ------------------------------------------------------------

    @staticmethod
    def _row(run: RunRecord) -> ColumnElement[bool]:
        return and_(tool_runs.c.id == run.id, tool_runs.c.generation == run.generation)

    def _spend(self, run: RunRecord, column: str, most: int) -> bool:
        counter = tool_runs.c[column]
        statement = update(tool_runs).where(self._row(run), counter < most).values({counter: counter + 1})
        return self._write(lambda connection: connection.execute(statement).rowcount) == 1

    def _lapse(self, connection: Connection, account: str, at: datetime) -> None:
        """Identities end with their time, whether their callers live or not."""
        over = and_(tool_runs.c.account == account, tool_runs.c.ended_at.is_(None), tool_runs.c.expires_at <= at)
        connection.execute(update(tool_runs).where(over).values(ended_at=tool_runs.c.expires_at, end_reason="expired"))

    def _end(self, connection: Connection, run_id: str, generation: int, reason: str, at: datetime) -> None:
        ended = (
            update(tool_runs)
            .where(tool_runs.c.id == run_id, tool_runs.c.generation == generation, tool_runs.c.ended_at.is_(None))
            .values(ended_at=at, end_reason=reason)
        )
        if connection.execute(ended).rowcount:
            stop = update(tool_waits).where(
                tool_waits.c.run_id == run_id, tool_waits.c.generation == generation, tool_waits.c.state == "pending"
            )
            connection.execute(stop.values(cancelled=True))
