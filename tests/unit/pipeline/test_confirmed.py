"""Which label counts as confirmed by a person."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from support.office import CATEGORIES
from triage.domain.correction import CorrectionKind as Kind
from triage.domain.decision import Outcome
from triage.domain.mail import Head, MessageRef, Part
from triage.domain.record import DecisionRecord
from triage.pipeline.confirmed import Hand, Sighting, confirmed_label

REF = MessageRef("INBOX", 1, 7)


def decided(label_id: str) -> DecisionRecord:
    return DecisionRecord(
        id="d", run_id="r", account="team", ref=REF, message_key="k", message_id_key="m", category_set="c",
        outcome=Outcome.APPLIED, label_id=label_id, choice=label_id, confidence=0.9, floor=0.5, archive_floor=0.5,
        archive=False, reason="chosen", why="", decided_at=datetime(2026, 3, 1, tzinfo=UTC),
    )  # fmt: skip


def judged(
    borne: str, record: DecisionRecord | None = None, said: frozenset[Kind] = frozenset(), *, known: bool = True
) -> tuple[str, Hand] | None:
    flags = frozenset(f"Triage/{label}" for label in borne.split())
    head = Head(REF, b"", Part("1", "text", "plain"), flags)
    return confirmed_label(Sighting(head, record, said, known), CATEGORIES)


def test_a_label_that_no_decision_explains_is_a_persons() -> None:
    assert judged("receipt") == ("receipt", Hand.PUT)
    assert judged("receipt conversation") is None
    assert judged("unclassified") is None


def test_a_label_from_before_the_ledger_remembers_proves_nothing() -> None:
    assert judged("receipt", known=False) is None


def test_a_label_that_was_not_decided_is_a_change_also_beside_the_decided_one() -> None:
    assert judged("conversation", decided("receipt")) == ("conversation", Hand.CHANGED)
    assert judged("conversation receipt", decided("receipt")) == ("conversation", Hand.CHANGED)
    assert judged("conversation newsletter receipt", decided("receipt")) is None
    assert judged("unclassified", decided("receipt")) is None


@pytest.mark.parametrize(
    ("said", "counts"),
    [
        ({Kind.CONFIRMED}, True),
        (set(), False),
        ({Kind.CONFIRMED, Kind.MOVED_BACK}, False),
        ({Kind.CONFIRMED, Kind.UNDONE}, False),
        ({Kind.CONFIRMED, Kind.UNLABELLED}, False),
        ({Kind.RELABELLED}, False),
    ],
)
def test_our_own_label_counts_only_if_it_was_read_and_left_standing(said: set[Kind], counts: bool) -> None:
    expected = ("receipt", Hand.LEFT) if counts else None
    assert judged("receipt", decided("receipt"), frozenset(said)) == expected


def test_a_fallback_that_was_left_standing_names_no_category() -> None:
    assert judged("unclassified", decided("unclassified"), frozenset({Kind.CONFIRMED})) is None
