"""What the audit asks the ledger: each question one statement that an index answers, however many records there are."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, distinct, func, or_, select, text

from triage.domain.record import DecisionRecord
from triage.ledger.figures import counted
from triage.ledger.rows import to_decision
from triage.ledger.schema import DOUBTFUL, FINISHED, HEIRS, UNANSWERED, decisions, events, runs
from triage.ledger.store import Store

_MOST = 1_000  # violations named; more than that nobody reads
_KEYS = 20_000
_AT_ONCE = 500
CLOCK_SLACK = timedelta(minutes=2)
"""How far a worker's clock may be from the ledger's (on PostgreSQL the two are different machines)."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """A run that began before the one before it had ended."""

    run_id: str
    before_id: str


class AuditPart(Store):
    """What can break the six invariants, found in the records of one account since an instant."""

    def decided_since(self, account: str, since: datetime) -> int:
        statement = select(func.count()).where(
            decisions.c.account == account, decisions.c.decided_at >= since, counted()
        )
        return self._count(statement)

    def archived_since(self, account: str, since: datetime) -> int:
        statement = select(func.count(decisions.c.archived_at)).where(
            decisions.c.account == account, decisions.c.decided_at >= since
        )
        return self._count(statement)

    def answered_since(self, account: str, since: datetime) -> tuple[int, int]:
        """Decisions that somebody answered, and those of them by a fallback (not the first of the chain)."""
        statement = select(func.count(decisions.c.provider), func.count().filter(decisions.c.chain_position > 0)).where(
            decisions.c.account == account, decisions.c.decided_at >= since
        )
        with self._reading() as connection:
            answered, by_fallback = connection.execute(statement).one()
        return answered, by_fallback

    def decided_more_than_once(self, account: str, since: datetime) -> tuple[tuple[DecisionRecord, ...], ...]:
        """All decisions, oldest first, of each message with more than one that counted, the last since `since`."""
        several = select(decisions.c.message_key).group_by(decisions.c.message_key).having(func.count() > 1)
        applied = or_(decisions.c.labelled_at.is_not(None), decisions.c.closed_reason.is_(None))
        found: dict[str, list[DecisionRecord]] = {}
        with self._reading() as connection:
            keys = connection.execute(several.limit(_KEYS)).scalars().all()
            for some in _portions(keys):
                statement = (
                    select(decisions)
                    .where(decisions.c.message_key.in_(some), decisions.c.account == account, applied)
                    .order_by(decisions.c.decided_at, decisions.c.id)
                )
                for row in connection.execute(statement):
                    found.setdefault(row.message_key, []).append(to_decision(row))
        return tuple(tuple(group) for group in found.values() if len(group) > 1 and group[-1].decided_at >= since)

    def doubtful_archives(self, account: str, since: datetime) -> tuple[DecisionRecord, ...]:
        """Archived under a floor, without having been meant for the archive, or before the label was recorded."""
        return self._records(self._since(account, since).where(DOUBTFUL))

    def archived_with(self, account: str, since: datetime, label_ids: Sequence[str]) -> tuple[DecisionRecord, ...]:
        """Archived although they bear one of these labels."""
        kept = and_(decisions.c.label_id.in_(list(label_ids)), decisions.c.archived_at.is_not(None))
        return self._if_any(account, since, kept)

    def archived_elsewhere(self, account: str, since: datetime, archive: str) -> tuple[DecisionRecord, ...]:
        """Moved to another mailbox than the archive."""
        strange = and_(decisions.c.archived_at.is_not(None), decisions.c.archived_mailbox != archive)
        return self._if_any(account, since, strange)

    def bold_heirs(self, account: str, since: datetime) -> tuple[str, ...]:
        """Archived replies that claim more confidence than the decision of the ancestor they name."""
        ancestor = decisions.alias("ancestor")
        d = decisions.c
        # Written out as in the partial index, but for the table's name: the ancestor has such columns too.
        heirs = text(re.sub(r"(outcome|inherited_source|archived_at)", r"decisions.\1", str(HEIRS)))
        statement = (
            select(d.id, func.max(ancestor.c.confidence), d.confidence)
            .join(ancestor, and_(ancestor.c.message_key == d.inherited_from, ancestor.c.account == d.account))
            .where(
                d.account == account,
                d.decided_at >= since,
                heirs,
                ancestor.c.decided_at <= d.decided_at,
            )
            .group_by(d.id, d.confidence)
            .having(func.max(ancestor.c.confidence) < d.confidence - 1e-9)
            .limit(_MOST)
        )
        with self._reading() as connection:
            return tuple(row.id for row in connection.execute(statement))

    def labels_beside(self, account: str, since: datetime, label_ids: Sequence[str]) -> tuple[DecisionRecord, ...]:
        """Decisions whose label or choice is none of these."""
        known = list(label_ids)
        strange = or_(
            decisions.c.label_id.not_in(known),
            and_(decisions.c.choice.is_not(None), decisions.c.choice.not_in(known)),
        )
        return self._if_any(account, since, strange)

    def label_ids_ever(self, account: str) -> frozenset[str]:
        """Every label id that the account's records know."""
        statement = select(decisions.c.label_id).distinct().where(decisions.c.account == account)
        with self._reading() as connection:
            return frozenset(connection.execute(statement).scalars())

    def unanswered(self, account: str, since: datetime) -> tuple[DecisionRecord, ...]:
        """Decisions that do not say who answered, with which probabilities, or whom they inherit from."""
        return self._records(self._since(account, since).where(UNANSWERED))

    def newest_answers(self, account: str, since: datetime, limit: int) -> tuple[DecisionRecord, ...]:
        statement = self._since(account, since).where(decisions.c.provider.is_not(None))
        return self._records(statement.order_by(None).order_by(decisions.c.decided_at.desc()), limit)

    def runs_since(self, account: str, since: datetime) -> int:
        over = runs.c.started_at.is_not(None)
        return self._count(select(func.count()).where(runs.c.account == account, runs.c.enqueued_at >= since, over))

    def oversized_runs(self, account: str, since: datetime, cap: int) -> Mapping[str, int]:
        """Runs that hold more messages than `cap`, by their own count or by that of their decisions."""
        large = select(decisions.c.run_id).group_by(decisions.c.run_id).having(func.count() > cap)
        found: dict[str, int] = {}
        with self._snapshot() as connection:
            for some in _portions(connection.execute(large.limit(_KEYS)).scalars().all()):
                messages = func.count(distinct(decisions.c.message_key))
                statement = (
                    select(decisions.c.run_id, messages)
                    .where(
                        decisions.c.run_id.in_(some), decisions.c.account == account, decisions.c.decided_at >= since
                    )
                    .group_by(decisions.c.run_id)
                    .having(messages > cap)
                )
                found |= {row[0]: row[1] for row in connection.execute(statement)}
            told = select(runs.c.id, runs.c.counts).where(runs.c.account == account, runs.c.enqueued_at >= since)
            for run_id, counts in connection.execution_options(yield_per=5_000).execute(told):
                selected = json.loads(counts).get("selected", 0) if '"selected"' in counts else 0
                if selected > cap:
                    found[run_id] = max(selected, found.get(run_id, 0))
        return found

    def overlapping_runs(self, account: str, since: datetime) -> tuple[Overlap, ...]:
        """Runs that began before the one before them was over; a run that is still on lasts until now."""
        before = func.lag(runs.c.id).over(order_by=(runs.c.started_at, runs.c.id)).label("before_id")
        longest = func.max(func.coalesce(runs.c.finished_at, self._clock.now())).over(
            order_by=(runs.c.started_at, runs.c.id), rows=(None, -1)
        )
        spans = (
            select(runs.c.id, runs.c.started_at, before, longest.label("busy_until"))
            .where(runs.c.account == account, runs.c.enqueued_at >= since, runs.c.started_at.is_not(None))
            .subquery()
        )
        statement = select(spans.c.id, spans.c.before_id).where(spans.c.started_at < spans.c.busy_until).limit(_MOST)
        with self._reading() as connection:
            return tuple(Overlap(run_id, before_id) for run_id, before_id in connection.execute(statement))

    def decided_outside_their_run(self, account: str, since: datetime) -> tuple[tuple[str, str], ...]:
        """(decision, run) of decisions made before their run began, or after it was over: it was repeated."""
        d = decisions.c
        spans = (
            select(d.run_id, func.min(d.decided_at).label("first"), func.max(d.decided_at).label("last"))
            .where(d.account == account, d.decided_at >= since, counted())
            .group_by(d.run_id)
            .subquery()
        )
        beside = (
            select(spans.c.run_id, runs.c.started_at, runs.c.finished_at)
            .join(runs, runs.c.id == spans.c.run_id)
            .where(
                or_(
                    runs.c.started_at.is_(None),
                    spans.c.first < runs.c.started_at,
                    spans.c.last > runs.c.finished_at,
                )
            )
            .limit(_MOST)
        )
        found: list[tuple[str, str]] = []
        with self._reading() as connection:
            for run_id, started, finished in connection.execute(beside).all():
                theirs = select(d.id, d.decided_at).where(d.run_id == run_id, d.account == account, counted())
                for decision_id, at in connection.execute(theirs.order_by(d.decided_at, d.id)):
                    early = started is None or at < started - CLOCK_SLACK
                    late = finished is not None and at > finished + CLOCK_SLACK
                    if (early or late) and len(found) < _MOST:
                        found.append((decision_id, run_id))
        return tuple(found)

    def finished_twice(self, account: str) -> tuple[str, ...]:
        """Runs that the chain says were closed more than once."""
        statement = (
            select(events.c.subject)
            .where(events.c.account == account, FINISHED)
            .group_by(events.c.subject)
            .having(func.count() > 1)
            .limit(_MOST)
        )
        with self._reading() as connection:
            return tuple(connection.execute(statement).scalars())

    def explained(self, account: str, keys: Sequence[str]) -> Mapping[str, DecisionRecord]:
        """For fingerprints of messages or of Message-IDs, the newest decision of each that was labelled."""
        found: dict[str, DecisionRecord] = {}
        for some in _portions([key for key in dict.fromkeys(keys) if key]):
            for column in (decisions.c.message_id_key, decisions.c.message_key):
                statement = (
                    select(decisions)
                    .where(column.in_(some), decisions.c.account == account, decisions.c.labelled_at.is_not(None))
                    .order_by(decisions.c.decided_at, decisions.c.id)
                )
                for record in self._records(statement, None):
                    found[record.message_id_key if column is decisions.c.message_id_key else record.message_key] = (
                        record
                    )
        return found

    def _since(self, account: str, since: datetime) -> Select[Any]:
        return (
            select(decisions)
            .where(decisions.c.account == account, decisions.c.decided_at >= since)
            .where(or_(decisions.c.closed_reason.is_(None), decisions.c.closed_reason != "preview"))
            .order_by(decisions.c.decided_at, decisions.c.id)
        )

    def _if_any(self, account: str, since: datetime, which: ColumnElement[bool]) -> tuple[DecisionRecord, ...]:
        """Such decisions of a period. They are counted first, from an index alone: nearly always there are none."""
        statement = self._since(account, since).where(which)
        any_ = statement.with_only_columns(func.count()).order_by(None)
        return self._records(statement) if self._count(any_) else ()

    def _records(self, statement: Select[Any], limit: int | None = _MOST) -> tuple[DecisionRecord, ...]:
        with self._reading() as connection:
            return tuple(to_decision(row) for row in connection.execute(statement.limit(limit)))

    def _count(self, statement: Select[Any]) -> int:
        with self._reading() as connection:
            return int(connection.execute(statement).scalar_one())


def _portions(items: Sequence[str]) -> list[Sequence[str]]:
    return [items[i : i + _AT_ONCE] for i in range(0, len(items), _AT_ONCE)]
