"""The queue's promises, on SQLite and on PostgreSQL: fires, claims, leases, expiry."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone

import pytest

from services.ledger import START, Bench
from triage.domain.errors import LedgerError
from triage.domain.record import Fire, Run, RunState, Trigger
from triage.ledger import SqlLedger

pytest_plugins = ["conftest_ledger"]

LEASE = timedelta(seconds=60)
MINUTES = [START + timedelta(minutes=5 * n) for n in range(10)]


def enqueue(
    ledger: SqlLedger, account: str = "support", at: datetime = START, trigger: Trigger = Trigger.SCHEDULE
) -> Run:
    run = ledger.enqueue(account, trigger, at)
    assert run is not None
    return run


def test_a_fire_is_kept_as_it_was_given(ledger: SqlLedger) -> None:
    run = ledger.enqueue("support", Trigger.BACKFILL, START, {"before": "2026-11-01"})
    assert run is not None
    assert (run.account, run.trigger, run.fire_time, run.state) == ("support", Trigger.BACKFILL, START, "queued")
    assert run.options == {"before": "2026-11-01"}
    assert run.fire_time.tzinfo is UTC
    assert ledger.run(run.id) == run


def test_a_fire_of_another_timezone_is_the_same_instant(ledger: SqlLedger) -> None:
    enqueue(ledger)
    madrid = START.astimezone(timezone(timedelta(hours=1)))
    assert ledger.enqueue("support", Trigger.SCHEDULE, madrid) is None


def test_one_fire_time_is_one_run(ledger: SqlLedger) -> None:
    enqueue(ledger)
    assert ledger.enqueue("support", Trigger.SCHEDULE, START) is None
    assert ledger.enqueue("support", Trigger.MANUAL, START) is None
    assert ledger.enqueue("sales", Trigger.SCHEDULE, START) is not None
    assert ledger.depth() == 2


def test_a_run_that_is_over_still_holds_its_fire_time(ledger: SqlLedger) -> None:
    enqueue(ledger)
    claimed = ledger.claim("w1", LEASE)
    assert claimed is not None
    assert ledger.finish(claimed.id, "w1")
    assert ledger.enqueue("support", Trigger.SCHEDULE, START) is None


def test_a_naive_fire_time_is_refused(ledger: SqlLedger) -> None:
    with pytest.raises(LedgerError):
        ledger.enqueue("support", Trigger.SCHEDULE, START.replace(tzinfo=None))
    assert ledger.depth() == 0


def test_waiting_fires_coalesce_into_the_newest_and_say_so(ledger: SqlLedger) -> None:
    first, second, third = (enqueue(ledger, at=at) for at in MINUTES[:3])
    assert ledger.depth("support") == 1
    for older, into in ((first, second), (second, third)):
        found = ledger.run(older.id)
        assert found is not None
        assert found.state is RunState.COALESCED
        assert found.reason == f"into {into.id}"
        assert found.finished_at is not None
    claimed = ledger.claim("w1", LEASE)
    assert claimed is not None
    assert claimed.id == third.id


def test_a_late_fire_coalesces_into_the_newer_one_that_waits(ledger: SqlLedger) -> None:
    newer = enqueue(ledger, at=MINUTES[3])
    late = enqueue(ledger, at=MINUTES[1])
    assert late.state is RunState.COALESCED
    assert late.reason == f"into {newer.id}"


def test_manual_runs_and_other_accounts_never_coalesce(ledger: SqlLedger) -> None:
    manual = enqueue(ledger, at=MINUTES[0], trigger=Trigger.MANUAL)
    backfill = enqueue(ledger, at=MINUTES[1], trigger=Trigger.BACKFILL)
    other = enqueue(ledger, "sales", MINUTES[1])
    enqueue(ledger, at=MINUTES[2])
    enqueue(ledger, at=MINUTES[3])
    states = {run.id: run.state for run in ledger.runs()}
    assert [states[run.id] for run in (manual, backfill, other)] == ["queued"] * 3
    assert ledger.depth("support") == 3


def test_a_running_run_is_not_coalesced(ledger: SqlLedger) -> None:
    enqueue(ledger, at=MINUTES[0])
    running = ledger.claim("w1", LEASE)
    enqueue(ledger, at=MINUTES[1])
    assert running is not None
    assert ledger.holds(running.id, "w1")
    assert ledger.depth("support") == 1


def test_the_oldest_fire_is_claimed_first(ledger: SqlLedger) -> None:
    late = enqueue(ledger, "a", MINUTES[2])
    early = enqueue(ledger, "b", MINUTES[1])
    claims = [ledger.claim("w", LEASE), ledger.claim("w", LEASE)]
    assert [run.id for run in claims if run] == [early.id, late.id]
    assert ledger.claim("w", LEASE) is None


def test_a_claim_tells_who_has_the_run_and_until_when(bench: Bench) -> None:
    enqueue(bench.ledger)
    run = bench.ledger.claim("host-1:42:a", LEASE)
    assert run is not None
    assert (run.state, run.lease_owner) == (RunState.RUNNING, "host-1:42:a")
    assert run.started_at is not None
    assert run.lease_until is not None
    assert abs(run.lease_until - run.started_at - LEASE) < timedelta(seconds=1)
    assert bench.ledger.run(run.id) == run


def test_an_account_has_one_running_run(ledger: SqlLedger) -> None:
    enqueue(ledger, at=MINUTES[0], trigger=Trigger.MANUAL)
    enqueue(ledger, at=MINUTES[1], trigger=Trigger.MANUAL)
    first = ledger.claim("w1", LEASE)
    assert first is not None
    assert ledger.claim("w2", LEASE) is None
    assert ledger.finish(first.id, "w1")
    second = ledger.claim("w2", LEASE)
    assert second is not None
    assert second.id != first.id


def test_the_database_itself_refuses_a_second_running_run(bench: Bench) -> None:
    """Whatever a program does wrong, invariant 5 stands."""
    for at in MINUTES[:2]:
        enqueue(bench.ledger, at=at, trigger=Trigger.MANUAL)
    with pytest.raises(Exception, match=r"(?i)unique"):
        bench.sql("UPDATE runs SET state = 'running'")


def test_a_claim_keeps_to_the_accounts_it_is_given(ledger: SqlLedger) -> None:
    enqueue(ledger, "a", MINUTES[0])
    wanted = enqueue(ledger, "it's b", MINUTES[1])
    assert ledger.claim("w", LEASE, accounts=[]) is None
    assert ledger.claim("w", LEASE, accounts=["c"]) is None
    run = ledger.claim("w", LEASE, accounts=["c", "it's b"])
    assert run is not None
    assert run.id == wanted.id


def test_a_claim_can_name_ten_thousand_accounts(ledger: SqlLedger) -> None:
    enqueue(ledger, "account-9999")
    assert ledger.claim("w", LEASE, accounts=[f"account-{n}" for n in range(40_000)]) is not None


def test_a_claim_can_name_its_run(ledger: SqlLedger) -> None:
    enqueue(ledger, "a", MINUTES[0])
    wanted = enqueue(ledger, "b", MINUTES[1])
    run = ledger.claim("w", LEASE, run_id=wanted.id)
    assert run is not None
    assert run.id == wanted.id
    assert ledger.claim("w", LEASE, run_id=wanted.id) is None
    assert ledger.claim("w", LEASE, run_id="no-such-run") is None


def test_only_the_owner_renews_holds_and_finishes(ledger: SqlLedger) -> None:
    enqueue(ledger)
    run = ledger.claim("w1", LEASE)
    assert run is not None
    assert not ledger.renew(run.id, "w2", LEASE)
    assert not ledger.holds(run.id, "w2")
    assert not ledger.finish(run.id, "w2")
    assert ledger.renew(run.id, "w1", LEASE)
    assert ledger.holds(run.id, "w1")
    assert ledger.finish(run.id, "w1")
    assert not ledger.holds(run.id, "w1")
    assert not ledger.finish(run.id, "w1"), "a run ends once"


def test_a_finished_run_keeps_what_it_counted(ledger: SqlLedger) -> None:
    enqueue(ledger)
    run = ledger.claim("w1", LEASE)
    assert run is not None
    assert ledger.finish(run.id, "w1", counts={"labelled": 20, "archived": 13})
    found = ledger.run(run.id)
    assert found is not None
    assert (found.state, found.reason, found.counts) == (RunState.DONE, None, {"labelled": 20, "archived": 13})
    assert found.finished_at is not None
    assert found.started_at is not None
    assert found.finished_at >= found.started_at


def test_a_failed_run_keeps_its_reason(ledger: SqlLedger) -> None:
    enqueue(ledger)
    run = ledger.claim("w1", LEASE)
    assert run is not None
    assert ledger.finish(run.id, "w1", failed="unreachable", error="mail.example.org does not answer\0")
    found = ledger.run(run.id)
    assert found is not None
    assert (found.state, found.reason) == (RunState.FAILED, "unreachable")
    assert found.error == "mail.example.org does not answer"


def test_a_renewed_lease_outlives_its_first_term(bench: Bench) -> None:
    enqueue(bench.ledger)
    run = bench.ledger.claim("w1", LEASE)
    assert run is not None
    for _ in range(5):
        bench.pass_lease_time(timedelta(seconds=40))
        assert bench.ledger.renew(run.id, "w1", LEASE)
    assert bench.ledger.expire() == ()
    assert bench.ledger.holds(run.id, "w1")


def test_a_lease_that_ran_out_is_cut_and_stays_cut(bench: Bench) -> None:
    enqueue(bench.ledger)
    run = bench.ledger.claim("w1", LEASE)
    assert run is not None
    bench.pass_lease_time(timedelta(seconds=61))
    assert not bench.ledger.holds(run.id, "w1")
    assert not bench.ledger.renew(run.id, "w1", LEASE), "too late, even before anybody noticed"
    assert not bench.ledger.finish(run.id, "w1")
    (cut,) = bench.ledger.expire()
    assert (cut.id, cut.state, cut.reason) == (run.id, RunState.FAILED, "cut")
    assert bench.ledger.expire() == ()
    assert not bench.ledger.finish(run.id, "w1")
    assert bench.ledger.claim("w2", LEASE) is None, "a cut run is never repeated"
    assert bench.ledger.run(run.id) == cut


def test_after_a_cut_the_next_fire_of_the_account_runs(bench: Bench) -> None:
    enqueue(bench.ledger, at=MINUTES[0])
    assert bench.ledger.claim("w1", LEASE) is not None
    nxt = enqueue(bench.ledger, at=MINUTES[1])
    bench.pass_lease_time(timedelta(seconds=61))
    assert bench.ledger.claim("w2", LEASE) is None, "the old run holds the account until it is marked as cut"
    assert len(bench.ledger.expire()) == 1
    run = bench.ledger.claim("w2", LEASE)
    assert run is not None
    assert run.id == nxt.id


def test_expiry_cuts_only_what_ran_out(bench: Bench) -> None:
    for account in ("a", "b", "c"):
        enqueue(bench.ledger, account)
    runs = [bench.ledger.claim("w", lease) for lease in (LEASE, LEASE * 3, LEASE)]
    bench.pass_lease_time(LEASE + timedelta(seconds=1))
    cut = bench.ledger.expire()
    assert all(runs)
    assert {run.id for run in cut} == {run.id for run in runs[::2] if run}
    assert runs[1] is not None
    assert bench.ledger.holds(runs[1].id, "w")


@pytest.mark.parametrize("hours", [1, -1])
def test_a_step_of_the_workers_clock_cuts_nobody_and_saves_nobody(bench: Bench, hours: int) -> None:
    enqueue(bench.ledger)
    run = bench.ledger.claim("w1", LEASE)
    assert run is not None
    bench.clock.step(timedelta(hours=hours))
    assert bench.ledger.expire() == ()
    assert bench.ledger.holds(run.id, "w1")
    assert bench.ledger.renew(run.id, "w1", LEASE)
    bench.pass_lease_time(timedelta(seconds=61))
    assert [cut.id for cut in bench.ledger.expire()] == [run.id]


def test_a_lease_clock_that_went_back_does_not_keep_a_dead_run_alive(bench: Bench) -> None:
    """A reboot, or a step of PostgreSQL's clock: the last renewal lies in the future then."""
    enqueue(bench.ledger)
    run = bench.ledger.claim("w1", LEASE)
    assert run is not None
    if bench.kind == "sqlite":
        bench.clock.reboot()
    else:
        bench.sql("UPDATE runs SET lease_renewed_ms = lease_renewed_ms + 3600000")
        bench.sql("UPDATE runs SET lease_expires_ms = lease_expires_ms + 3600000")
    assert not bench.ledger.holds(run.id, "w1")
    assert [cut.id for cut in bench.ledger.expire()] == [run.id]


