"""Each invariant that the ledger can prove is found broken where it is broken, and only there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from triage.cli.render import audit_table
from triage.demo.checks import BATCH_CAP, check_invariants
from triage.domain.category import Category, CategorySet
from triage.domain.decision import Outcome
from triage.domain.mail import MessageRef
from triage.domain.record import DecisionRecord, Run, RunState, Trigger

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
CATEGORIES = CategorySet(
    "Triage", "unclassified", "Unclassified", (Category("a", "A", "a"), Category("b", "B", "b"))
)  # fmt: skip


def a_run(id_: str = "r", start_s: float = 0, end_s: float = 1) -> Run:
    start, end = NOON + timedelta(seconds=start_s), NOON + timedelta(seconds=end_s)
    return Run(id_, "demo", Trigger.MANUAL, start, RunState.DONE, start, start, end)


def a_decision(uid: int = 1, **changes: Any) -> DecisionRecord:
    values: dict[str, Any] = {
        "id": f"d{uid}", "run_id": "r", "account": "demo", "ref": MessageRef("INBOX", 1, uid), "message_key": f"k{uid}",
        "message_id_key": "", "category_set": "c", "outcome": Outcome.APPLIED, "label_id": "a", "choice": "a",
        "confidence": 0.9, "floor": 0.5, "archive_floor": 0.7, "archive": True, "reason": "chosen", "why": "",
        "decided_at": NOON, "archived_at": NOON, "provider": "embedded", "model": "m", "probabilities": {"a": 0.9},
    }  # fmt: skip
    return DecisionRecord(**values | changes)


def broken(runs: list[Run], decisions: list[DecisionRecord]) -> dict[int, tuple[str, ...]]:
    return {f.id: f.violations for f in check_invariants(runs, decisions, CATEGORIES) if not f.holds}


def test_sound_records_hold_all_six() -> None:
    findings = check_invariants([a_run()], [a_decision(1), a_decision(2, archived_at=None)], CATEGORIES)
    assert [(f.id, f.holds, f.checked) for f in findings] == [
        (1, True, 2), (2, True, 1), (3, True, 2), (4, True, 1), (5, True, 1), (6, True, 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("decisions", "expected"),
    [
        ([a_decision(1), a_decision(2, message_key="k1")], {1: ("k1",)}),
        ([a_decision(1, confidence=0.69)], {2: ("d1",)}),
        ([a_decision(1, confidence=0.69, archived_at=None)], {}),
        ([a_decision(1, label_id="elsewhere")], {3: ("d1",)}),
        ([a_decision(1, label_id="unclassified", archived_at=None)], {}),
        ([a_decision(n) for n in range(BATCH_CAP)], {}),
        ([a_decision(n) for n in range(BATCH_CAP + 1)], {4: ("r",)}),
        ([a_decision(1, model=None)], {6: ("d1",)}),
        ([a_decision(1, model=None, provider=None, probabilities={}, outcome=Outcome.INHERITED)], {}),
    ],
)
def test_a_planted_violation_is_named(decisions: list[DecisionRecord], expected: dict[int, tuple[str, ...]]) -> None:
    assert broken([a_run()], decisions) == expected


def test_runs_that_overlap_are_named() -> None:
    assert broken([a_run("x", 0, 2), a_run("y", 1, 3), a_run("z", 3, 4)], []) == {5: ("y",)}


def test_the_table_shows_what_holds_and_what_does_not() -> None:
    stream = StringIO()
    findings = check_invariants([a_run()], [a_decision(n, label_id="no") for n in range(7)], CATEGORIES)
    Console(file=stream, width=80).print(audit_table(findings))
    lines = [" ".join(line.split()) for line in stream.getvalue().splitlines()]
    assert lines[0] == "✓ 1 No message is decided twice 7 checked"
    assert lines[2] == "✗ 3 A mail moves nothing but its own label 7 of 7: d0, d1, d2, d3, d4 ..."
