"""UID sets: short, cut by length, read with a bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triage.mailbox import sets

UIDS = st.sets(st.integers(1, 4_294_967_295), max_size=300)


@given(UIDS, st.integers(25, 500))
def test_the_pieces_hold_every_uid_once_and_fit(uids: set[int], room: int) -> None:
    pieces = list(sets.chunks(uids, room))
    assert [uid for _, members in pieces for uid in members] == sorted(uids)
    assert all(len(text) <= room for text, _ in pieces)
    assert [uid for text, _ in pieces for uid in sets.parse(text)] == sorted(uids)


def test_neighbours_become_ranges() -> None:
    assert [text for text, _ in sets.chunks([7, 3, 2, 1, 2])] == ["1:3,7"]
    assert list(sets.chunks([])) == []


def test_a_set_is_read_in_the_order_it_is_written() -> None:
    """COPYUID pairs two sets by position (RFC 4315, 3)."""
    assert sets.parse("9,3:5,2") == [9, 3, 4, 5, 2]
    assert sets.parse("5:3") == [5, 4, 3]


@pytest.mark.parametrize("text", ["", "a", "1:", ":2", "1:*", "1,,2", "1 2", "-1", "١"])
def test_what_is_no_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="set"):
        sets.parse(text)


def test_a_set_of_billions_is_refused_before_it_is_made() -> None:
    with pytest.raises(ValueError, match="too many"):
        sets.parse("1:4294967295")
