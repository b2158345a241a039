"""What the dashboard and /metrics ask of the ledger: bounded reads, and counters that never go back.

A counter must not fall when retention takes old records away. So what is older than an hour is folded into totals that
are kept in `states`; a scrape adds what came since. Who folds first does not matter: all fold the same records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from sqlalchemy import Integer, case, func, literal, select
from sqlalchemy.sql.elements import ColumnElement

from triage.domain.decision import Outcome
from triage.domain.record import Run, RunState
from triage.ledger.figures import counted
from triage.ledger.rows import to_run
from triage.ledger.schema import decisions, runs
from triage.ledger.states import SUMS_OF_DAY, StatesPart

LATENCY_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SETTLED = timedelta(hours=1)
"""After so long no record of that time is still on its way, from however slow a machine."""
FOLD_EVERY = timedelta(minutes=30)
_PORTION = timedelta(days=1)
_LATE = timedelta(days=2)
"""A run that waited longer than this before it ended is left out of the totals."""
_ENDED = (RunState.DONE.value, RunState.FAILED.value, RunState.COALESCED.value)


@dataclass(frozen=True, slots=True)
class Amounts:
    """Sums over decisions; `buckets` counts the answers up to each of LATENCY_BOUNDS_S, then those above."""

    decisions: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    latency_s: float = 0.0
    buckets: tuple[int, ...] = (0,) * (len(LATENCY_BOUNDS_S) + 1)

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(
            self.decisions + other.decisions,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost_usd + other.cost_usd,
            self.latency_s + other.latency_s,
            tuple(a + b for a, b in zip(self.buckets, other.buckets, strict=True)),
        )


DecisionSeries = tuple[str, str, str, str]  # account, outcome, provider, model
RunSeries = tuple[str, str, str]  # account, state, trigger


@dataclass(frozen=True, slots=True)
class Totals:
    """Everything that ever happened up to an instant, by series."""

    until: datetime | None
    decisions: Mapping[DecisionSeries, Amounts]
    runs: Mapping[RunSeries, int]

    def plus(self, other: Totals) -> Totals:
        sums = dict(self.decisions)
        for series, amounts in other.decisions.items():
            sums[series] = sums.get(series, Amounts()) + amounts
        return Totals(other.until, sums, Counter(self.runs) + Counter(other.runs))


class WebPart(StatesPart):
    """Reads of the web pages, and the totals of /metrics."""

    def page_of_runs(self, account: str | None, before: datetime | None, limit: int) -> tuple[Run, ...]:
        """Runs newest first, those enqueued before an instant; coalesced fires are left out."""
        statement = select(runs).where(runs.c.state != RunState.COALESCED.value)
        statement = statement.order_by(runs.c.enqueued_at.desc(), runs.c.id.desc()).limit(limit)
        if account is not None:
            statement = statement.where(runs.c.account == account)
        if before is not None:
            statement = statement.where(runs.c.enqueued_at < before)
        with self._reading() as connection:
            return tuple(to_run(row) for row in connection.execute(statement))

    def below_floor_counts(self, since: datetime) -> Mapping[str, tuple[int, int]]:
        """By account: answers since an instant, and those of them under the floor."""
        below = func.count().filter(decisions.c.outcome == Outcome.BELOW_FLOOR.value)
        statement = (
            select(decisions.c.account, func.count(), below)
            .where(decisions.c.decided_at >= since, decisions.c.provider.is_not(None), counted())
            .group_by(decisions.c.account)
        )
        with self._reading() as connection:
            return {account: (answered, under) for account, answered, under in connection.execute(statement)}

    def queue_depths(self) -> Mapping[str, int]:
        statement = (
            select(runs.c.account, func.count()).where(runs.c.state == RunState.QUEUED.value).group_by(runs.c.account)
        )
        with self._reading() as connection:
            return {row[0]: row[1] for row in connection.execute(statement)}

    def totals(self, now: datetime) -> Totals:
        """Everything that ever happened, retention or not. Folds what has settled, a day at a time."""
        folded = self._folded()
        begin = folded.until or self._oldest()
        settled = now - SETTLED
        if begin is not None and settled - begin >= FOLD_EVERY:
            while begin < settled:
                end = min(begin + _PORTION, settled)
                folded = folded.plus(self._happened(begin, end))
                begin = end
            self._save("metrics", "totals", _to_json(folded))
        return folded.plus(self._happened(begin, now)) if begin is not None else folded

    def sums_of_day(self, account: str, day: date) -> Mapping[str, Any] | None:
        """What was counted for a day (UTC) gone by and kept; None if nothing was."""
        return self._load(SUMS_OF_DAY, f"{day.isoformat()}/{account}")

    def keep_sums_of_day(self, account: str, day: date, sums: Mapping[str, Any]) -> None:
        """Keep what was counted for a day, until retention takes the day's records."""
        self._save(SUMS_OF_DAY, f"{day.isoformat()}/{account}", sums)

    def _folded(self) -> Totals:
        value = self._load("metrics", "totals")
        return _of_json(value) if value else Totals(None, {}, {})

    def _oldest(self) -> datetime | None:
        with self._reading() as connection:
            first = connection.execute(select(func.min(decisions.c.decided_at))).scalar_one_or_none()
            queued = connection.execute(select(func.min(runs.c.enqueued_at))).scalar_one_or_none()
        found = [moment for moment in (first, queued) if moment is not None]
        return min(found) if found else None

    def _happened(self, since: datetime, until: datetime) -> Totals:
        """What was decided, and which runs ended, from `since` on and before `until`."""
        names = (
            decisions.c.account,
            decisions.c.outcome,
            func.coalesce(decisions.c.provider, ""),
            func.coalesce(decisions.c.model, ""),
            _bucket(),
        )
        sums = [decisions.c.input_tokens, decisions.c.output_tokens, decisions.c.cost_usd, decisions.c.latency_ms]
        decided = (
            select(*names, func.count(), *(func.sum(column) for column in sums))
            .where(decisions.c.decided_at >= since, decisions.c.decided_at < until)
            .group_by(*names)
        )
        ended = (
            select(runs.c.account, runs.c.state, runs.c.trigger, func.count())
            .where(runs.c.enqueued_at >= since - _LATE, runs.c.finished_at >= since, runs.c.finished_at < until)
            .where(runs.c.state.in_(_ENDED))
            .group_by(runs.c.account, runs.c.state, runs.c.trigger)
        )
        found: dict[DecisionSeries, Amounts] = {}
        with self._reading() as connection:
            for account, outcome, provider, model, bucket, *numbers in connection.execute(decided):
                series = (account, outcome, provider, model)
                found[series] = found.get(series, Amounts()) + _amounts(int(bucket), numbers)
            over = {(account, state, trigger): n for account, state, trigger, n in connection.execute(ended)}
        return Totals(until, found, over)


