"""Response codes, SEARCH answers, LIST answers."""

from __future__ import annotations

import pytest

from triage.domain.errors import CommandRefused, MailboxBusy, MailboxLost
from triage.mailbox.answers import Reply, printable, refusal, write_refusal
from triage.mailbox.discovery import listed, message_counts
from triage.mailbox.locating import message_id_of
from triage.mailbox.moving import copied
from triage.mailbox.searching import hits_of


def test_a_code_is_read_in_any_case_and_only_at_the_start() -> None:
    assert Reply("NO", "[TryCreate] no such mailbox").code == "TRYCREATE"
    assert Reply("NO", "no [TRYCREATE]").code == ""


def test_busy_codes_are_temporary_others_are_one_commands_own() -> None:
    assert isinstance(refusal(Reply("NO", "[THROTTLED] slow"), "SEARCH"), MailboxBusy)
    told = refusal(Reply("NO", "[CANNOT] never"), "SEARCH")
    assert isinstance(told, CommandRefused)
    assert told.response_code == "CANNOT"


def test_a_full_mailbox_refuses_one_write_and_a_throttled_one_all_of_them() -> None:
    assert "OVERQUOTA" in write_refusal(Reply("NO", "[OVERQUOTA] full"), "COPY")
    with pytest.raises(MailboxBusy):
        write_refusal(Reply("NO", "[INUSE] locked"), "COPY")


def test_a_servers_words_become_one_short_line() -> None:
    assert printable("a\r\nb\x1b[31m\u202e") == "a  b [31m "
    assert len(printable("x" * 5000)) == 200


@pytest.mark.parametrize(
    ("untagged", "hits"),
    [
        ({"SEARCH": [b"1 2", b"3"]}, [1, 2, 3]),
        ({"SEARCH": [b""]}, []),
        ({}, []),
        ({"SEARCH": [b"4 5 (MODSEQ 917)"]}, [4, 5]),
        ({"ESEARCH": [b'(TAG "A1") UID ALL 2,4:6']}, [2, 4, 5, 6]),
        ({"ESEARCH": [b'(TAG "A1") UID']}, []),
        ({"ESEARCH": [b'(TAG "A1") UID PARTIAL (1:20 7:8,3)']}, [7, 8, 3]),
        ({"ESEARCH": [b'(TAG "A1") UID PARTIAL (1:20 NIL)']}, []),
    ],
)
def test_search_answers_in_every_form(untagged: dict[str, list[bytes]], hits: list[int]) -> None:
    assert hits_of(Reply("OK", "", untagged)) == hits


def test_a_search_answer_of_billions_is_lost_not_made() -> None:
    with pytest.raises(MailboxLost):
        hits_of(Reply("OK", "", {"ESEARCH": [b"UID ALL 1:4294967295"]}))


def test_listed_mailboxes_in_every_form() -> None:
    lines: list[object] = [
        b'(\\HasNoChildren \\ARCHIVE) "." "INBOX.Old &- new"',
        (b'(\\HasChildren) "/" {5}', b'a"b\\c'),
        b"",
        b'(\\Noselect) "/" group',
        b"(\\HasNoChildren) NIL 2024",
        b"() oops (",
        b'() "/" inbox',
    ]
    found = listed(Reply("OK", "", {"LIST": lines}))
    assert [(m.name, m.delimiter) for m in found] == [
        ("INBOX.Old & new", "."),
        ('a"b\\c', "/"),
        ("2024", ""),
        ("INBOX", "/"),
    ]
    assert "\\archive" in found[0].attributes


def test_message_counts_by_mailbox_whoever_answered() -> None:
    replies = [
        Reply("OK", "", {"STATUS": [b'"Archive" (MESSAGES 231)', b"Sent (UIDNEXT 4 MESSAGES 3)"]}),
        Reply("NO", "", {}),
        Reply("OK", "", {"STATUS": [(b"{4}", b"Work"), b" (MESSAGES 9)", b"rubbish", b'"x" ()']}),
    ]
    assert message_counts(replies) == {"Archive": 231, "Sent": 3, "Work": 9, "x": 0}


@pytest.mark.parametrize("told", ["1 2", "1 2:3 4", "x 2 3", "1 2 3 4", "", "1 1:9999999999 1:9999999999"])
def test_a_copyuid_that_makes_no_sense_tells_nothing(told: str) -> None:
    assert copied(Reply("OK", "", {"COPYUID": [told.encode()]}), "Archive") == {}


@pytest.mark.parametrize(
    ("header", "message_id"),
    [
        (b"Message-ID: <a@b>\r\n\r\n", "<a@b>"),
        (b"Subject: x\r\nMESSAGE-ID:<a@b> (note)\r\n\r\n", "<a@b>"),
        (b"Message-ID:\r\n <a@\r\n b>\r\nFrom: <c@d>\r\n\r\n", "<a@b>"),
        (b"Message-ID: bare@id \r\n\r\n", "<bare@id>"),
        (b"Message-ID: <\xe9@b>\r\n\r\n", "<\ufffd@b>"),
        (b"X-Message-ID: <a@b>\r\n\r\n", ""),
        (b"", ""),
    ],
)
def test_a_message_id_as_it_is_written(header: bytes, message_id: str) -> None:
    assert message_id_of(header) == message_id
