"""Reading back: runs, steps, decisions, for people and reports. Nothing here writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any

from sqlalchemy import Column, ColumnElement, Select, and_, bindparam, or_, select, tuple_

from triage.domain.record import DecisionRecord, Run, RunState, StepRecord, Trigger
from triage.ledger.chain import HOLDS_RECEIPTS
from triage.ledger.journal import JournalPart
from triage.ledger.rows import to_decision, to_json, to_run, to_step
from triage.ledger.schema import chains, decisions, events, runs, steps

_CHUNK = 2_000
_RUN = select(runs).where(runs.c.id == bindparam("its_id"))
_FIRST_LINK = (
    select(events.c.at)
    .join(chains, chains.c.account == events.c.account)
    .where(chains.c.account == bindparam("of"), chains.c.base_seq > 0, events.c.seq == chains.c.base_seq + 1)
)


class RecordsPart(JournalPart):
    """Records of `triage.ports`, and what reports and the audit stream."""

    def runs(self, account: str | None = None, limit: int = 20, since: datetime | None = None) -> tuple[Run, ...]:
        """The newest runs first, those that were enqueued at or after `since`."""
        statement = select(runs).order_by(runs.c.enqueued_at.desc(), runs.c.id.desc()).limit(limit)
        if account is not None:
            statement = statement.where(runs.c.account == account)
        if since is not None:
            statement = statement.where(runs.c.enqueued_at >= since)
        with self._reading() as connection:
            return tuple(to_run(row) for row in connection.execute(statement))

    def last_fires(self, accounts: Sequence[str]) -> Mapping[str, datetime]:
        """The latest fire time of each account's schedule, whatever became of it; absent if it never fired."""
        found: dict[str, datetime] = {}
        with self._reading() as connection:
            for n in range(0, len(accounts), _CHUNK):
                asked = {"accounts": to_json(dict.fromkeys(accounts[n : n + _CHUNK], ""))}
                rows = connection.execute(self._last_fires, asked)
                found |= {account: fire_time for account, fire_time in rows if fire_time is not None}
        return found

    @cached_property
    def _last_fires(self) -> Select[Any]:
        """One look into the index an account; a GROUP BY would read every run there ever was."""
        asked = self._backend.pairs("accounts")
        latest = (
            select(runs.c.fire_time)
            .where(runs.c.account == asked.c.key, runs.c.trigger == Trigger.SCHEDULE.value)
            .order_by(runs.c.fire_time.desc())
            .limit(1)
        )
        return select(asked.c.key, latest.scalar_subquery())

    def latest_runs(self, accounts: Sequence[str]) -> Mapping[str, tuple[Run, ...]]:
        """The latest run that is done and the latest that failed of each account, newest first."""
        found: dict[str, tuple[Run, ...]] = {}
        with self._reading() as connection:
            for n in range(0, len(accounts), _CHUNK):
                asked = {"accounts": to_json(dict.fromkeys(accounts[n : n + _CHUNK], ""))}
                for row in connection.execute(self._latest_runs, asked):
                    found[row.account] = (*found.get(row.account, ()), to_run(row))
        return found

    @cached_property
    def _latest_runs(self) -> Select[Any]:
        asked = self._backend.pairs("accounts")
        other = runs.alias("other")

        def latest(state: RunState) -> ColumnElement[str]:
            newest = select(other.c.id).where(other.c.account == asked.c.key, other.c.state == state.value)
            newest = newest.order_by(other.c.enqueued_at.desc(), other.c.id.desc()).limit(1)
            return newest.correlate(asked).scalar_subquery()

        ended = or_(*(runs.c.id == latest(state) for state in (RunState.DONE, RunState.FAILED)))
        newest_first = (runs.c.enqueued_at.desc(), runs.c.id.desc())
        return select(*runs.c).join_from(asked, runs, ended).order_by(*newest_first)

    def run(self, run_id: str) -> Run | None:
        if not run_id:
            return None
        with self._reading() as connection:
            rows = connection.execute(_RUN, {"its_id": run_id}).all()
            if not rows:
                rows = connection.execute(select(runs).where(_begins(runs.c.id, run_id)).limit(2)).all()
        return to_run(rows[0]) if len(rows) == 1 else None

    def remembered_since(self, account: str) -> datetime | None:
        """Since when this account's records are complete; None if none was ever removed for its age."""
        with self._reading() as connection:
            since: datetime | None = connection.execute(_FIRST_LINK, {"of": account}).scalar_one_or_none()
        return since

    def first_record(self, account: str) -> datetime | None:
        """When the oldest record that is still kept of an account was made; None if there is none."""
        first = select(events.c.at).where(events.c.account == account).order_by(events.c.seq).limit(1)
        with self._reading() as connection:
            at: datetime | None = connection.execute(first).scalar_one_or_none()
        return at

    def steps(self, run_id: str) -> tuple[StepRecord, ...]:
        self._let_ride()
        statement = select(steps).where(steps.c.run_id == run_id).order_by(steps.c.id)
        with self._reading() as connection:
            return tuple(to_step(row) for row in connection.execute(statement))

    def decisions(self, run_id: str) -> tuple[DecisionRecord, ...]:
        return self._decisions(_in_order().where(decisions.c.run_id == run_id))

    def recovered(self, run_id: str) -> tuple[DecisionRecord, ...]:
        """Decisions of earlier runs that this run finished."""
        return self._decisions(_in_order().where(decisions.c.recovered_by == run_id))

    def decision(self, decision_id: str) -> DecisionRecord | None:
        found = self._decisions(select(decisions).where(decisions.c.id == decision_id))
        return found[0] if found else None

    def decision_by_key(self, prefix: str, limit: int = 50) -> tuple[DecisionRecord, ...]:
        """All decisions, newest first, of the one message whose key begins so; () if there is none, or several."""
        if not prefix:
            return ()
        newest = select(decisions).order_by(decisions.c.decided_at.desc(), decisions.c.id.desc())
        keys = select(decisions.c.message_key).where(_begins(decisions.c.message_key, prefix)).distinct().limit(2)
        with self._reading() as connection:
            found = connection.execute(keys).scalars().all()
            if len(found) != 1:
                return ()
            rows = connection.execute(newest.where(decisions.c.message_key == found[0]).limit(limit)).all()
        return tuple(to_decision(row) for row in rows)

    def iter_decisions(
        self, account: str | None, since: datetime, until: datetime | None = None
    ) -> Iterator[DecisionRecord]:
        """Decisions of a period (`since` <= decided < `until`), oldest first, of one account or of all.

        Any number in bounded memory: read in portions, each of its own transaction, so that nobody waits.
        """
        after: tuple[datetime, str] | None = None
        while True:
            statement = _in_order().where(decisions.c.decided_at >= since).limit(_CHUNK)
            if account is not None:
                statement = statement.where(decisions.c.account == account)
            if until is not None:
                statement = statement.where(decisions.c.decided_at < until)
            if after is not None:
                statement = statement.where(tuple_(decisions.c.decided_at, decisions.c.id) > after)
            portion = self._decisions(statement)
            yield from portion
            if len(portion) < _CHUNK:
                return
            after = (portion[-1].decided_at, portion[-1].id)

    def iter_runs(self, account: str | None, since: datetime, until: datetime | None = None) -> Iterator[Run]:
        """Runs of a period (`since` <= enqueued < `until`), oldest first, in bounded memory."""
        after: tuple[datetime, str] | None = None
        while True:
            statement = select(runs).where(runs.c.enqueued_at >= since).limit(_CHUNK)
            statement = statement.order_by(runs.c.enqueued_at, runs.c.id)
            if account is not None:
                statement = statement.where(runs.c.account == account)
            if until is not None:
                statement = statement.where(runs.c.enqueued_at < until)
            if after is not None:
                statement = statement.where(tuple_(runs.c.enqueued_at, runs.c.id) > after)
            with self._reading() as connection:
                portion = [to_run(row) for row in connection.execute(statement)]
            yield from portion
            if len(portion) < _CHUNK:
                return
            after = (portion[-1].enqueued_at, portion[-1].id)

    def accounts(self) -> tuple[str, ...]:
        """Every account that the ledger holds a record of, sorted. Receipts of the mail tool alone do not count."""
        statement = select(chains.c.account).where(~HOLDS_RECEIPTS).order_by(chains.c.account)
        with self._reading() as connection:
            return tuple(connection.execute(statement).scalars())


def _in_order() -> Any:
    return select(decisions).order_by(decisions.c.decided_at, decisions.c.id)


def _begins(column: Column[Any], prefix: str) -> ColumnElement[bool]:
    """A prefix as a range, which every index serves; ids and keys stay below "~"."""
    return and_(column >= prefix, column < prefix + "~")