def _bucket() -> ColumnElement[int]:
    """The number of the latency bucket a decision falls into; -1 where no model was asked."""
    steps = [(decisions.c.latency_ms <= bound * 1000, literal(i, Integer)) for i, bound in enumerate(LATENCY_BOUNDS_S)]
    last = literal(len(LATENCY_BOUNDS_S), Integer)
    return case((decisions.c.provider.is_(None), literal(-1, Integer)), *steps, else_=last)


def _amounts(bucket: int, numbers: list[Any]) -> Amounts:
    count, input_tokens, output_tokens, cost, latency_ms = numbers
    answered = bucket >= 0
    buckets = tuple(int(count) if answered and i == bucket else 0 for i in range(len(LATENCY_BOUNDS_S) + 1))
    seconds = float(latency_ms) / 1000 if answered else 0.0
    return Amounts(int(count), int(input_tokens), int(output_tokens), float(cost), seconds, buckets)


def _to_json(totals: Totals) -> dict[str, object]:
    assert totals.until is not None
    return {
        "until": totals.until.isoformat(),
        "bounds": list(LATENCY_BOUNDS_S),
        "decisions": [[*series, *astuple(amounts)] for series, amounts in totals.decisions.items()],
        "runs": [[*series, count] for series, count in totals.runs.items()],
    }


def _of_json(value: Mapping[str, Any]) -> Totals:
    """The totals as stored; none if they were counted in other buckets."""
    if value.get("bounds") != list(LATENCY_BOUNDS_S):
        return Totals(None, {}, {})
    decided = {}
    for account, outcome, provider, model, count, read, written, cost, latency_s, buckets in value["decisions"]:
        decided[account, outcome, provider, model] = Amounts(count, read, written, cost, latency_s, tuple(buckets))
    over = {(account, state, trigger): count for account, state, trigger, count in value["runs"]}
    return Totals(datetime.fromisoformat(value["until"]).astimezone(UTC), decided, over)
