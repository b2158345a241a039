"""Reading back, on SQLite and on PostgreSQL: runs by prefix, decisions by message, periods in portions."""

from __future__ import annotations

from datetime import timedelta

import pytest

from services.ledger import START, Bench, make_decision
from triage.domain.record import Run, Trigger
from triage.ledger import SqlLedger

pytest_plugins = ["conftest_ledger"]

MINUTE = timedelta(minutes=1)


@pytest.fixture
def three_runs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    ids = iter(["20261130-090000-aaaaaa", "20261130-090000-aaaabb", "20261130-100000-cccccc"])
    monkeypatch.setattr("triage.ledger.fires.new_run_id", lambda now: next(ids))
    runs = [bench.ledger.enqueue(account, Trigger.MANUAL, START) for account in ("support", "sales", "info")]
    return [run for run in runs if run is not None]


def test_a_run_is_found_by_its_id_or_a_prefix_of_its_own(ledger: SqlLedger, three_runs: list[Run]) -> None:
    assert ledger.run(three_runs[0].id) == three_runs[0]
    assert ledger.run("20261130-1") == three_runs[2]
    assert ledger.run("20261130-090000-aaaab") == three_runs[1]


@pytest.mark.parametrize("prefix", ["20261130", "20261130-090000-aaaa", "", "%", "_", "2027", "c"])
def test_a_prefix_of_several_runs_or_of_none_finds_nothing(
    ledger: SqlLedger, three_runs: list[Run], prefix: str
) -> None:
    assert ledger.run(prefix) is None


def test_runs_come_newest_first(ledger: SqlLedger, three_runs: list[Run]) -> None:
    assert list(ledger.runs()) == three_runs[::-1]
    assert list(ledger.runs(limit=2)) == three_runs[:0:-1]
    assert list(ledger.runs("sales")) == [three_runs[1]]
    assert ledger.runs(since=three_runs[2].enqueued_at + MINUTE) == ()
    assert three_runs[2] in ledger.runs(since=three_runs[2].enqueued_at)


def test_a_message_is_found_by_a_prefix_of_its_key(ledger: SqlLedger) -> None:
    ledger.record_decisions([make_decision(1, message_key="ab" + "0" * 30)])
    ledger.mark_labelled(["d000001"], START)
    ledger.record_decisions([make_decision(2, message_key="ab" + "0" * 30)])
    ledger.record_decisions([make_decision(3, message_key="ac" + "0" * 30)])
    assert [record.id for record in ledger.decision_by_key("ab")] == ["d000002", "d000001"]
    assert [record.id for record in ledger.decision_by_key("ac" + "0" * 30)] == ["d000003"]
    assert ledger.decision_by_key("a") == (), "two messages begin so"
    assert ledger.decision_by_key("") == ()
    assert ledger.decision_by_key("zz") == ()


