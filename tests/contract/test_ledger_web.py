"""What the pages and /metrics ask of the ledger, on SQLite and on PostgreSQL: the same answers from both."""

from __future__ import annotations

from datetime import timedelta

import pytest

from services.ledger import START, Bench, make_decision
from triage.domain.decision import Outcome
from triage.domain.record import Trigger
from triage.ledger.web_queries import LATENCY_BOUNDS_S, Amounts

pytest_plugins = ["conftest_ledger"]

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
SERIES = ("support", "applied", "embedded", "embedded-1")


def run(bench: Bench, first: int, count: int, account: str = "support", **changes: object) -> str:
    """A finished run of some decisions, now."""
    ledger, now = bench.ledger, bench.clock.now()
    queued = ledger.enqueue(account, Trigger.SCHEDULE, now)
    assert queued is not None
    assert ledger.claim("w", MINUTE, run_id=queued.id) is not None
    values = {"run_id": queued.id, "account": account, "decided_at": now} | changes
    ledger.record_decisions([make_decision(n, **values) for n in range(first, first + count)])
    assert ledger.finish(queued.id, "w")
    if bench.kind == "postgresql":  # there the database's own clock tells when a run came and went
        bench.sql("UPDATE runs SET enqueued_at = :at, finished_at = :at WHERE id = :run", at=now, run=queued.id)
    bench.clock.advance(MINUTE)
    return queued.id


def test_runs_are_paged_newest_first(bench: Bench) -> None:
    mine = [run(bench, n, 1) for n in range(1, 4)]
    other = run(bench, 9, 1, account="sales")
    ledger = bench.ledger
    assert [r.id for r in ledger.page_of_runs(None, None, 2)] == [other, mine[2]]
    last = ledger.run(mine[2])
    assert last is not None
    assert [r.id for r in ledger.page_of_runs("support", last.enqueued_at, 10)] == [mine[1], mine[0]]


def test_the_share_under_the_floor_counts_answers_by_account(bench: Bench) -> None:
    run(bench, 1, 2)
    run(bench, 3, 1, outcome=Outcome.BELOW_FLOOR)
    run(bench, 4, 1, outcome=Outcome.INHERITED, provider=None, model=None, chain_position=None)
    run(bench, 5, 1, account="sales", outcome=Outcome.BELOW_FLOOR)
    assert bench.ledger.below_floor_counts(START - DAY) == {"support": (3, 1), "sales": (1, 1)}
    assert bench.ledger.below_floor_counts(START + DAY) == {}


def test_waiting_runs_are_counted_by_account(bench: Bench) -> None:
    assert bench.ledger.queue_depths() == {}
    for n, account in enumerate(("support", "sales", "sales")):
        bench.ledger.enqueue(account, Trigger.MANUAL, START + n * MINUTE)
    assert bench.ledger.queue_depths() == {"support": 1, "sales": 2}


def test_an_empty_ledger_has_no_totals(bench: Bench) -> None:
    totals = bench.ledger.totals(bench.clock.now())
    assert (totals.decisions, totals.runs) == ({}, {})


def test_totals_say_how_many_answers_took_how_long(bench: Bench) -> None:
    for n, latency_ms in enumerate((5, 6, 1000, 31_000)):
        run(bench, n + 1, 1, latency_ms=latency_ms, input_tokens=100, output_tokens=1, cost_usd=0.25)
    run(bench, 9, 1, outcome=Outcome.INHERITED, provider=None, model=None, latency_ms=0, input_tokens=0, cost_usd=0.0)
    totals = bench.ledger.totals(bench.clock.now())
    buckets = [0] * (len(LATENCY_BOUNDS_S) + 1)
    for place in (0, 1, LATENCY_BOUNDS_S.index(1.0), len(LATENCY_BOUNDS_S)):
        buckets[place] += 1
    assert totals.decisions[SERIES] == Amounts(4, 400, 4, 1.0, pytest.approx(32.011), tuple(buckets))
    inherited = totals.decisions["support", "inherited", "", ""]
    assert (inherited.decisions, sum(inherited.buckets)) == (1, 0)
    assert totals.runs == {("support", "done", "schedule"): 5}


def test_totals_never_fall_and_count_nothing_twice(bench: Bench) -> None:
    ledger, clock = bench.ledger, bench.clock
    run(bench, 1, 3)
    assert ledger.totals(clock.now()).decisions[SERIES].decisions == 3
    clock.advance(3 * DAY)
    run(bench, 4, 2)
    for _ in range(3):
        totals = ledger.totals(clock.now())
        assert totals.decisions[SERIES].decisions == 5
        assert totals.runs["support", "done", "schedule"] == 2
        clock.advance(HOUR)
    bench.sql("DELETE FROM decisions")  # as retention does, whatever the links
    bench.sql("DELETE FROM runs")
    later = ledger.totals(clock.now() + HOUR)
    assert later.decisions[SERIES].decisions == 5
    assert later.runs["support", "done", "schedule"] == 2


def test_what_was_counted_for_a_day_is_kept_until_retention_takes_the_day(bench: Bench) -> None:
    ledger, today = bench.ledger, START.date()
    assert ledger.sums_of_day("support", today) is None
    for n, day in enumerate((today - 2 * DAY, today - DAY, today)):
        ledger.keep_sums_of_day("support", day, {"decisions": n})
    ledger.keep_sums_of_day("support", today, {"decisions": 9})
    ledger.keep_sums_of_day("sales", today, {"decisions": 3})
    ledger.enforce_retention(START - DAY)
    days = [ledger.sums_of_day("support", today - n * DAY) for n in range(3)]
    assert days == [{"decisions": 9}, {"decisions": 1}, None]
    assert ledger.sums_of_day("sales", today) == {"decisions": 3}
