"""Sums by day: nothing is left out or counted twice, and what is long past is counted once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from services.ledger import HandClock
from triage.web.daily import KEEP_S, DailySums
from triage.web.sums import BINS, CategorySums, Sums, merged, of_plain, to_plain

NOW = datetime(2026, 11, 30, 15, 20, tzinfo=UTC)
EVERY = timedelta(hours=1)


class Book:
    """A decision every hour on the hour; remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[datetime, datetime]] = []

    def __call__(self, account: str, since: datetime, until: datetime) -> Sums:
        self.asked.append((since, until))
        first = since.replace(minute=0, second=0, microsecond=0)
        hours = (first + n * EVERY for n in range(int((until - first) / EVERY) + 2))
        return Sums(decisions=sum(since <= hour < until for hour in hours))


class Shelf:
    """The ledger's shelf as a fake: what is put there is kept as JSON would keep it."""

    def __init__(self) -> None:
        self.days: dict[tuple[str, date], str] = {}

    def sums_of_day(self, account: str, day: date) -> Mapping[str, Any] | None:
        kept = self.days.get((account, day))
        return None if kept is None else json.loads(kept)

    def keep_sums_of_day(self, account: str, day: date, sums: Mapping[str, Any]) -> None:
        self.days[account, day] = json.dumps(sums)


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def clock() -> HandClock:
    return HandClock(NOW)


@pytest.mark.parametrize("days", [1, 2, 7, 30])
def test_the_days_add_up_to_the_whole(book: Book, clock: HandClock, days: int) -> None:
    period = DailySums(clock, book, Shelf).period("team", NOW - timedelta(days=days), NOW)
    assert period.total.decisions == 24 * days
    assert sorted(period.by_day) == [date(2026, 11, 30) - timedelta(days=n) for n in range(days, -1, -1)]
    assert period.by_day[date(2026, 11, 30)].decisions == 16


def test_only_the_first_piece_today_and_yesterday_are_counted_again(book: Book, clock: HandClock) -> None:
    daily = DailySums(clock, book, Shelf)
    since = NOW - timedelta(days=10)
    first = daily.period("team", since, NOW)
    asked, book.asked = len(book.asked), []
    assert daily.period("team", since, NOW) == first
    assert (asked, len(book.asked)) == (11, 3)
    assert [begin.date().day for begin, _ in book.asked] == [20, 29, 30]


def test_accounts_do_not_share_their_days(book: Book, clock: HandClock) -> None:
    daily = DailySums(clock, book, Shelf)
    for account in ("a", "b"):
        daily.period(account, NOW - timedelta(days=10), NOW)
    assert len(book.asked) == 22


def test_a_day_is_counted_anew_after_some_hours(book: Book, clock: HandClock) -> None:
    """A message archived late, one that was forgotten: in the end the page says so."""
    daily = DailySums(clock, book, Shelf)
    daily.period("team", NOW - timedelta(days=10), NOW)
    clock.advance(timedelta(seconds=KEEP_S))
    book.asked.clear()
    daily.period("team", NOW - timedelta(days=10), NOW)
    assert len(book.asked) == 11


def test_sums_of_parts_are_the_sums_of_the_whole() -> None:
    bins = [0] * BINS
    bins[3] = 2
    part = Sums(
        decisions=3, archived=1, answered=2, cost_usd=0.5, categories={"x": CategorySums(labelled=3, bins=bins)},
        providers={"embedded": (2, 10, 0.5)},
    )  # fmt: skip
    other = Sums(decisions=1, categories={"y": CategorySums(named=1)}, providers={"embedded": (1, 5, 0.25)})
    whole = merged([part, other, part])
    assert (whole.decisions, whole.archived, whole.answered, whole.cost_usd) == (7, 2, 4, 1.0)
    assert (whole.categories["x"].labelled, whole.categories["x"].bins[3], whole.categories["y"].named) == (6, 4, 1)
    assert whole.providers == {"embedded": (5, 25, 1.25)}
    assert part.categories["x"].bins[3] == 2


def test_what_one_daemon_counted_the_next_one_shows_at_once_and_then_counts_anew(book: Book, clock: HandClock) -> None:
    shelf, since = Shelf(), NOW - timedelta(days=10)
    first = DailySums(clock, book, lambda: shelf).period("team", since, NOW)
    book.asked = []
    next_one = DailySums(clock, book, lambda: shelf)
    assert next_one.period("team", since, NOW) == first
    assert len(book.asked) == 3
    assert next_one.period("team", since, NOW) == first
    assert len(book.asked) == 3 + 11
    next_one.period("team", since, NOW)
    assert len(book.asked) == 3 + 11 + 3


def test_sums_that_another_version_kept_are_counted_anew(book: Book, clock: HandClock) -> None:
    shelf, since = Shelf(), NOW - timedelta(days=10)
    first = DailySums(clock, book, lambda: shelf).period("team", since, NOW)
    shelf.days = {key: kept.replace("inherited", "handed_down") for key, kept in shelf.days.items()}
    assert DailySums(clock, book, lambda: shelf).period("team", since, NOW) == first
    shelf.days = dict.fromkeys(shelf.days, '{"decisions": 7}')
    assert DailySums(clock, book, lambda: shelf).period("team", since, NOW) == first


def test_sums_are_kept_to_the_last_figure() -> None:
    categories = {"a": CategorySums(1, 2, 3, 4, 5, [6] * BINS)}
    full = Sums(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0.1, 12, categories, {"p": (1, 2, 0.3)})
    assert of_plain(json.loads(json.dumps(to_plain(full)))) == full
