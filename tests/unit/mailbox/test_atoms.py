"""IMAP data as nested values: the same as imapclient reads, sooner; what is no data is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from imapclient.response_parser import parse_response

from triage.mailbox.atoms import MAX_DEPTH, values

words = st.sampled_from(
    [b"NIL", b"nil", b"0", b"007", b"2024", b"\\Seen", b"$Junk", b"Triage/x", b"BODY[HEADER.FIELDS (FROM TO)]<0>",
     b"[Gmail]/x", b"a]b", b"caf\xc3\xa9", b"-1", b"a+b=c"]
)  # fmt: skip
quoted = st.binary(max_size=12).map(lambda b: b'"' + b.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"')
odd_escapes = st.sampled_from([rb'"a\nb"', rb'"\x"', rb'"(\\)"', rb'"\""'])


def spelled(items: list[bytes]) -> bytes:
    return b"(" + b" ".join(items) + b")"


data = st.recursive(words | quoted | odd_escapes, lambda inner: st.lists(inner, max_size=5).map(spelled), max_leaves=30)


@given(st.lists(data, min_size=1, max_size=4))
def test_data_reads_as_imapclient_reads_it(items: list[bytes]) -> None:
    line = b" ".join(items)
    assert values([line]) == tuple(parse_response([line]))


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=4))
def test_literals_stand_where_they_were_sent(literals: list[bytes]) -> None:
    parts = [(b"%sBODY[%d] {%d}" % (b"" if n else b"1 (", n, len(data)), data) for n, data in enumerate(literals)]
    assert values([*parts, b" UID 7)"]) == tuple(parse_response([*parts, b" UID 7)"]))


@given(st.lists(st.binary(max_size=40) | st.tuples(st.binary(max_size=9), st.binary(max_size=9)), max_size=4))
def test_whatever_comes_is_read_or_refused(parts: list[object]) -> None:
    try:
        values(parts)
    except ValueError:
        return


@pytest.mark.parametrize(
    "parts",
    [
        [b"(a"],
        [b"a)"],
        [b'"a'],
        [b"BODY[1"],
        [b"a \x00 b"],
        [(b"x {3}", b"ab")],
        [(b"x", b"ab")],
        [7],
        [b"(" * (MAX_DEPTH + 1) + b")" * (MAX_DEPTH + 1)],
    ],
)
def test_what_is_no_data_is_refused(parts: list[object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        values(parts)


def test_a_line_of_many_backslashes_takes_no_time_to_refuse() -> None:
    with pytest.raises(ValueError, match="not IMAP data"):
        values([b'"' + b"\\" * 200_001])
