"""The hash chain, on SQLite and on PostgreSQL: whatever is changed behind the program's back is found."""

from __future__ import annotations

from datetime import timedelta

import pytest

from services.ledger import START, Bench, make_decision
from support.ledger_edits import EDITS, LEASE, live
from triage.domain.record import Trigger
from triage.ledger import SqlLedger

pytest_plugins = ["conftest_ledger"]


@pytest.fixture
def told(bench: Bench) -> Bench:
    return live(bench)


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_found(told: Bench, edit: str) -> None:
    statement, problem = EDITS[edit]
    told.sql(statement)
    problems = told.ledger.verify_chain("support")
    assert any(problem in found for found in problems), problems
    assert all("account support" in found for found in problems)


def test_links_that_changed_places_are_found(told: Bench) -> None:
    told.sql("UPDATE events SET seq = -1 WHERE account = 'support' AND seq = 3")
    told.sql("UPDATE events SET seq = 3 WHERE account = 'support' AND seq = 4")
    told.sql("UPDATE events SET seq = 4 WHERE account = 'support' AND seq = -1")
    problems = told.ledger.verify_chain("support")
    assert any("link 3" in found and "reordered" in found for found in problems), problems


def test_a_record_that_was_put_in_is_found(told: Bench) -> None:
    columns = ", ".join(c for c in _columns(told) if c not in ("id", "uid"))
    told.sql(
        f"INSERT INTO decisions (id, uid, {columns}) "
        f"SELECT 'd000002x', 77, {columns} FROM decisions WHERE id = 'd000008'"
    )
    assert told.ledger.verify_chain("support") == [
        "account support, decision d000002x: recorded without a link in the chain"
    ]


def test_a_link_that_was_put_in_is_found(told: Bench) -> None:
    told.sql("INSERT INTO events SELECT account, seq + 1, at, kind, 'd000099', digest, hash FROM events "
             "WHERE account = 'support' ORDER BY seq DESC LIMIT 1")  # fmt: skip
    problems = told.ledger.verify_chain("support")
    assert any("edited or reordered" in found for found in problems), problems


def test_a_tail_cut_off_with_its_records_is_found(told: Bench) -> None:
    told.sql("DELETE FROM decisions WHERE id = 'd000008'")
    told.sql(
        "DELETE FROM events WHERE account = 'support' AND seq >= (SELECT seq FROM events WHERE subject = 'd000008')"
    )
    assert any("are missing" in found for found in told.ledger.verify_chain("support"))


def test_one_account_does_not_answer_for_another(told: Bench) -> None:
    told.sql("UPDATE decisions SET confidence = 0.1 WHERE account = 'support'")
    assert told.ledger.verify_chain("sales") == []


def test_an_unknown_account_has_nothing_wrong(ledger: SqlLedger) -> None:
    assert ledger.verify_chain("nobody") == []


def test_problems_are_counted_up_to_a_limit(told: Bench) -> None:
    told.sql("UPDATE decisions SET confidence = 0.1")
    assert len(told.ledger.verify_chain("support", limit=3)) == 3


