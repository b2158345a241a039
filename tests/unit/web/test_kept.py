"""Answers that are kept: found once, renewed behind the asker's back, never asked for twice at a time."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from services.ledger import HandClock
from support.premises import wait_until
from triage.web.kept import Kept, TooSlow


class Counter:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        return self.calls


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def kept(clock: HandClock) -> Kept:
    return Kept(clock)


def test_an_answer_is_found_once_while_it_is_fresh(kept: Kept, clock: HandClock) -> None:
    find = Counter()
    seen = [kept.look("key", find, 30.0).value for _ in range(3)]
    assert (seen, find.calls) == ([1, 1, 1], 1)
    assert kept.look("other key", find, 30.0).value == 2


def test_an_old_answer_is_given_at_once_and_renewed_for_the_next(kept: Kept, clock: HandClock) -> None:
    find = Counter()
    first = kept.look("key", find, 30.0)
    clock.advance(timedelta(seconds=31))
    assert kept.look("key", find, 30.0) == first
    wait_until(lambda: find.calls == 2)
    wait_until(lambda: kept.look("key", find, 30.0).value == 2)
    assert kept.look("key", find, 30.0).at == clock.now()


def test_looking_anew_waits_for_an_answer_that_is_not_old(kept: Kept, clock: HandClock) -> None:
    find = Counter()
    kept.look("key", find, 30.0)
    clock.advance(timedelta(seconds=31))
    assert kept.look_anew("key", find, 30.0, patience_s=10).value == 2


def test_whoever_asks_during_a_search_shares_its_answer(kept: Kept) -> None:
    go, find = threading.Event(), Counter()

    def slow() -> int:
        go.wait(10)
        return find()

    answers: list[int] = []
    askers = [threading.Thread(target=lambda: answers.append(kept.look("key", slow, 30.0).value)) for _ in range(5)]
    for asker in askers:
        asker.start()
    go.set()
    for asker in askers:
        asker.join()
    assert (answers, find.calls) == ([1] * 5, 1)


def test_patience_ends_and_the_search_goes_on(kept: Kept) -> None:
    go = threading.Event()
    with pytest.raises(TooSlow):
        kept.look("key", lambda: go.wait(10), 30.0, patience_s=0.01)
    go.set()
    assert kept.look("key", lambda: False, 30.0).value is True


def test_an_error_takes_the_place_of_an_old_answer(kept: Kept, clock: HandClock) -> None:
    """What cannot be renewed must not go on looking well."""
    answers = iter([1])

    def find() -> int:
        for answer in answers:
            return answer
        raise RuntimeError("gone")

    assert kept.look("key", find, 30.0).value == 1
    clock.advance(timedelta(seconds=31))
    with pytest.raises(RuntimeError, match="gone"):
        kept.look_anew("key", find, 30.0, patience_s=10)
    with pytest.raises(RuntimeError, match="gone"):
        kept.look("key", find, 30.0)


def test_a_long_search_is_followed_by_a_longer_rest(clock: HandClock) -> None:
    kept, find = Kept(clock, rest=20.0), Counter()

    def long() -> int:
        clock.advance(timedelta(seconds=3))
        return find()

    kept.look("key", long, 30.0)
    clock.advance(timedelta(seconds=59))
    assert kept.look_anew("key", long, 30.0, patience_s=10).value == 1
    clock.advance(timedelta(seconds=2))
    assert kept.look_anew("key", long, 30.0, patience_s=10).value == 2


def test_the_answer_asked_for_least_lately_is_given_up(clock: HandClock) -> None:
    kept, find = Kept(clock, most=2), Counter()
    for key in ("a", "b", "a", "c"):
        kept.look(key, find, 30.0)
    assert kept.look("a", find, 30.0).value == 1
    assert kept.look("b", find, 30.0).value == 4
