"""The journal: what was decided, and how far each decision got. Durable when a call returns."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, func, insert, select, update

from triage.domain.errors import LeaseLost, LedgerError
from triage.domain.mail import MessageRef
from triage.domain.record import DecisionRecord, RunState, StepRecord
from triage.ledger.chain import Kind, Link, append, digest
from triage.ledger.errors import Contradiction
from triage.ledger.rows import (
    CONTENT,
    STATE,
    decision_content,
    decision_state,
    plain,
    state_values,
    to_decision,
    to_json,
    whole,
)
from triage.ledger.schema import UNFINISHED, decisions, runs, steps
from triage.ledger.states import StatesPart

_FINGERPRINT_DIGITS = 32
_ROWS_AT_ONCE = 500

# Built once: they run for every run, and building them costs more than running.
_STATE_OF_RUN = select(runs.c.state).where(runs.c.id == bindparam("run")).with_for_update(read=True)
_OF_ACCOUNT = decisions.c.account == bindparam("of")
_IN_ORDER = select(decisions).order_by(decisions.c.decided_at, decisions.c.id)
_UNFINISHED = _IN_ORDER.where(_OF_ACCOUNT, UNFINISHED).limit(bindparam("most"))
_BY_MESSAGE_ID = _IN_ORDER.where(
    _OF_ACCOUNT, decisions.c.message_id_key.in_(bindparam("keys", expanding=True)), decisions.c.labelled_at.is_not(None)
)
_SPENT = select(func.coalesce(func.sum(decisions.c.cost_usd), 0.0)).where(decisions.c.decided_at >= bindparam("since"))
_STEP = ("run_id", "name", "started_at", "duration_ms", "counts")
_RECORD_STEP = insert(steps).from_select(
    _STEP,
    select(*(bindparam(f"its_{name}", type_=steps.c[name].type) for name in _STEP)).where(
        select(runs.c.id).where(runs.c.id == bindparam("its_run_id")).exists()
    ),
)


def _marking(still_open: ColumnElement[bool], *names: str) -> Any:
    """Fill in these columns of the decisions that are still open in this respect; returns their state."""
    return (
        update(decisions)
        .where(decisions.c.id.in_(bindparam("ids", expanding=True)), still_open)
        .values({name: bindparam(f"to_{name}") for name in names})
        .returning(decisions.c.id, decisions.c.account, decisions.c.salt, *STATE)
    )


_MARKS = {
    Kind.LABELLED: _marking(decisions.c.labelled_at.is_(None), "labelled_at"),
    Kind.ARCHIVED: _marking(
        decisions.c.archived_at.is_(None), "archived_at", "archived_mailbox", "archived_uidvalidity", "archived_uid"
    ),
    Kind.CLOSED: _marking(decisions.c.closed_reason.is_(None), "closed_reason"),
    Kind.RECOVERED: _marking(decisions.c.recovered_by.is_(None), "recovered_by"),
}


class JournalPart(StatesPart):
    """Journal of `triage.ports`."""

    _key: bytes | None = None

    def key(self, text: str) -> str:
        """HMAC-SHA256 under the ledger's own key: it names a message and tells nothing about it elsewhere."""
        if not text:
            return ""
        if self._key is None:
            self._key = self._fingerprint_key()
        return hmac.new(self._key, text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()[
            :_FINGERPRINT_DIGITS
        ]

    def record_decisions(self, records: Sequence[DecisionRecord]) -> None:
        """Decisions of one run, all in one transaction or none.

        Raises LedgerError if an unapplied decision of one of these messages and the same category set exists: none is
        paid twice. Raises LeaseLost if the run is over: another one may have decided the messages since.
        """
        if not records:
            return
        (run_id, account), *others = {(r.run_id, r.account) for r in records}
        assert not others, "decisions are recorded run by run"
        rows, links = [], []
        for record in records:
            values, state, salt = decision_content(record), decision_state(record), secrets.token_bytes(16)
            rows.append({**values, **state, "salt": salt})
            links.append(Link(Kind.DECIDED, record.id, digest([values[c.name] for c in CONTENT], salt)))
            links += [Link(kind, record.id, digest(told, salt)) for kind, told in state_values(state).items()]

        def work(connection: Connection) -> None:
            # The row is held, so that the run cannot be cut, and another one begun, before its decisions are in.
            state = connection.execute(_STATE_OF_RUN, {"run": run_id}).scalar_one_or_none()
            if state not in (None, RunState.RUNNING.value):
                raise LeaseLost(f"run {run_id} is over; its decisions are not recorded: {_refs(records)}")
            connection.execute(insert(decisions), rows)
            append(connection, self._backend, account, self._clock.now(), links)

        try:
            self._write(work)
        except Contradiction as error:
            raise LedgerError(
                f"account {account}, run {run_id}: one of these messages is decided already and not yet applied, so "
                f"none was recorded: {_refs(records)}"
            ) from error

    def mark_labelled(self, decision_ids: Sequence[str], at: datetime) -> None:
        self._mark(Kind.LABELLED, decision_ids, lambda _id: {"labelled_at": at})

    def mark_archived(self, archived: Mapping[str, MessageRef | None], at: datetime) -> None:
        def values(decision_id: str) -> dict[str, Any]:
            to = archived[decision_id]
            return {
                "archived_at": at,
                "archived_mailbox": to.mailbox if to else None,
                "archived_uidvalidity": to.uidvalidity if to else None,
                "archived_uid": to.uid if to else None,
            }

        self._mark(Kind.ARCHIVED, list(archived), values)

    def mark_closed(self, decision_ids: Sequence[str], reason: str, at: datetime) -> None:
        self._mark(Kind.CLOSED, decision_ids, lambda _id: {"closed_reason": plain(reason)}, at)

    def mark_recovered(self, decision_ids: Sequence[str], run_id: str, at: datetime) -> None:
        self._mark(Kind.RECOVERED, decision_ids, lambda _id: {"recovered_by": run_id}, at)

    def _mark(
        self,
        kind: Kind,
        decision_ids: Sequence[str],
        values: Callable[[str], dict[str, Any]],
        at: datetime | None = None,
    ) -> None:
        """Fill in state columns, once: a mark made before stays as it is, unknown ids are passed over.

        All of them in one transaction, one link each. Decisions with equal values share a statement.
        """
        groups: dict[tuple[tuple[str, Any], ...], list[str]] = defaultdict(list)
        for decision_id in dict.fromkeys(decision_ids):
            groups[tuple(values(decision_id).items())].append(decision_id)

        def work(connection: Connection) -> None:
            links: dict[str, list[Link]] = defaultdict(list)
            for items, ids in groups.items():
                for some in _in_portions(ids):
                    told = {f"to_{name}": value for name, value in items}
                    for row in connection.execute(_MARKS[kind], {"ids": some, **told}).all():
                        done = state_values(row._mapping)[kind]
                        links[row.account].append(Link(kind, row.id, digest(done, row.salt)))
            for account in sorted(links):  # always in the same order: two transactions never wait for each other
                told_in_order = sorted(links[account], key=lambda link: link.subject)
                append(connection, self._backend, account, at or self._clock.now(), told_in_order)

        if groups:
            self._write(work)

    def previewed(self, account: str, category_set: str, message_keys: Sequence[str]) -> frozenset[str]:
        found: set[str] = set()
        with self._reading() as connection:
            for some in _in_portions(message_keys):
                statement = select(decisions.c.message_key).where(
                    decisions.c.account == account,
                    decisions.c.message_key.in_(some),
                    decisions.c.category_set == category_set,
                    decisions.c.closed_reason == "preview",
                )
                found.update(connection.execute(statement).scalars())
        return frozenset(found)

    def unfinished(self, account: str, limit: int = 500) -> tuple[DecisionRecord, ...]:
        return self._decisions(_UNFINISHED, {"of": account, "most": limit})

    def latest_decisions(self, account: str, message_id_keys: Sequence[str]) -> Mapping[str, DecisionRecord]:
        keys = [key for key in dict.fromkeys(message_id_keys) if key]
        found: dict[str, DecisionRecord] = {}
        with self._reading() as connection:
            for some in _in_portions(keys):
                for row in connection.execute(_BY_MESSAGE_ID, {"of": account, "keys": some}):
                    found[row.message_id_key] = to_decision(row)  # later ones overwrite earlier ones
        return found

    def record_step(self, run_id: str, step: StepRecord) -> None:
        """Kept with the next write of this process: a step is a report, and every decision is durable by itself.

        A step of a run that is gone is dropped.
        """
        values = {
            "run_id": run_id,
            "name": step.name,
            "started_at": step.started_at,
            "duration_ms": whole(step.duration_ms),
            "counts": to_json({name: whole(n) for name, n in step.counts.items()}),
        }
        self._riders.add(_RECORD_STEP, {f"its_{name}": value for name, value in values.items()})

    def spent_usd(self, since: datetime) -> float:
        with self._reading() as connection:
            return float(connection.execute(_SPENT, {"since": since}).scalar_one())

    def _decisions(self, statement: Any, values: Mapping[str, object] | None = None) -> tuple[DecisionRecord, ...]:
        with self._reading() as connection:
            rows: Sequence[Row[Any]] = connection.execute(statement, values or {}).all()
        return tuple(to_decision(row) for row in rows)


def _refs(records: Sequence[DecisionRecord]) -> str:
    return ", ".join(str(record.ref) for record in records)


def _in_portions(items: Sequence[Any]) -> list[Sequence[Any]]:
    return [items[i : i + _ROWS_AT_ONCE] for i in range(0, len(items), _ROWS_AT_ONCE)]