def test_verification_reads_in_portions(told: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triage.ledger.verify._BATCH", 2)
    assert told.ledger.verify_chain("support") == []


def test_forgotten_decisions_are_gone_and_the_chain_holds(told: Bench) -> None:
    assert told.ledger.forget(decision_ids=["d000001", "d000004", "unknown"]) == 2
    assert told.ledger.decision("d000001") is None
    assert told.ledger.verify_chain("support") == []
    assert told.ledger.forget(decision_ids=["d000001"]) == 0


def test_a_senders_domain_is_forgotten_everywhere(told: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triage.ledger.forget._AT_ONCE", 2)
    told.ledger.record_decisions([make_decision(50, sender_domain="other.example")])
    assert told.ledger.forget(sender_domain="example.org") == 9
    assert [record.id for record in told.ledger.iter_decisions(None, START)] == ["d000050"]
    assert told.ledger.verify_chain("support") == []
    assert told.ledger.verify_chain("sales") == []
    dump = str(told.sql("SELECT * FROM events"))
    assert "example.org" not in dump


def test_a_forgotten_record_cannot_come_back_unseen(told: Bench) -> None:
    columns = ", ".join(_columns(told))
    told.sql(f"CREATE TABLE kept AS SELECT {columns} FROM decisions WHERE id = 'd000001'")
    try:
        told.ledger.forget(decision_ids=["d000001"])
        told.sql(f"INSERT INTO decisions ({columns}) SELECT {columns} FROM kept")
    finally:
        told.sql("DROP TABLE kept")
    assert any("back again" in found for found in told.ledger.verify_chain("support"))


def test_a_forgotten_message_is_decided_anew(told: Bench) -> None:
    told.ledger.forget(decision_ids=["d000008"])
    told.ledger.record_decisions([make_decision(8, id="d000009")])
    assert told.ledger.verify_chain("support") == []


def test_retention_removes_what_is_older_and_the_chain_holds(told: Bench) -> None:
    third = START + timedelta(seconds=2)
    gone = told.ledger.enforce_retention(third)
    assert (gone.decisions, gone.runs) == (2, 0)
    assert told.ledger.decision("d000002") is None
    assert told.ledger.decision("d000003") is not None
    assert told.ledger.verify_chain("support") == []
    again = told.ledger.enforce_retention(third)
    assert (again.decisions, again.runs) == (0, 0)


@pytest.mark.parametrize("at_once", [1, 3, 500])
def test_retention_of_everything_leaves_a_chain_that_goes_on(
    told: Bench, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr("triage.ledger.forget._AT_ONCE", at_once)
    before = _links_of(told, "support")
    told.clock.advance(timedelta(days=90))
    gone = told.ledger.enforce_retention(told.clock.now())
    assert (gone.decisions, gone.runs) == (9, 2)
    assert told.sql("SELECT count(*) FROM decisions") == [(0,)]
    told.ledger.record_decisions([make_decision(9)])
    assert told.ledger.verify_chain("support") == []
    assert told.ledger.verify_chain("sales") == []
    assert _links_of(told, "support") <= before // at_once + 2, "what is left: one link a cut, and the new decision"


@pytest.mark.parametrize("at_once", [1, 3, 500])
def test_retention_up_to_a_moment_to_come_ends_and_the_next_one_takes_its_traces(
    told: Bench, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Its own links are old by then too: they are not cut in the same go, and do not stop the next one."""
    monkeypatch.setattr("triage.ledger.forget._AT_ONCE", at_once)
    before = _links_of(told, "support")
    told.ledger.enforce_retention(told.clock.now() + timedelta(days=1))
    traces = _links_of(told, "support")
    assert traces == -(-before // at_once)
    told.ledger.record_decisions([make_decision(9)])
    told.clock.advance(timedelta(days=90))
    assert told.ledger.enforce_retention(told.clock.now()).decisions == 1
    assert told.ledger.verify_chain("support") == []


def test_retention_takes_coalesced_fires_too(bench: Bench) -> None:
    for n in range(3):
        bench.ledger.enqueue("support", Trigger.SCHEDULE, START + n * LEASE)
    newest = bench.ledger.runs(limit=1)[0].enqueued_at
    assert bench.ledger.enforce_retention(newest + LEASE).runs == 2
    assert bench.ledger.depth() == 1


def test_links_cut_off_by_hand_are_not_taken_for_retention(told: Bench) -> None:
    told.sql("DELETE FROM decisions WHERE id = 'd000001'")
    told.sql("UPDATE chains SET base_seq = 2, base_hash = (SELECT hash FROM events WHERE account = 'support' "
             "AND seq = 2) WHERE account = 'support'")  # fmt: skip
    told.sql("DELETE FROM events WHERE account = 'support' AND seq <= 2")
    assert any("not by retention" in found for found in told.ledger.verify_chain("support"))


def test_many_writers_make_one_chain(bench: Bench) -> None:
    import threading

    def write(number: int) -> None:
        for n in range(number * 100, number * 100 + 15):
            bench.ledger.record_decisions([make_decision(n)])
            bench.ledger.mark_labelled([f"d{n:06d}"], START)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bench.ledger.verify_chain("support") == []
    assert bench.sql("SELECT count(*), max(seq) FROM events") == [(180, 180)]


def _links_of(bench: Bench, account: str) -> int:
    ((count,),) = bench.sql("SELECT count(*) FROM events WHERE account = :account", account=account)
    return int(str(count))


def _columns(bench: Bench) -> list[str]:
    from triage.ledger.schema import decisions

    return [column.name for column in decisions.c]
