"""The journal's promises, on SQLite and on PostgreSQL: what was decided, how far it got, what is remembered."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, timedelta

import pytest

from services.ledger import START, Bench, HandClock, make_decision
from triage.domain.decision import Outcome
from triage.domain.errors import LedgerError
from triage.domain.mail import MessageRef
from triage.domain.record import StepRecord, Trigger
from triage.ledger import SqlLedger, open_ledger

pytest_plugins = ["conftest_ledger"]

SET = "0123456789abcdef"
LATER = START + timedelta(minutes=1)


def test_a_decision_reads_back_as_it_was_recorded(ledger: SqlLedger) -> None:
    record = make_decision(
        outcome=Outcome.INHERITED,
        probabilities={"ünï": 1 / 3, "b": 2 / 3},
        inherited_from="f" * 32,
        inherited_rule="reference",
        inherited_source="person",
        participation="same_list",
        repaired=("renormalised",),
        flags=("$Forwarded", "\\Seen"),
        subject="Angebot für 日本",
        ref=MessageRef("INBOX.Süd", 2**32 - 1, 2**32 - 1),
    )
    ledger.record_decisions([record])
    assert ledger.decision(record.id) == record
    assert ledger.decisions(record.run_id) == (record,)


def test_the_smallest_decision_reads_back_too(ledger: SqlLedger) -> None:
    record = make_decision(
        choice=None, probabilities={}, provider=None, model=None, chain_position=None, provider_confidence=None,
        received_at=None, sender_domain="", message_id_key="", warnings=(), flags=(), confidence=0.0,
    )  # fmt: skip
    ledger.record_decisions([record])
    assert ledger.decision(record.id) == record


def test_what_a_hostile_server_calls_itself_can_be_recorded(ledger: SqlLedger) -> None:
    record = make_decision(model="m\0\ud800odel", input_tokens=10**30, warnings=("\0", "\udfff"))
    ledger.record_decisions([record])
    found = ledger.decision(record.id)
    assert found is not None
    assert (found.model, found.input_tokens) == ("m?odel", 2**63 - 1)
    assert ledger.verify_chain("support") == []


def test_times_come_back_in_utc(ledger: SqlLedger) -> None:
    from zoneinfo import ZoneInfo

    madrid = START.replace(microsecond=123456).astimezone(ZoneInfo("Europe/Madrid"))
    ledger.record_decisions([make_decision(decided_at=madrid)])
    found = ledger.decision("d000001")
    assert found is not None
    assert found.decided_at == madrid
    assert found.decided_at.utcoffset() == timedelta(0)
    assert found.decided_at.tzinfo is UTC


def test_a_message_is_not_decided_twice(ledger: SqlLedger) -> None:
    """While a decision waits for its label, another one of the same message and categories is refused."""
    first = make_decision(1)
    ledger.record_decisions([first])
    with pytest.raises(LedgerError, match="decided already") as caught:
        ledger.record_decisions([make_decision(2, ref=first.ref)])
    assert not caught.value.temporary
    assert str(first.ref) in str(caught.value)
    assert ledger.decision("d000002") is None
    assert ledger.verify_chain("support") == []


def test_a_decision_id_is_used_once(ledger: SqlLedger) -> None:
    ledger.record_decisions([make_decision(1)])
    with pytest.raises(LedgerError):
        ledger.record_decisions([make_decision(1, ref=MessageRef("INBOX", 7, 99))])


@pytest.mark.parametrize("other", ["category_set", "uidvalidity", "account", "labelled", "closed"])
def test_a_message_is_decided_again_where_that_is_right(ledger: SqlLedger, other: str) -> None:
    """Other categories, another UIDVALIDITY, another account, or a person who took the label off."""
    first = make_decision(1)
    ledger.record_decisions([first])
    again = make_decision(2, ref=first.ref)
    match other:
        case "category_set":
            again = replace(again, category_set="fedcba9876543210")
        case "uidvalidity":
            again = replace(again, ref=replace(first.ref, uidvalidity=8))
        case "account":
            again = replace(again, account="sales")
        case "labelled":
            ledger.mark_labelled([first.id], LATER)
        case "closed":
            ledger.mark_closed([first.id], "superseded", LATER)
    ledger.record_decisions([again])
    assert ledger.decision("d000002") == again


def test_a_preview_is_found_by_its_message_and_categories(ledger: SqlLedger) -> None:
    ledger.record_decisions([make_decision(1, message_key="a" * 32, closed_reason="preview")])
    ledger.record_decisions([make_decision(2, message_key="b" * 32)])
    keys = ["a" * 32, "b" * 32, "c" * 32]
    assert ledger.previewed("support", SET, keys) == {"a" * 32}
    assert ledger.previewed("support", "another-set", keys) == frozenset()
    assert ledger.previewed("sales", SET, keys) == frozenset()
    assert ledger.previewed("support", SET, []) == frozenset()


def test_unfinished_is_what_lacks_its_label_or_its_archive(ledger: SqlLedger) -> None:
    for n in range(1, 7):
        ledger.record_decisions([make_decision(n, archive=n != 4)])
    ledger.mark_labelled([f"d{n:06d}" for n in (2, 3, 4, 5)], LATER)
    ledger.mark_archived({"d000003": MessageRef("Archive", 3, 30), "d000005": None}, LATER)
    ledger.mark_closed(["d000006"], "person_touched", LATER)
    assert [record.id for record in ledger.unfinished("support")] == ["d000001", "d000002"]
    assert [record.id for record in ledger.unfinished("support", limit=1)] == ["d000001"]
    assert ledger.unfinished("sales") == ()


def test_marks_are_read_back(ledger: SqlLedger) -> None:
    for n in (1, 2):
        ledger.record_decisions([make_decision(n)])
    ledger.mark_labelled(["d000001", "d000002"], LATER)
    ledger.mark_archived({"d000001": MessageRef("Archive", 3, 30), "d000002": None}, LATER)
    ledger.mark_recovered(["d000002"], "20261130-090500-bbbbbb", LATER)
    ledger.mark_closed(["d000002"], "gone", LATER)
    first, second = ledger.decisions("20261130-090000-aaaaaa")
    assert (first.labelled_at, first.archived_at, first.archived_ref) == (LATER, LATER, MessageRef("Archive", 3, 30))
    assert (first.closed_reason, first.recovered_by) == (None, None)
    assert (second.archived_at, second.archived_ref, second.closed_reason) == (LATER, None, "gone")
    assert ledger.recovered("20261130-090500-bbbbbb") == (second,)
    assert ledger.verify_chain("support") == []


def test_the_first_mark_counts(ledger: SqlLedger) -> None:
    ledger.record_decisions([make_decision(1)])
    for at in (LATER, LATER + timedelta(hours=1)):
        ledger.mark_labelled(["d000001", "d000001", "unknown"], at)
        ledger.mark_archived({"d000001": None}, at)
    ledger.mark_closed(["d000001"], "gone", LATER)
    ledger.mark_closed(["d000001"], "superseded", LATER)
    found = ledger.decision("d000001")
    assert found is not None
    assert (found.labelled_at, found.archived_at, found.closed_reason) == (LATER, LATER, "gone")
    assert ledger.verify_chain("support") == []


def test_marking_nothing_is_fine(ledger: SqlLedger) -> None:
    ledger.mark_labelled([], LATER)
    ledger.mark_archived({}, LATER)
    ledger.mark_closed(["unknown"], "gone", LATER)
    assert ledger.accounts() == ()


def test_marks_of_thousands_of_decisions_are_one_call(ledger: SqlLedger) -> None:
    ids = [f"d{n:06d}" for n in range(1, 1202)]
    for n in (1, 700, 1201):
        ledger.record_decisions([make_decision(n)])
    ledger.mark_labelled(ids, LATER)
    assert all(record.labelled_at == LATER for record in ledger.decisions("20261130-090000-aaaaaa"))


def test_an_ancestor_is_the_newest_labelled_decision_of_its_message_id(ledger: SqlLedger) -> None:
    key = "e" * 32
    ledger.record_decisions([make_decision(1, message_id_key=key, label_id="old")])
    ledger.record_decisions([make_decision(2, message_id_key=key, label_id="new")])
    ledger.record_decisions([make_decision(3, message_id_key=key, label_id="never labelled")])
    ledger.record_decisions([make_decision(4, message_id_key="")])
    ledger.mark_labelled(["d000001", "d000002", "d000004"], LATER)
    found = ledger.latest_decisions("support", [key, key, "d" * 32, ""])
    assert {k: record.label_id for k, record in found.items()} == {key: "new"}
    assert ledger.latest_decisions("sales", [key]) == {}


def test_money_is_summed_from_an_instant_on(ledger: SqlLedger) -> None:
    assert ledger.spent_usd(START) == 0.0
    for n in range(1, 5):
        ledger.record_decisions([make_decision(n, cost_usd=0.25, account=f"a{n}")])
    assert ledger.spent_usd(START) == pytest.approx(1.0)
    assert ledger.spent_usd(START + timedelta(seconds=3)) == pytest.approx(0.5)


def test_steps_come_back_in_order(ledger: SqlLedger) -> None:
    run = ledger.enqueue("support", Trigger.MANUAL, START)
    assert run is not None
    told = [
        StepRecord("select", START, 12, {"found": 20}),
        StepRecord("recover", START, 3),
        StepRecord("label", LATER, 40, {"stored": 20, "yielded": 0}),
    ]
    for step in told:
        ledger.record_step(run.id, step)
    assert ledger.steps(run.id) == tuple(told)
    assert ledger.steps("unknown") == ()


def test_a_step_of_no_run_is_dropped_and_spoils_nothing(ledger: SqlLedger) -> None:
    ledger.record_step("unknown", StepRecord("select", START, 1))
    run = ledger.enqueue("support", Trigger.MANUAL, START)
    assert run is not None
    assert ledger.steps("unknown") == ()
    assert ledger.run(run.id) == run


def test_a_step_is_kept_with_what_its_run_writes_next(ledger: SqlLedger) -> None:
    """Another process sees it as soon as the run wrote anything else, not before."""
    ledger.enqueue("support", Trigger.MANUAL, START)
    run = ledger.claim("w1", timedelta(minutes=3))
    assert run is not None
    step = StepRecord("select", START, 12, {"found": 20})
    ledger.record_step(run.id, step)
    with ledger._engine.connect() as other:
        assert other.exec_driver_sql("SELECT count(*) FROM steps").scalar_one() == 0
    assert ledger.finish(run.id, "w1")
    with ledger._engine.connect() as other:
        assert other.exec_driver_sql("SELECT count(*) FROM steps").scalar_one() == 1
    assert ledger.steps(run.id) == (step,)


def test_a_fingerprint_is_keyed_stable_and_says_nothing(bench: Bench) -> None:
    key = bench.ledger.key("<id@example.org>")
    assert len(key) == 32
    assert int(key, 16)
    assert key == bench.ledger.key("<id@example.org>")
    assert key != bench.ledger.key("<id2@example.org>")
    assert bench.ledger.key("") == ""
    again = open_ledger(bench.url, HandClock())
    assert again.key("<id@example.org>") == key, "the key belongs to the ledger, not to the process"
    again.close()


def test_two_ledgers_name_a_message_differently(ledger: SqlLedger, tmp_path: object) -> None:
    other = open_ledger(f"sqlite:///{tmp_path}/other.db", HandClock())
    assert other.key("<id@example.org>") != ledger.key("<id@example.org>")
    other.close()


def test_a_breaker_outlives_the_process(bench: Bench) -> None:
    assert bench.ledger.load_breaker("systemone:jev") is None
    for failures in (1, 2):
        bench.ledger.save_breaker("systemone:jev", {"open_until": "2026-11-30T10:00:00+00:00", "failures": failures})
    again = open_ledger(bench.url, HandClock())
    assert again.load_breaker("systemone:jev") == {"open_until": "2026-11-30T10:00:00+00:00", "failures": 2}
    assert again.load_breaker("other") is None
    again.close()


def test_an_account_is_remembered_apart_from_breakers(ledger: SqlLedger) -> None:
    assert ledger.account_state("support") == {}
    ledger.save_account_state("support", {"login_refused": "a1b2"})
    ledger.save_breaker("support", {"failures": 1})
    assert ledger.account_state("support") == {"login_refused": "a1b2"}


def test_a_number_that_is_none_is_refused_whole(ledger: SqlLedger) -> None:
    """Either everything of a decision is recorded or nothing."""
    with pytest.raises(LedgerError):
        ledger.record_decisions([make_decision(1, confidence=math.nan)])
    assert ledger.decisions("20261130-090000-aaaaaa") == ()
    assert ledger.verify_chain("support") == []