def test_a_period_is_read_in_portions_and_in_order(ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal instants at the seam of two portions are neither lost nor doubled."""
    monkeypatch.setattr("triage.ledger.records._CHUNK", 3)
    for n in range(1, 11):
        account = "sales" if n == 5 else "support"
        ledger.record_decisions([make_decision(n, account=account, decided_at=START + MINUTE * (n // 4))])
    everything = list(ledger.iter_decisions(None, START))
    assert [record.id for record in everything] == [f"d{n:06d}" for n in range(1, 11)]
    assert [r.id for r in ledger.iter_decisions("sales", START)] == ["d000005"]
    assert len(list(ledger.iter_decisions("support", START + MINUTE, START + 2 * MINUTE))) == 3
    assert list(ledger.iter_decisions("support", START + 3 * MINUTE)) == []


def test_runs_of_a_period_are_read_in_portions(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triage.ledger.records._CHUNK", 2)
    made = []
    for n in range(5):
        run = bench.ledger.enqueue("support", Trigger.MANUAL, START + n * MINUTE)
        assert run is not None
        made.append(run)
        bench.clock.advance(MINUTE)
    since = made[0].enqueued_at
    assert list(bench.ledger.iter_runs("support", since)) == made
    assert list(bench.ledger.iter_runs(None, since, made[3].enqueued_at)) == made[:3]
    assert list(bench.ledger.iter_runs("sales", since)) == []


def test_accounts_are_those_that_did_something(bench: Bench) -> None:
    bench.ledger.enqueue("idle", Trigger.MANUAL, START)
    for n, account in enumerate(("b", "a", "b"), 1):
        bench.ledger.record_decisions([make_decision(n, account=account)])
    assert bench.ledger.accounts() == ("a", "b")


def test_every_query_of_a_run_is_served_by_an_index(bench: Bench) -> None:
    """None of them reads the whole table, however long the ledger has been kept."""
    if bench.kind != "sqlite":
        pytest.skip("PostgreSQL plans by table size: nothing to see on an empty ledger")
    ledger = bench.ledger
    seen: list[str] = []
    from sqlalchemy import event

    def note(conn: object, cursor: object, statement: str, parameters: tuple[object, ...], *rest: object) -> None:
        if statement.startswith(("SELECT", "UPDATE")) and "sqlite" not in statement:
            plan = bench_plan(bench.url, statement, parameters)
            seen.extend(f"{line}   <- {statement}" for line in plan)

    record = make_decision(1)
    ledger.enqueue("support", Trigger.SCHEDULE, START)
    event.listen(ledger._engine, "before_cursor_execute", note)
    run = ledger.claim("w", MINUTE)
    assert run is not None
    ledger.holds(run.id, "w")
    ledger.renew(run.id, "w", MINUTE)
    ledger.expire()
    ledger.record_decisions([record])
    ledger.mark_labelled([record.id], START)
    ledger.previewed("support", record.category_set, [record.message_key])
    ledger.unfinished("support")
    ledger.latest_decisions("support", [record.message_id_key])
    ledger.spent_usd(START)
    ledger.decisions(run.id)
    ledger.recovered(run.id)
    ledger.steps(run.id)
    ledger.decision_by_key("00")
    ledger.runs("support")
    ledger.runs()
    ledger.run(run.id[:-1])
    ledger.depth("support")
    list(ledger.iter_decisions("support", START))
    list(ledger.iter_decisions(None, START))
    assert len(seen) > 20
    tables = ("runs", "decisions", "steps", "events", "chains")
    scans = [
        line
        for line in seen
        if any(line.startswith(f"SCAN {t}") and "INDEX" not in line.split("<-")[0] for t in tables)
    ]
    assert scans == []
    few = ("decisions.run_id = ?", "decisions.recovered_by = ?", "decisions.message_key = ?")  # one run, one message
    sorts = [line for line in seen if "TEMP B-TREE" in line and "ORDER BY" in line and not any(w in line for w in few)]
    assert sorts == []


def bench_plan(url: str, statement: str, parameters: tuple[object, ...]) -> list[str]:
    import sqlite3

    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    try:
        return [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters)]
    finally:
        connection.close()


def test_the_ledger_knows_since_when_it_remembers(bench: Bench) -> None:
    """Nothing removed for its age: since ever. After that: since the oldest link that is left."""
    ledger = bench.ledger
    for n in (1, 2):
        ledger.record_decisions([make_decision(n)])
        bench.clock.advance(timedelta(days=1))
    assert ledger.remembered_since("support") is None
    ledger.enforce_retention(bench.clock.now() - timedelta(days=1, hours=1))
    since = ledger.remembered_since("support")
    assert since is not None
    assert since >= START + timedelta(days=1)
    assert ledger.remembered_since("nobody") is None


def test_the_latest_run_done_and_failed_of_many_accounts(bench: Bench) -> None:
    """Whatever came after them: runs that wait, are on, or were coalesced do not count."""
    ledger = bench.ledger
    ended: dict[str, list[str]] = {"sales": [], "support": []}
    for n, (account, failed) in enumerate(
        [("support", None), ("support", "cut"), ("support", None), ("sales", "auth"), ("sales", "cut")]
    ):
        run = ledger.enqueue(account, Trigger.MANUAL, START + timedelta(minutes=n))
        bench.clock.advance(timedelta(minutes=1))
        assert run is not None
        assert ledger.claim("w", timedelta(minutes=1), run_id=run.id) is not None
        assert ledger.finish(run.id, "w", failed=failed)
        ended[account].append(run.id)
    for n in (10, 11):
        ledger.enqueue("support", Trigger.SCHEDULE, START + timedelta(minutes=n))
    ledger.enqueue("hr", Trigger.SCHEDULE, START)
    found = ledger.latest_runs(["support", "sales", "hr", "nobody"])
    assert {account: {run.id for run in runs} for account, runs in found.items()} == {
        "support": set(ended["support"][1:]),
        "sales": {ended["sales"][1]},
    }
    assert ledger.depths() == {"support": 1, "hr": 1}