def test_run_ids_sort_by_time_and_are_short(bench: Bench) -> None:
    ids = []
    for n in range(5):
        ids.append(enqueue(bench.ledger, f"a{n}").id)
        bench.clock.advance(timedelta(seconds=1))
    assert ids == sorted(ids)
    assert all(len(run_id) <= 26 for run_id in ids)
    assert ids[0].startswith("20261130-090000-")


def test_a_run_id_that_is_taken_is_drawn_again(ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["same", "same", "other"])
    monkeypatch.setattr("triage.ledger.fires.new_run_id", lambda now: next(drawn))
    assert [enqueue(ledger, account).id for account in ("a", "b")] == ["same", "other"]


def test_threads_claim_every_run_once_and_never_overlap(bench: Bench) -> None:
    """Eight threads, 20 accounts, 60 manual runs."""
    for n in range(60):
        enqueue(bench.ledger, f"a{n % 20}", START + timedelta(seconds=n), Trigger.MANUAL)
    claimed: list[str] = []
    running: Counter[str] = Counter()
    overlaps: list[str] = []
    lock = threading.Lock()

    def work(owner: str) -> None:
        while bench.ledger.depth():
            run = bench.ledger.claim(owner, LEASE)
            if run is None:
                continue
            with lock:
                claimed.append(run.id)
                running[run.account] += 1
                if running[run.account] > 1:
                    overlaps.append(run.id)
            with lock:
                running[run.account] -= 1
            assert bench.ledger.finish(run.id, owner)

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(claimed) == len(set(claimed)) == 60
    assert overlaps == []
    assert {run.state for run in bench.ledger.runs(limit=100)} == {RunState.DONE}


