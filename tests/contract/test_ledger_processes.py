"""Many processes on one ledger, some of them killed, on SQLite and on PostgreSQL."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from services.ledger import START, SystemClock, make_decision
from services.ledger_workers import LEASE, claim_and_vanish, claim_until_empty, open_together, report, write_for_ever
from services.postgres import PostgresServer
from triage.domain.errors import LedgerError
from triage.domain.record import RunState, Trigger
from triage.ledger import open_ledger

pytest_plugins = ["conftest_ledger"]

# Fresh interpreters, as in production, but with the libraries imported once for all of them.
FRESH = multiprocessing.get_context("forkserver")
LIBRARIES = ["pytest", "alembic.command", "sqlalchemy.dialects.sqlite", "psycopg", "multiprocessing.queues"]
FRESH.set_forkserver_preload(LIBRARIES)


def together(count: int, call: Callable[..., Any], *arguments: object) -> list[Any]:
    """Run `call` in so many processes at once; what they return. "{n}" in an argument is the process's number."""
    start, results = FRESH.Barrier(count), FRESH.SimpleQueue()
    processes = []
    for n in range(count):
        numbered = [a.format(n=n) if isinstance(a, str) else a for a in arguments]
        processes.append(FRESH.Process(target=report, args=(results, call, [*numbered, start])))
    for process in processes:
        process.start()
    returned = [results.get() for _ in processes]
    for process in processes:
        process.join()
    return returned


def test_processes_that_open_an_empty_ledger_at_once_agree(empty_url: str) -> None:
    keys = together(6, open_together, empty_url)
    assert len(set(keys)) == 1


def test_eight_processes_run_every_run_once_and_never_overlap(ledger_url: str) -> None:
    ledger = open_ledger(ledger_url, SystemClock())
    for n in range(200):
        assert ledger.enqueue(f"account-{n % 25}", Trigger.MANUAL, START + timedelta(seconds=n))
    done = [run for some in together(8, claim_until_empty, ledger_url, "w{n}") for run in some]
    assert len(done) == len({run_id for run_id, *_ in done}) == 200
    assert Counter(run.state for run in ledger.runs(limit=300)) == {RunState.DONE: 200}
    for n in range(25):
        times = sorted((began, ended) for _, account, began, ended in done if account == f"account-{n}")
        assert all(one[1] <= other[0] for one, other in pairwise(times)), "two runs of one account overlapped"
        assert ledger.verify_chain(f"account-{n}") == []
    ledger.close()


def test_a_run_whose_process_died_is_cut_once_its_lease_ran_out(ledger_url: str) -> None:
    ledger = open_ledger(ledger_url, SystemClock())
    run = ledger.enqueue("support", Trigger.MANUAL, START)
    assert run is not None
    process = FRESH.Process(target=claim_and_vanish, args=(ledger_url, "w"))
    process.start()
    process.join()
    assert process.exitcode == 1
    found = ledger.run(run.id)
    assert found is not None
    assert found.state is RunState.RUNNING
    deadline = time.monotonic() + 20
    while not (cut := ledger.expire()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [(run.id, run.reason) for run in cut] == [(run.id, "cut")]
    assert ledger.claim("w2", LEASE) is None
    ledger.close()


def test_a_killed_writer_leaves_whole_records_only(ledger_url: str) -> None:
    """SIGKILL at ten arbitrary moments: what is there is complete, chained, and in the right order."""
    ledger = open_ledger(ledger_url, SystemClock())
    chance = random.Random(7)
    for attempt in range(1, 11):
        process = FRESH.Process(target=write_for_ever, args=(ledger_url, attempt * 1000))
        process.start()
        assert process.pid is not None
        deadline = time.monotonic() + 30
        while ledger.decision(f"d{attempt * 1000:06d}") is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(chance.random() * 0.1)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    records = list(ledger.iter_decisions("support", START))
    assert len(records) >= 10
    assert all(record.labelled_at is not None for record in records if record.archived_at is not None)
    assert len(ledger.unfinished("support")) <= 10, "of each killed process at most one is unfinished"
    assert ledger.verify_chain("support") == []
    ledger.close()


def test_the_ledger_survives_a_restart_of_postgresql(postgres_server: PostgresServer) -> None:
    """While it is down a call fails as temporary, afterwards everything goes on over new connections."""
    url = postgres_server.create_database()
    ledger = open_ledger(url, SystemClock())
    ledger.record_decisions([make_decision(1)])
    postgres_server.stop()
    try:
        with pytest.raises(LedgerError) as caught:
            ledger.record_decisions([make_decision(2)])
        assert caught.value.temporary
        with pytest.raises(LedgerError) as caught:
            ledger.depth()
        assert caught.value.temporary
    finally:
        postgres_server.start()
    ledger.record_decisions([make_decision(2)])
    assert ledger.verify_chain("support") == []
    ledger.close()
    postgres_server.drop_database(url)


def test_a_call_after_an_unnoticed_restart_of_postgresql_just_works(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triage.ledger.engine._IDLE_S", 0.0)
    url = postgres_server.create_database()
    ledger = open_ledger(url, SystemClock())
    ledger.record_decisions([make_decision(1)])
    postgres_server.stop()
    postgres_server.start()
    ledger.record_decisions([make_decision(2)])
    assert ledger.depth() == 0
    ledger.close()
    postgres_server.drop_database(url)
