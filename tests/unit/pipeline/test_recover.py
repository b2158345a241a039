"""What becomes of half-done work, given the message as it is now. A person's hand always wins."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from services.ledger import make_decision
from support.office import CATEGORIES
from triage.domain.mail import Head, MessageRef, Part
from triage.domain.record import DecisionRecord
from triage.pipeline.recover import Recovery, plan_recovery

INBOX = ("INBOX", 7)
LABEL, OTHER, FALLBACK = "Triage/newsletter", "Triage/receipt", "Triage/unclassified"
DECIDED = make_decision(
    1, label_id="newsletter", category_set=CATEGORIES.fingerprint, flags=("\\Seen",), archive=True, labelled_at=None
)
LABELLED = replace(DECIDED, labelled_at=datetime(2026, 11, 30, 9, 1, tzinfo=UTC))


def recover(record: DecisionRecord, *flags: str, gone: bool = False, archives: bool = True) -> Recovery:
    head = Head(record.ref, b"", Part("1", "text", "plain"), flags=frozenset(flags))
    now = {} if gone else {record.ref.uid: head}
    return plan_recovery([record], now, INBOX, CATEGORIES, archives=archives)


def word(recovery: Recovery) -> str:
    """What was decided, in one line."""
    told = [name for name in ("to_label", "to_keep", "labelled", "to_archive") if getattr(recovery, name)]
    return " ".join(told + sorted(recovery.closed))


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["\\Seen"], "to_label"),
        (["\\Seen", "\\Recent"], "to_label"),
        (["\\seen"], "to_label"),
        ([], "to_keep"),
        (["\\Seen", "\\Flagged"], "to_keep"),
        (["\\Seen", "Project-X"], "to_keep"),
        (["\\Seen", "\\Deleted"], "person_touched"),
        (["\\Seen", LABEL], "labelled to_archive"),
        (["\\Seen", LABEL.upper()], "labelled to_archive"),
        (["\\Seen", "\\Flagged", LABEL], "labelled person_touched"),
        (["\\Seen", OTHER], "person_touched"),
        (["\\Seen", FALLBACK], "person_touched"),
        (["\\Seen", LABEL, OTHER], "person_touched"),
    ],
)
def test_a_decision_whose_label_is_not_recorded(flags: list[str], expected: str) -> None:
    assert word(recover(DECIDED, *flags)) == expected


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["\\Seen", LABEL], "to_archive"),
        (["\\Seen", LABEL, "\\Recent"], "to_archive"),
        ([LABEL], "person_touched"),
        (["\\Seen", LABEL, "\\Answered"], "person_touched"),
        (["\\Seen", LABEL, "\\Deleted"], "person_touched"),
        (["\\Seen"], "person_touched"),
        (["\\Seen", OTHER], "person_touched"),
    ],
)
def test_a_label_whose_archive_is_not_recorded(flags: list[str], expected: str) -> None:
    assert word(recover(LABELLED, *flags)) == expected


@pytest.mark.parametrize("record", [DECIDED, LABELLED])
def test_a_message_that_left_the_inbox_is_let_go(record: DecisionRecord) -> None:
    assert word(recover(record, gone=True)) == "gone"


def test_a_renumbered_or_another_inbox_makes_every_uid_void() -> None:
    renumbered = replace(DECIDED, ref=MessageRef("INBOX", 6, 1))
    elsewhere = replace(DECIDED, ref=MessageRef("Support", 7, 1))
    assert word(recover(renumbered, "\\Seen")) == "uidvalidity_changed"
    assert word(recover(elsewhere, "\\Seen")) == "inbox_changed"


def test_a_decision_under_other_categories_is_superseded() -> None:
    assert word(recover(replace(DECIDED, category_set="0" * 16), "\\Seen")) == "superseded"
    assert word(recover(replace(DECIDED, label_id="dropped"), "\\Seen")) == "superseded"


def test_what_stays_in_the_inbox_is_labelled_whatever_else_happened_to_it() -> None:
    stays = replace(DECIDED, archive=False)
    assert word(recover(stays, "\\Flagged")) == "to_label"
    assert word(recover(stays, "\\Flagged", LABEL)) == "labelled"


def test_nothing_is_archived_once_archiving_is_switched_off() -> None:
    assert word(recover(LABELLED, "\\Seen", LABEL, archives=False)) == "archiving_off"