def test_threads_fire_together_and_one_wins(bench: Bench) -> None:
    won: list[str] = []
    start = threading.Barrier(6)

    def fire() -> None:
        start.wait()
        for at in MINUTES:
            run = bench.ledger.enqueue("support", Trigger.SCHEDULE, at)
            if run is not None:
                won.append(run.id)

    threads = [threading.Thread(target=fire) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == len(set(won)) == len(MINUTES)
    assert bench.ledger.depth() == 1, "all but the newest have coalesced"
    assert len([run for run in bench.ledger.runs(limit=100) if run.state is RunState.COALESCED]) == len(MINUTES) - 1


def test_runs_of_several_accounts_end_in_turn_each_in_its_own_chain(ledger: SqlLedger) -> None:
    accounts = ["support", "sales", "hr"]
    for minute in MINUTES[:4]:
        for account in accounts:
            enqueue(ledger, account, minute)
        for _ in accounts:
            run = ledger.claim("w1", LEASE)
            assert run is not None
            assert ledger.finish(run.id, "w1")
    assert [ledger.verify_chain(account) for account in accounts] == [[], [], []]


def test_many_accounts_fire_at_once_and_each_once(ledger: SqlLedger) -> None:
    fires = [Fire(f"account-{n:04d}", START) for n in range(2500)]
    let_in = ledger.fire(fires)
    assert let_in.keys() == {fire.account for fire in fires}
    assert len(set(let_in.values())) == ledger.depth() == 2500
    assert ledger.fire(fires) == {}
    assert ledger.last_fires([fire.account for fire in fires]) == {fire.account: START for fire in fires}


def test_of_fires_at_once_those_are_let_in_that_are_new(ledger: SqlLedger) -> None:
    enqueue(ledger, "support")
    let_in = ledger.fire([Fire("support", START), Fire("sales", START), Fire("hr", MINUTES[1], 1, START)])
    assert let_in.keys() == {"sales", "hr"}
    late = ledger.run(let_in["hr"])
    assert late is not None
    assert (late.trigger, late.fire_time, late.state) == (Trigger.SCHEDULE, MINUTES[1], RunState.QUEUED)
    assert late.options == {"missed": "1", "missed_since": START.isoformat()}


def test_fires_at_once_coalesce_those_that_wait_account_by_account(ledger: SqlLedger) -> None:
    busy = enqueue(ledger, "busy")
    assert ledger.claim("w1", LEASE, ["busy"]) is not None
    first = ledger.fire([Fire(account, MINUTES[1]) for account in ("support", "sales", "busy")])
    second = ledger.fire([Fire(account, MINUTES[2]) for account in ("support", "busy")])
    states = {run.id: (run.state, run.reason) for run in ledger.runs()}
    for account in ("support", "busy"):
        assert states[first[account]] == (RunState.COALESCED, f"into {second[account]}")
        assert states[second[account]] == (RunState.QUEUED, None)
    assert states[first["sales"]] == (RunState.QUEUED, None)
    assert states[busy.id] == (RunState.RUNNING, None)


def test_last_fires_tell_of_schedules_only(ledger: SqlLedger) -> None:
    enqueue(ledger, "support")
    enqueue(ledger, "support", MINUTES[3], Trigger.MANUAL)
    enqueue(ledger, "sales", MINUTES[2], Trigger.BACKFILL)
    assert ledger.last_fires(["support", "sales", "nobody"]) == {"support": START}
    assert ledger.last_fires([]) == {}


def test_servers_that_fire_everything_at_once_let_each_fire_in_once(bench: Bench) -> None:
    """Whoever was first, no account waits twice: fires of two ticks by four servers, side by side."""
    accounts = [f"account-{n:03d}" for n in range(200)]
    won: Counter[tuple[str, datetime]] = Counter()
    ready = threading.Barrier(4)

    def server(when: datetime) -> None:
        ready.wait()
        won.update((account, when) for account in bench.ledger.fire([Fire(account, when) for account in accounts]))

    threads = [threading.Thread(target=server, args=(MINUTES[n % 2],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == {(account, when): 1 for account in accounts for when in MINUTES[:2]}
    assert bench.ledger.depth() == 200
