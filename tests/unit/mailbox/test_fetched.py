"""FETCH answers: each message for itself, whatever the server mixes in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from triage.mailbox.answers import Reply
from triage.mailbox.fetched import Fetched, fetched


def reply(*items: object, **others: list[object]) -> Reply:
    """Untagged FETCH data as imaplib keeps it: pairs for literals, plain octets to end each response."""
    return Reply("OK", "done", {"FETCH": items, **others})


def test_flags_that_look_like_numbers_or_nothing_are_text() -> None:
    item = fetched([reply(b"1 (UID 7 FLAGS (\\Seen 2024 NIL Caf\xc3\xa9 \xe9 +x [Gmail]/x))")])[7]
    assert item.flags == {"\\Seen", "2024", "NIL", "Café", "é", "+x", "[Gmail]/x"}


def test_sections_are_found_however_the_server_spells_them() -> None:
    item = fetched(
        [reply((b'1 (UID 7 BODY[HEADER.FIELDS ("FROM" "TO")] {4}', b"a: b"), (b" BODY[1]<0> {2}", b"hi"), b")")]
    )[7]
    assert (item.header, item.section("1]"), item.section("1.1]")) == (b"a: b", b"hi", None)


def test_nil_is_missing_and_quoted_is_not() -> None:
    item = fetched([reply(b'1 (UID 7 BODY[1] NIL BODY[2] "" BODY[3] "2024" BODY[4] 2024)')])[7]
    assert [item.section(f"{n}]") for n in (1, 2, 3, 4)] == [None, b"", b"2024", b"2024"]


def test_dates_are_aware() -> None:
    item = fetched([reply(b'1 (UID 7 INTERNALDATE " 1-Feb-2026 10:00:00 +0230")')])[7]
    assert item.received == datetime(2026, 2, 1, 7, 30, tzinfo=UTC)
    assert item.received.utcoffset() == timedelta(hours=2, minutes=30)
    assert fetched([reply(b'1 (UID 7 INTERNALDATE "someday")')])[7].received is None


def test_gmail_labels_and_thread_ids() -> None:
    item = fetched([reply(b'1 (UID 7 X-GM-LABELS ("\\\\Inbox" "Caf&AOk-" 2024) X-GM-THRID 1278455344230334865)')])[7]
    assert item.labels == {"\\Inbox", "Café", "2024"}
    assert item.thread_id == "1278455344230334865"
    assert fetched([reply(b"1 (UID 7 THREADID (T64b478a))")])[7].thread_id == "T64b478a"
    assert fetched([reply(b"1 (UID 7 THREADID NIL)")])[7].thread_id == ""


def test_an_answer_in_two_lines_is_one_message() -> None:
    item = fetched([reply(b"1 (UID 7 FLAGS (a))", b"1 (UID 7 MODSEQ (9))")])[7]
    assert (item.flags, item.modseq) == ({"a"}, 9)


def test_a_line_without_uid_counts_only_where_its_number_is_known() -> None:
    assert fetched([reply(b"1 (FLAGS (a))", b"1 (UID 7 MODSEQ (9))")])[7].flags == {"a"}
    assert fetched([reply(b"2 (FLAGS (a))", b"1 (UID 7 MODSEQ (9))")])[7].flags is None
    moved = reply(b"1 (FLAGS (a))", b"1 (UID 7 MODSEQ (9))", EXPUNGE=[b"1"])
    assert fetched([moved])[7].flags is None


def test_one_message_that_cannot_be_read_keeps_what_can_and_hurts_no_other() -> None:
    broken = (
        b"1 (UID 7 FLAGS (x) MODSEQ (4) RFC822.SIZE 9 "
        b'BODYSTRUCTURE ("text" "plain" ("name" BODY[HEADER.FIELDS (FROM)] {4}',
        b"a: b",
    )
    found = fetched([reply(broken, b")", b"2 (UID 8 FLAGS (y))")])
    assert found[7] == Fetched(7, frozenset({"x"}), modseq=4, size=9, bodies={"BODY[HEADER.FIELDS (FROM)]": b"a: b"})
    assert found[8].flags == {"y"}


def test_a_file_name_cannot_pass_for_a_uid_or_a_flag() -> None:
    spoof = b'1 (UID 7 FLAGS (x) BODYSTRUCTURE ("text" "plain" ("name" "( UID 8 FLAGS (Triage/news) ") )) BODY['
    assert fetched([reply(spoof)]).keys() <= {7}
    assert fetched([reply(b'1 (UID 7 BODYSTRUCTURE ("a" UID 8 ')]) == {}


def test_endless_nesting_ends() -> None:
    deep = b"1 (UID 7 FLAGS (x) BODYSTRUCTURE " + b"(" * 50_000
    assert fetched([reply(deep)])[7].flags == {"x"}


@given(st.lists(st.binary(max_size=60) | st.tuples(st.binary(max_size=30), st.binary(max_size=10)), max_size=5))
def test_nothing_a_server_says_raises(items: list[object]) -> None:
    assert all(isinstance(uid, int) for uid in fetched([reply(*items)]))
