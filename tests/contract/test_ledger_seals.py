"""Seals, on SQLite and on PostgreSQL: they spare arithmetic, and hide nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from services.ledger import START, Bench, make_decision
from support.ledger_edits import EDITS, live
from triage.domain.correction import Correction, CorrectionKind

pytest_plugins = ["conftest_ledger"]


SIZE = 4


@pytest.fixture
def sealed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A ledger with a past whose full blocks bear their seals."""
    monkeypatch.setattr("triage.ledger.seals.BLOCK", SIZE)
    live(bench)
    first = bench.ledger.verify("support")
    assert (first.problems, first.anew) == ((), first.links)
    return bench


def test_what_was_verified_is_not_recomputed(sealed: Bench) -> None:
    links = sealed.ledger.verify("support").links
    assert sealed.ledger.verify("support").anew == links % SIZE
    assert sealed.ledger.verify("support", whole=True).anew == links


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_after_the_seal_is_found(sealed: Bench, edit: str) -> None:
    statement, problem = EDITS[edit]
    sealed.sql(statement)
    for _ in range(2):  # and it is not sealed over
        problems = sealed.ledger.verify("support").problems
        assert any(problem in found for found in problems), problems


@pytest.mark.parametrize("edit", ["a decision away", "a link away", "the first links away", "where it went"])
def test_an_edit_is_found_where_the_seals_were_taken_off_too(sealed: Bench, edit: str) -> None:
    statement, problem = EDITS[edit]
    sealed.sql(statement)
    sealed.sql("DELETE FROM seals")
    assert any(problem in found for found in sealed.ledger.verify("support").problems)


def test_many_changes_at_once_are_found(sealed: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triage.ledger.seals._MOST_SPANS", 1)
    sealed.sql("UPDATE decisions SET why = 'x' WHERE id IN ('d000001', 'd000008')")
    problems = sealed.ledger.verify("support").problems
    assert [victim in "".join(problems) for victim in ("d000001", "d000004", "d000008")] == [True, False, True]


def test_a_link_edited_with_all_that_follow_in_its_block_is_found(sealed: Bench) -> None:
    sealed.sql(f"UPDATE events SET hash = digest WHERE account = 'support' AND seq = {SIZE}")
    problems = sealed.ledger.verify("support").problems
    assert any(f"link {SIZE} (" in found for found in problems), problems
    assert any(f"link {SIZE + 1} (" in found for found in problems), problems


def test_a_record_that_was_put_in_is_found(sealed: Bench) -> None:
    columns = ", ".join(c for c in _columns() if c not in ("id", "uid"))
    sealed.sql(
        f"INSERT INTO decisions (id, uid, {columns}) "
        f"SELECT 'd000002x', 77, {columns} FROM decisions WHERE id = 'd000008'"
    )
    assert sealed.ledger.verify("support").problems == (
        "account support, decision d000002x: recorded without a link in the chain",
    )


def test_a_decision_that_went_to_another_account_is_found_there_too(sealed: Bench) -> None:
    sealed.ledger.verify("sales")
    sealed.sql("UPDATE decisions SET account = 'sales' WHERE id = 'd000001'")
    assert any("d000001: recorded without" in found for found in sealed.ledger.verify("sales").problems)


def test_what_is_done_later_about_a_sealed_decision_breaks_no_promise(sealed: Bench) -> None:
    ledger, now = sealed.ledger, sealed.clock.now()
    ledger.mark_archived({"d000003": None}, now)
    ledger.mark_closed(["d000008"], "gone", now)
    ledger.record_corrections(
        [Correction("c1", "support", "d000005", "k", "m", CorrectionKind.RELABELLED, "a", "b", now)]
    )
    later = ledger.verify("support")
    assert later.problems == ()
    assert ledger.verify("support").anew == later.links % SIZE


def test_what_is_forgotten_is_no_missing_record(sealed: Bench) -> None:
    assert sealed.ledger.forget(decision_ids=["d000001", "d000006"]) == 2
    assert sealed.ledger.verify("support").problems == ()


@pytest.mark.parametrize("seconds", [1, 2, 5])
def test_retention_cuts_through_a_sealed_block(sealed: Bench, seconds: int) -> None:
    sealed.clock.advance(timedelta(days=1))
    sealed.ledger.enforce_retention(START + timedelta(seconds=seconds))
    found = sealed.ledger.verify("support")
    assert (found.problems, found.pruned) == ((), True)
    sealed.ledger.record_decisions([make_decision(40)])
    assert sealed.ledger.verify("support").problems == ()
    sealed.sql("DELETE FROM decisions WHERE id = 'd000040'")
    assert sealed.ledger.verify("support").problems == ("account support, decision d000040: the record is missing",)


def test_links_before_the_cut_do_not_come_back(sealed: Bench) -> None:
    sealed.sql("CREATE TABLE kept AS SELECT * FROM events WHERE account = 'support' AND seq = 1")
    try:
        sealed.ledger.enforce_retention(START + timedelta(seconds=2))
        sealed.sql("INSERT INTO events SELECT * FROM kept")
    finally:
        sealed.sql("DROP TABLE kept")
    assert "account support: link 1 lies before" in sealed.ledger.verify("support").problems[0]


def test_a_chain_that_claims_to_be_endless_is_read_as_far_as_it_goes(sealed: Bench) -> None:
    sealed.sql("UPDATE chains SET seq = 1000000000000 WHERE account = 'support'")
    assert any("are missing" in found for found in sealed.ledger.verify("support").problems)


def test_no_more_is_told_than_is_asked_for(sealed: Bench) -> None:
    sealed.sql("UPDATE decisions SET confidence = 0.1")
    assert len(sealed.ledger.verify("support", limit=3).problems) == 3


def test_an_unknown_account_has_nothing_wrong(sealed: Bench) -> None:
    assert sealed.ledger.verify("nobody").problems == ()


def _columns() -> list[str]:
    from triage.ledger.schema import decisions

    return [column.name for column in decisions.c]
