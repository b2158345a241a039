"""What reports and the audit ask of the ledger, on SQLite and on PostgreSQL: the same answers from both."""

from __future__ import annotations

from datetime import timedelta

import pytest

from services.ledger import START, Bench, make_decision
from triage.domain.correction import Correction, CorrectionKind
from triage.domain.decision import Outcome
from triage.domain.mail import MessageRef
from triage.domain.record import Trigger

pytest_plugins = ["conftest_ledger"]

DAY = timedelta(days=1)
SINCE, UNTIL = START - DAY, START + 30 * DAY


@pytest.fixture
def told(bench: Bench) -> Bench:
    """One run with an archived, an unsure, an inherited and a previewed decision."""
    ledger = bench.ledger
    ledger.enqueue("support", Trigger.SCHEDULE, START)
    run = ledger.claim("w", timedelta(minutes=5))
    assert run is not None
    at = {"run_id": run.id, "decided_at": START}
    ledger.record_decisions([make_decision(1, **at, latency_ms=123, links_removed=2)])
    ledger.record_decisions([
        make_decision(
            2, **at, outcome=Outcome.BELOW_FLOOR, label_id="unclassified", choice="receipts", confidence=0.1,
            archive=False,
            probabilities={"receipts": 0.55, "newsletters": 0.45}, chain_position=1, sender_domain="b.example",
        )
    ])  # fmt: skip
    ledger.record_decisions([
        make_decision(3, **at, outcome=Outcome.INHERITED, provider=None, model=None, chain_position=None,
                      probabilities={},
                      inherited_from=f"{1:032x}", inherited_source="decision", input_tokens=0, cost_usd=0.0)
    ])  # fmt: skip
    ledger.record_decisions([make_decision(4, **at, closed_reason="preview")])
    ledger.mark_labelled(["d000001", "d000002", "d000003"], START)
    ledger.mark_archived({"d000001": MessageRef("Archive", 1, 1), "d000003": None}, START)
    ledger.finish(run.id, "w", counts={"selected": 4})
    return bench


def test_sums_count_what_was_meant_to_be_applied(told: Bench) -> None:
    ledger = told.ledger
    tallies = {t.label_id + str(t.outcome): t for t in ledger.tallies("support", SINCE, UNTIL)}
    assert sum(t.count for t in tallies.values()) == 3, "a preview does not count"
    first = tallies["newslettersapplied"]
    assert (first.bin, first.archived, first.fallback, first.input_tokens, first.links_removed) == (
        18,
        True,
        False,
        300,
        2,
    )
    assert tallies["unclassifiedbelow_floor"].fallback
    assert list(ledger.days("support", SINCE, UNTIL).values()) == [(3, 2, pytest.approx(0.002))]
    assert ledger.latencies("support", SINCE, UNTIL) == {"embedded": {120: 1, 2: 1}}
    assert ledger.heaviest_senders("support", SINCE, UNTIL) == (("b.example", 1, 300), ("example.org", 1, 300))
    assert list(ledger.unsure("support", SINCE, UNTIL, 0.6, 10)) == [{"receipts": 0.55, "newsletters": 0.45}]
    assert [(s.position, s.provider, s.model, s.answers) for s in ledger.served("support", SINCE, UNTIL)] == [
        (0, "embedded", "embedded-1", 1),
        (1, "embedded", "embedded-1", 1),
    ]
    assert ledger.run_states("support", SINCE, UNTIL) == {("schedule", "done", ""): 1}
    assert ledger.tallies("sales", SINCE, UNTIL) == ()


def test_the_audit_s_questions_find_nothing_where_all_is_well(told: Bench) -> None:
    ledger = told.ledger
    told.sql("UPDATE decisions SET decided_at = runs.started_at FROM runs WHERE runs.id = decisions.run_id")
    assert (ledger.decided_since("support", SINCE), ledger.archived_since("support", SINCE)) == (3, 2)
    assert ledger.answered_since("support", SINCE) == (3, 1)
    for found in (
        ledger.decided_more_than_once("support", SINCE),
        ledger.doubtful_archives("support", SINCE),
        ledger.archived_with("support", SINCE, ["unclassified"]),
        ledger.archived_elsewhere("support", SINCE, "Archive"),
        ledger.bold_heirs("support", SINCE),
        ledger.labels_beside("support", SINCE, ["newsletters", "receipts", "unclassified"]),
        ledger.unanswered("support", SINCE),
        ledger.oversized_runs("support", SINCE, 20),
        ledger.overlapping_runs("support", SINCE),
        ledger.decided_outside_their_run("support", SINCE),
        ledger.finished_twice("support"),
    ):
        assert not found


def test_the_audit_s_questions_find_what_is_wrong(told: Bench) -> None:
    ledger = told.ledger
    told.sql("UPDATE decisions SET confidence = 0.3 WHERE id = 'd000001'")
    assert [d.id for d in ledger.doubtful_archives("support", SINCE)] == ["d000001"]
    assert ledger.bold_heirs("support", SINCE) == ("d000003",)
    assert [d.id for d in ledger.archived_with("support", SINCE, ["newsletters"])] == ["d000001", "d000003"]
    assert [d.id for d in ledger.archived_elsewhere("support", SINCE, "Bin")] == ["d000001"]
    assert [d.id for d in ledger.labels_beside("support", SINCE, ["newsletters", "unclassified"])] == ["d000002"]
    told.sql("UPDATE decisions SET model = NULL WHERE id = 'd000002'")
    assert [d.id for d in ledger.unanswered("support", SINCE)] == ["d000002"]
    assert list(ledger.oversized_runs("support", SINCE, 2).values()) == [4]


def found(kind: CorrectionKind, to: str | None = None, number: int = 1, name: str = "c1") -> Correction:
    return Correction(name, "support", f"d{number:06d}", f"{number:032x}", "m", kind, "newsletters", to, START,
                      MessageRef("INBOX", 7, 9))  # fmt: skip


def test_a_correction_is_recorded_once_linked_and_read_back(told: Bench) -> None:
    ledger = told.ledger
    first = found(CorrectionKind.RELABELLED, "receipts")
    assert ledger.record_corrections([first]) == (first,)
    assert ledger.record_corrections([found(CorrectionKind.RELABELLED, "receipts", name="c2")]) == ()
    ledger.record_corrections([found(CorrectionKind.UNDOING, number=3, name="c3")])
    assert set(ledger.corrections("support")) == {first, found(CorrectionKind.UNDOING, number=3, name="c3")}
    assert [(c.id, d.id) for c, d in ledger.reviewed("support", SINCE)][-1][1] in {"d000001", "d000003"}
    assert ledger.correction_counts("support", SINCE)["relabelled", "newsletters", "receipts"] == 1
    assert ledger.taken_back("support", [f"{3:032x}", f"{1:032x}"]) == {f"{3:032x}"}
    assert ledger.verify_chain("support") == []
    ledger.note_look("support", START)
    assert ledger.looked_for_corrections("support") == START
