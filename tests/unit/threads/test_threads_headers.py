"""Header blocks in, thread headers out: what is read, and that nothing breaks or stalls it."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from triage.threads.addresses import normalise_address
from triage.threads.headers import ThreadHeaders, read_thread_headers
from triage.threads.message_ids import MAX_ID_CHARS, MAX_PARENTS, read_ids

MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    ("field", "authors"),
    [
        (b"Dana <dana@example.com>", ("dana@example.com",)),
        (b'"boss@corp.example" <eve@x.example>', ("eve@x.example",)),
        (b"boss@corp.example <eve@x.example>", ("eve@x.example",)),
        (b"=?utf-8?q?Boss_=3Cboss=40corp=2Eexample=3E?= <eve@x.example>", ("eve@x.example",)),
        (b"eve@x.example (boss@corp.example)", ("eve@x.example",)),
        (b'"Boss \\" <boss@corp.example>" <eve@x.example>', ("eve@x.example",)),
        (b'"boss@corp.example" <>', ()),
        (b"<boss@corp.example> <eve@x.example>", ("boss@corp.example", "eve@x.example")),
        (b"<a@x.example> <b@x.example>, c@x.example", ("a@x.example", "b@x.example", "c@x.example")),
        (b"boss@corp.example, <eve@x.example>", ("boss@corp.example", "eve@x.example")),
        (b"boss@corp.example: eve@x.example;", ("boss@corp.example", "eve@x.example")),
        (b'"boss@corp.example <eve@x.example>', ("boss@corp.example", "eve@x.example")),
        (b"(boss@corp.example <eve@x.example>", ("boss@corp.example", "eve@x.example")),
        (b"<boss@corp.example@x.example>", ("boss@corp.example@x.example",)),
        (b"Doe, John <john@example.com>", ("john@example.com",)),
        (b"<@relay.example:dana@example.com>", ("dana@example.com",)),
        (b"Team: a@example.com, b@example.com;", ("a@example.com", "b@example.com")),
        (b"undisclosed-recipients:;", ()),
        (b"DANA@EXAMPLE.COM.", ("dana@example.com",)),
        (b"Dana\r\n <dana@example.com>", ("dana@example.com",)),
        (b'"dana"@example.com', ('"dana"@example.com',)),
        (b"dana", ()),
        (b"", ()),
    ],
)
def test_the_author_is_the_address_and_never_the_display_name(field: bytes, authors: tuple[str, ...]) -> None:
    read = read_thread_headers(b"From: " + field + b"\r\n\r\n")
    assert read.authors == authors
    assert read.sender == (authors[0] if len(authors) == 1 else "")


def test_letters_outside_ascii_are_not_folded_into_ascii() -> None:
    """The Kelvin sign folds to k and sharp s to ss in Unicode: an address must not become another one."""
    assert normalise_address("\u212aim@example.com") != normalise_address("kim@example.com")
    assert normalise_address("stra\u00dfe@example.com") != normalise_address("strasse@example.com")


@pytest.mark.parametrize(
    ("value", "ids"),
    [
        ("<a@x>", ("<a@x>",)),
        ("<A@x> <a@x>", ("<A@x>", "<a@x>")),
        ("<a@x><b@x>,<c@x>", ("<a@x>", "<b@x>", "<c@x>")),
        ("joe@x wrote in <a@x>", ("<a@x>",)),
        ("(<c@x>) <a@x>", ("<a@x>",)),
        ("(<c@x>)", ("<c@x>",)),
        ("joe@x (<c@x>)", ("<c@x>",)),
        ("=?us-ascii?Q?=3Cp=40exam?= =?utf-8?B?cGxlLmNvbT4=?=", ("<p@example.com>",)),
        ("a@x.", ("<a@x>",)),
        ("<a@\nx>", ("<a@x>",)),
        ("<a b@x>", ("<a b@x>",)),
        ("<12345>", ("<12345>",)),
        ("<no message id>", ()),
        ("<> < > <\n>", ()),
        ("<" + "a" * MAX_ID_CHARS + "@x>", ()),
        ("<a\x07@x>", ()),
        ("@ @@ nothing", ()),
        ('<"a(b"@x>', ('<"a(b"@x>',)),
    ],
)
def test_ids_are_read_from_every_spelling(value: str, ids: tuple[str, ...]) -> None:
    assert read_ids(value) == ids


def test_of_many_parents_the_nearest_and_the_root_are_kept() -> None:
    ids = [f"<{n}@x>" for n in range(321)]
    parents = read_thread_headers(b"References: " + "\r\n\t".join(ids).encode() + b"\r\n").parents
    assert len(parents) == MAX_PARENTS
    assert parents[:3] == ("<320@x>", "<319@x>", "<318@x>")
    assert parents[-1] == "<0@x>"


def test_a_field_too_long_to_read_keeps_both_its_ends() -> None:
    ids = [f"<{n}.{'x' * 80}@x>" for n in range(5_000)]
    parents = read_thread_headers(b"References: " + " ".join(ids).encode() + b"\r\n").parents
    assert parents[0] == ids[-1]
    assert parents[-1] == ids[0]
    assert set(parents) <= set(ids), "an id cut in two was taken for one"


@pytest.mark.parametrize(
    ("block", "automated"),
    [
        (b"From: dana@example.com\r\n", False),
        (b"Auto-Submitted: no\r\n", False),
        (b"Auto-Submitted: auto-generated; owner-email=x\r\n", True),
        (b"Precedence: BULK\r\n", True),
        (b"Precedence: first-class\r\n", False),
        (b"List-Unsubscribe: <mailto:x@y.example>\r\n", True),
        (b"List-Id: Dev <dev.lists.example>\r\n", True),
        (b"From: Shop <No-Reply@shop.example>\r\n", True),
        (b"From: donotreply+1@shop.example\r\n", True),
        (b"From: noel@shop.example\r\n", False),
    ],
)
def test_machines_are_known_by_their_fields_and_their_address(block: bytes, automated: bool) -> None:
    assert read_thread_headers(block + b"\r\n").automated is automated


@pytest.mark.parametrize(
    ("value", "list_id"),
    [
        (b"Dev <Dev.Lists.Example>", "dev.lists.example"),
        (b"dev.lists.example", "dev.lists.example"),
        (b"Dev\r\n <dev.\r\n lists.example>", "dev.lists.example"),
        (b"two words", ""),
        (b"<>", ""),
    ],
)
def test_the_list_is_named_by_its_identifier(value: bytes, list_id: str) -> None:
    assert read_thread_headers(b"List-Id: " + value + b"\r\n").list_id == list_id


def test_a_bare_carriage_return_ends_a_line() -> None:
    read = read_thread_headers(b"X-A: b\rIn-Reply-To: <p@x>\r\rReferences: <q@x>\r")
    assert read.parents == ("<p@x>",)


@pytest.mark.parametrize("word", [b"=?utf-7?q?+2AA-?=", b"=?unicode_escape?b?XHVkODAw?=", b"=?hex?q?zz?="])
def test_no_charset_brings_a_lone_surrogate_or_an_error(word: bytes) -> None:
    read_thread_headers(b"Subject: " + word + b"\r\n").subject.encode("utf-8")


def test_a_subject_is_not_shown_by_repr() -> None:
    assert "secret" not in repr(read_thread_headers(b"Subject: secret plan\r\n"))


NAMES = (b"From", b"Message-ID", b"In-Reply-To", b"References", b"Subject", b"List-Id", b"Precedence")
HOSTILE = (
    b"<", b">", b"(", b")", b'"', b"\\", b"=?", b"?=", b"=?a?q?", b"=?utf-8?B?", b"a@", b"@", b",", b":", b";", b" ",
    b"\t", b"[a] ", b"re:", b"<a@b>", b"(<", b"<(", b'"\\', b"\n ", b"\r\n\t<", b"\xff", b"\0", b"=?utf-7?q?+2AA-?=",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=bytes.decode)
def test_a_megabyte_of_anything_is_read_in_under_a_second(name: bytes) -> None:
    """Twenty-eight patterns that make careless expressions backtrack; generous, as the machine may be shared."""
    for pattern in HOSTILE:
        block = name + b": " + pattern * (MEGABYTE // len(pattern)) + b"\r\n\r\n"
        started = time.process_time()
        read_thread_headers(block)
        assert time.process_time() - started < 1.0, pattern


def test_half_a_million_fields_are_read_in_under_two_seconds() -> None:
    started = time.process_time()
    read_thread_headers(b"From: a@b\n" * 200_000)
    read_thread_headers(b"a:b\n" * 500_000)
    assert time.process_time() - started < 2.0


pieces = st.one_of(
    st.binary(max_size=30),
    st.sampled_from([*HOSTILE, *(b"\r\n" + n + b": " for n in NAMES), b"<p@example.com>", b"=?utf-16?B?2AA=?="]),
)


@given(st.lists(pieces, max_size=60).map(b"".join))
@settings(max_examples=300, deadline=None)
@example(b"From: =?utf-8?q?=ED=A0=80?= <a@b>\r\nMessage-ID: =?utf-16?B?2AA=?= <\xed\xa0\x80@x>\r\n")
def test_no_bytes_raise_or_leave_the_bounds(block: bytes) -> None:
    """Whatever comes: a bounded value whose every string is valid UTF-8, ids in brackets, never its own parent."""
    read = read_thread_headers(block)
    assert isinstance(read, ThreadHeaders)
    assert len(read.parents) <= MAX_PARENTS
    assert len(set(read.parents)) == len(read.parents)
    assert read.message_id not in read.parents or not read.message_id
    for i in (*read.parents, *filter(None, (read.message_id,))):
        assert i.startswith("<")
        assert i.endswith(">")
        assert 2 < len(i) <= MAX_ID_CHARS + 2
    assert not any(c.isspace() for author in read.authors for c in author)
    for text in (read.message_id, *read.parents, *read.authors, read.list_id, read.subject):
        text.encode("utf-8")


local = st.text("abcXYZ019.+=_-", min_size=1, max_size=20)


@given(st.lists(st.tuples(local, local), min_size=1, max_size=12, unique=True), st.integers(1, 4))
@settings(max_examples=300, deadline=None)
def test_ids_written_by_the_book_come_back_exactly(ids: list[tuple[str, str]], per_line: int) -> None:
    """RFC 5322 References, folded anywhere between ids, return in order, nearest first."""
    written = [f"<{a}@{b}>" for a, b in ids]
    lines = [" ".join(written[n : n + per_line]) for n in range(0, len(written), per_line)]
    block = ("Message-ID: <own id@x>\r\nReferences: " + "\r\n ".join(lines) + "\r\n\r\n").encode()
    assert read_thread_headers(block).parents == tuple(reversed(written))


@given(st.text(max_size=40), local)
@settings(max_examples=200, deadline=None)
def test_no_display_name_makes_somebody_else_the_sender(name: str, who: str) -> None:
    """A quoted display name, whatever it holds, leaves the bracketed address as the one author."""
    quoted = name.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "").replace("\n", "")
    block = f'From: "{quoted}" <{who}@x.example>\r\n\r\n'.encode("utf-8", "replace")
    assert read_thread_headers(block).sender == f"{who}@x.example".lower()
