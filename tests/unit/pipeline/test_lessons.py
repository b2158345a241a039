"""What a message teaches, and what it does not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from support.office import CATEGORIES
from triage.decide.embedded.learn import Teacher, Trial
from triage.domain.correction import CorrectionKind as Kind
from triage.domain.decision import Outcome
from triage.domain.mail import Head, MessageRef, Part
from triage.domain.record import DecisionRecord
from triage.pipeline.confirmed import Sighting
from triage.pipeline.learning import KEPT, Summary
from triage.pipeline.lessons import Lesson, Lessons, lesson_of

REF = MessageRef("INBOX", 1, 7)
FILED = MessageRef("Archive", 1, 3)
WHEN = datetime(2026, 3, 1, tzinfo=UTC)
ARCHIVED = DecisionRecord(
    id="d", run_id="r", account="team", ref=REF, message_key="k", message_id_key="m", category_set="c",
    outcome=Outcome.APPLIED, label_id="newsletter", choice="newsletter", confidence=0.9, floor=0.5, archive_floor=0.5,
    archive=True, reason="chosen", why="", decided_at=WHEN, labelled_at=WHEN, archived_at=WHEN,
)  # fmt: skip
KEPT_IN_INBOX = replace(ARCHIVED, archive=False, archived_at=None)


def taught(
    borne: str, record: DecisionRecord | None, *said: Kind, ref: MessageRef = REF, known: bool = True
) -> Lesson | None:
    flags = frozenset(f"Triage/{label}" for label in borne.split())
    seen = Sighting(Head(ref, b"", Part("1", "text", "plain"), flags), record, frozenset(said), known)
    return lesson_of(seen, CATEGORIES, "INBOX")


def test_a_changed_label_teaches_what_it_became() -> None:
    assert taught("conversation", KEPT_IN_INBOX) == Lesson(REF, Teacher.RELABELLED, "newsletter", "conversation")


def test_a_label_put_by_hand_teaches_unless_a_forgotten_decision_may_explain_it() -> None:
    assert taught("receipt", None) == Lesson(REF, Teacher.LABELLED, "", "receipt")
    assert taught("receipt", None, known=False) is None


def test_mail_moved_back_teaches_that_it_was_to_stay() -> None:
    assert taught("newsletter", ARCHIVED) == Lesson(REF, Teacher.MOVED_BACK, "newsletter", "")


@pytest.mark.parametrize("kind", [Kind.UNDONE, Kind.UNDOING, Kind.UNLABELLED])
def test_what_undo_brought_back_or_is_to_be_decided_again_teaches_nothing(kind: Kind) -> None:
    assert taught("newsletter", ARCHIVED, kind) is None


def test_a_label_read_and_left_only_holds() -> None:
    assert taught("newsletter", KEPT_IN_INBOX, Kind.CONFIRMED) == Lesson(REF, None)


@pytest.mark.parametrize(("record", "ref"), [(KEPT_IN_INBOX, REF), (ARCHIVED, FILED)])
def test_what_was_filed_and_nobody_touched_is_no_lesson(record: DecisionRecord, ref: MessageRef) -> None:
    assert taught("newsletter", record, ref=ref) is None


def test_the_digest_changes_with_every_lesson() -> None:
    one = Lesson(REF, Teacher.RELABELLED, "newsletter", "conversation")
    other, held = replace(one, to_label="receipt"), replace(one, teacher=None)
    sets = [Lessons((one,), ()), Lessons((other,), ()), Lessons((), (held,))]
    assert len({lessons.digest for lessons in sets}) == 3


def test_a_summary_survives_the_ledger_and_anything_else_is_none() -> None:
    summary = Summary(WHEN, KEPT, "embedded-1", used=4, by_label={"receipt": 4}, before=Trial(1, 0), after=Trial(3, 0))
    assert Summary.from_json(summary.to_json()) == summary
    for other in ({}, {"at": "yesterday"}, summary.to_json() | {"of_another_version": 1}):
        assert Summary.from_json(other) is None
