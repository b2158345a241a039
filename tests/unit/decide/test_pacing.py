"""How hard a server is asked: its own pauses, a backoff without them, and fewer retries while it struggles."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest
from decide_world import HandClock

from triage.decide.pacing import STRUGGLING, Pacing
from triage.decide.unpack import Garbled, TooBig, read_body


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def pacing(clock: HandClock) -> Pacing:
    return Pacing(clock, random.Random(7), longest_s=60)


def test_the_backoff_doubles_up_to_its_bound_and_is_spread_out(pacing: Pacing) -> None:
    for attempt, full in ((1, 0.5), (2, 1.0), (3, 2.0), (5, 8.0), (40, 8.0)):
        waits = {pacing.pause_s(attempt, None) for _ in range(50)}
        assert len(waits) > 40
        assert all(w is not None and full / 2 <= w <= full for w in waits)


def test_a_pause_is_never_shorter_than_asked(pacing: Pacing) -> None:
    waits = [pacing.pause_s(1, 5.0) for _ in range(50)]
    assert all(w is not None and 5 <= w <= 5.1 for w in waits)


def test_a_pause_over_the_longest_is_not_waited_for(pacing: Pacing) -> None:
    assert pacing.pause_s(1, 60.0) is not None
    assert pacing.pause_s(1, 61.0) is None
    pacing.failed(61.0)
    assert pacing.hold_s() == 0


def test_a_pause_holds_for_everybody_until_it_is_over(pacing: Pacing, clock: HandClock) -> None:
    pacing.failed(10.0)
    pacing.failed(2.0)
    assert 10 <= pacing.hold_s() <= 10.1
    clock.advance(9)
    assert 1 <= pacing.hold_s() <= 1.1
    clock.advance(1)
    assert pacing.hold_s() == 0


def test_failures_in_a_row_make_it_struggle_and_an_answer_ends_that(pacing: Pacing) -> None:
    for _ in range(STRUGGLING):
        assert not pacing.struggling
        pacing.failed(None)
    assert pacing.struggling
    pacing.up()
    assert not pacing.struggling


def test_a_server_that_says_when_to_come_back_is_not_struggling(pacing: Pacing) -> None:
    for _ in range(STRUGGLING * 2):
        pacing.failed(0.0)
    assert not pacing.struggling


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("", b"hello"),
        ("identity", b"hello"),
        ("gzip", gzip.compress(b"hello")),
        ("X-GZIP ", gzip.compress(b"hello")),
        ("deflate", zlib.compress(b"hello")),
    ],
)
def test_a_body_is_read_as_it_is_packed(encoding: str, data: bytes) -> None:
    assert read_body([data[:3], data[3:]], encoding, 5) == b"hello"


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_body_over_the_limit_is_given_up(encoding: str) -> None:
    data = b"x" * 2_000_000
    with pytest.raises(TooBig):
        read_body([gzip.compress(data) if encoding else data], encoding, 1 << 20)


def test_what_cannot_be_unpacked_says_so() -> None:
    with pytest.raises(Garbled):
        read_body([b"not packed at all"], "gzip", 100)
