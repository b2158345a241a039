"""Names on the wire."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.domain.errors import CommandRefused
from triage.mailbox.names import folder_of, keyword, mailbox_argument, mailbox_name, quoted


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40))
def test_a_mailbox_name_survives_the_wire(name: str) -> None:
    wire = mailbox_argument(name)
    assert wire.isascii()
    inner = wire[1:-1].replace(b'\\"', b'"').replace(b"\\\\", b"\\")
    assert mailbox_name(inner) == ("INBOX" if name.upper() == "INBOX" else name)


def test_a_name_beyond_ascii_is_modified_utf_7() -> None:
    assert mailbox_argument("Entwürfe & mehr") == b'"Entw&APw-rfe &- mehr"'


def test_a_name_that_is_no_utf_7_is_kept_as_it_is() -> None:
    assert mailbox_name(b"a&b\xff") == "a&bÿ"


@pytest.mark.parametrize("text", ["a\r\nb", "a\x00", "é"])
def test_what_a_quoted_string_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quoted"):
        quoted(text)


def test_quotes_and_backslashes_are_escaped() -> None:
    assert quoted('a"b\\c') == b'"a\\"b\\\\c"'


@pytest.mark.parametrize("label", ["Triage/action-required", "a", "x" * 50, "A.b_c-9"])
def test_labels_that_every_server_keeps(label: str) -> None:
    assert keyword(label) == label.encode()


@pytest.mark.parametrize("label", ["", "two words", "é", "a%", "x" * 51, "a]", "\\Seen", "a\r\nb", "a)"])
def test_labels_that_servers_mangle_are_refused(label: str) -> None:
    with pytest.raises(CommandRefused, match="IMAP keyword"):
        keyword(label)


@pytest.mark.parametrize(
    ("label", "prefix", "delimiter", "folder"),
    [
        ("Triage/news", "", "/", "Triage/news"),
        ("Triage/news", "INBOX.", ".", "INBOX.Triage.news"),
        ("My.Mail/news", "INBOX.", ".", "INBOX.My-Mail.news"),
        ("Triage/news", "", "", "Triage-news"),
        ("news", "INBOX/", "/", "INBOX/news"),
    ],
)
def test_a_label_as_a_folder(label: str, prefix: str, delimiter: str, folder: str) -> None:
    assert folder_of(label, prefix, delimiter) == folder
