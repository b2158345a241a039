"""Sums over many decisions, for reports: counted by the database, from one index, in bounded memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import ColumnElement, Integer, Select, and_, cast, func, not_, or_, select

from triage.ledger.schema import decisions, runs
from triage.ledger.store import Store
from triage.ledger.types import UtcDateTime

NOT_COUNTED = ("preview", "superseded", "label_refused")
"""Closed for these reasons, a decision never was, or never became, a message's decision."""
_FETCH = 5_000


@dataclass(frozen=True, slots=True)
class Tally:
    """A group of decisions that are alike in all that a report tells apart. `bin` is the confidence in twentieths."""

    label_id: str
    choice: str | None
    outcome: str
    provider: str | None
    fallback: bool
    archived: bool
    recovered: bool
    bin: int
    count: int
    input_tokens: int
    question_tokens: int
    output_tokens: int
    cost_usd: float
    links_removed: int


@dataclass(frozen=True, slots=True)
class Served:
    """A model as a provider of the chain served it: how many answers, the first and the last of the period."""

    position: int
    provider: str
    model: str | None
    answers: int
    first: datetime
    last: datetime


class FiguresPart(Store):
    """What `triage report` counts. A period is `since` <= decided < `until`."""

    def tallies(self, account: str, since: datetime, until: datetime) -> tuple[Tally, ...]:
        d = decisions.c
        groups = (
            d.label_id,
            d.choice,
            d.outcome,
            d.provider,
            func.coalesce(d.chain_position > 0, False),
            d.archived_at.is_not(None),
            d.recovered_by.is_not(None),
            self._whole(d.confidence * 20),
        )
        sums = [func.sum(column) for column in (d.input_tokens, d.question_tokens, d.output_tokens)]
        statement = (
            select(*groups, func.count(), *sums, func.sum(d.cost_usd), func.sum(d.links_removed))
            .where(in_period(account, since, until))
            .group_by(*groups)
        )
        with self._reading() as connection:
            return tuple(_tally(row) for row in connection.execute(statement))

    def days(self, account: str, since: datetime, until: datetime) -> Mapping[date, tuple[int, int, float]]:
        """By day (UTC): decisions, archived, cost in USD."""
        day = self._day(decisions.c.decided_at)
        statement = (
            select(day, func.count(), func.count(decisions.c.archived_at), func.sum(decisions.c.cost_usd))
            .where(in_period(account, since, until))
            .group_by(day)
        )
        with self._reading() as connection:
            rows = connection.execute(statement).all()
        return {date.fromisoformat(str(row[0])): (row[1], row[2], float(row[3])) for row in sorted(rows)}

    def latencies(self, account: str, since: datetime, until: datetime) -> Mapping[str, Mapping[int, int]]:
        """By provider: how many answers took how many milliseconds (rounded to tens from a tenth of a second on)."""
        ms = decisions.c.latency_ms
        rounded = self._whole(ms / 10.0) * 10
        shown = cast(func.coalesce(func.nullif(rounded, 0), ms), Integer)
        statement = (
            select(decisions.c.provider, shown, func.count())
            .where(in_period(account, since, until), decisions.c.provider.is_not(None))
            .group_by(decisions.c.provider, shown)
        )
        found: dict[str, dict[int, int]] = {}
        with self._reading() as connection:
            for provider, latency, count in connection.execute(statement):
                found.setdefault(provider, {})[int(latency)] = count
        return found

    def heaviest_senders(
        self, account: str, since: datetime, until: datetime, limit: int = 200
    ) -> tuple[tuple[str, int, int], ...]:
        """(domain, mails, input tokens) of the senders that took most tokens, heaviest first."""
        tokens = func.sum(decisions.c.input_tokens)
        statement = (
            select(decisions.c.sender_domain, func.count(), tokens)
            .where(in_period(account, since, until), decisions.c.input_tokens > 0)
            .group_by(decisions.c.sender_domain)
            .order_by(tokens.desc(), decisions.c.sender_domain)
            .limit(limit)
        )
        with self._reading() as connection:
            return tuple((domain, count, int(total)) for domain, count, total in connection.execute(statement))

    def unsure(
        self, account: str, since: datetime, until: datetime, below: float, limit: int
    ) -> Iterator[Mapping[str, float]]:
        """The probabilities of the newest answers whose confidence is under `below`, at most `limit`."""
        statement = (
            select(decisions.c.probabilities)
            .where(in_period(account, since, until), decisions.c.provider.is_not(None), decisions.c.confidence < below)
            .order_by(decisions.c.decided_at.desc())
            .limit(limit)
        )
        with self._snapshot() as connection:
            result = connection.execution_options(yield_per=_FETCH).execute(statement)
            for (text,) in result:
                yield json.loads(text)

    def served(self, account: str, since: datetime, until: datetime) -> tuple[Served, ...]:
        """Every model that answered, in the order in which each first did."""
        d = decisions.c
        names = (d.chain_position, d.provider, d.model)
        first = func.min(d.decided_at, type_=UtcDateTime)
        statement = (
            select(*names, func.count(), first, func.max(d.decided_at, type_=UtcDateTime))
            .where(in_period(account, since, until), d.provider.is_not(None))
            .group_by(*names)
            .order_by(first, d.model)
        )
        with self._reading() as connection:
            return tuple(Served(position or 0, *rest) for position, *rest in connection.execute(statement))

    def run_states(self, account: str, since: datetime, until: datetime) -> Mapping[tuple[str, str, str], int]:
        """How many runs by (trigger, state, reason); reason "" where there is none, and for coalesced fires."""
        reason = func.coalesce(runs.c.reason, "")
        statement = (
            select(runs.c.trigger, runs.c.state, reason, func.count())
            .where(runs.c.account == account, runs.c.enqueued_at >= since, runs.c.enqueued_at < until)
            .where(runs.c.state != "coalesced")
            .group_by(runs.c.trigger, runs.c.state, reason)
        )
        coalesced: Select[Any] = select(func.count()).where(
            runs.c.account == account,
            runs.c.enqueued_at >= since,
            runs.c.enqueued_at < until,
            runs.c.state == "coalesced",
        )
        with self._reading() as connection:
            found = {(t, s, r): n for t, s, r, n in connection.execute(statement)}
            if n := connection.execute(coalesced).scalar_one():
                found["schedule", "coalesced", ""] = n
        return found

    def _whole(self, value: ColumnElement[Any]) -> ColumnElement[int]:
        """The whole part of a number that is not negative."""
        return cast(value if self._sqlite else func.floor(value), Integer)

    def _day(self, moment: ColumnElement[datetime]) -> ColumnElement[Any]:
        return func.date(moment) if self._sqlite else func.date(func.timezone("UTC", moment))

    @property
    def _sqlite(self) -> bool:
        return self._engine.dialect.name == "sqlite"


def counted() -> ColumnElement[bool]:
    """Decisions that were meant to be applied."""
    return or_(decisions.c.closed_reason.is_(None), not_(decisions.c.closed_reason.in_(NOT_COUNTED)))


def in_period(account: str, since: datetime, until: datetime) -> ColumnElement[bool]:
    return and_(
        decisions.c.account == account, decisions.c.decided_at >= since, decisions.c.decided_at < until, counted()
    )


def _tally(row: Any) -> Tally:
    label, choice, outcome, provider, fallback, archived, recovered, bin_, *sums = row
    count, input_tokens, question_tokens, output_tokens, cost, links = sums
    return Tally(
        label, choice, outcome, provider, bool(fallback), bool(archived), bool(recovered), int(bin_), count,
        int(input_tokens), int(question_tokens), int(output_tokens), float(cost), int(links),
    )  # fmt: skip
