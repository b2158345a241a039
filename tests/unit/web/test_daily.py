"""Sums by day: nothing is left out or counted twice, and what is long past is counted once."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from services.ledger import HandClock
from triage.web.daily import KEEP_S, DailySums
from triage.web.sums import BINS, CategorySums, Sums, merged

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


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def clock() -> HandClock:
    return HandClock(NOW)


@pytest.mark.parametrize("days", [1, 2, 7, 30])
def test_the_days_add_up_to_the_whole(book: Book, clock: HandClock, days: int) -> None:
    period = DailySums(clock, book).period("team", NOW - timedelta(days=days), NOW)
    assert period.total.decisions == 24 * days
    assert sorted(period.by_day) == [date(2026, 11, 30) - timedelta(days=n) for n in range(days, -1, -1)]
    assert period.by_day[date(2026, 11, 30)].decisions == 16


def test_only_the_first_piece_today_and_yesterday_are_counted_again(book: Book, clock: HandClock) -> None:
    daily = DailySums(clock, book)
    since = NOW - timedelta(days=10)
    first = daily.period("team", since, NOW)
    asked, book.asked = len(book.asked), []
    assert daily.period("team", since, NOW) == first
    assert (asked, len(book.asked)) == (11, 3)
    assert [begin.date().day for begin, _ in book.asked] == [20, 29, 30]


def test_accounts_do_not_share_their_days(book: Book, clock: HandClock) -> None:
    daily = DailySums(clock, book)
    for account in ("a", "b"):
        daily.period(account, NOW - timedelta(days=10), NOW)
    assert len(book.asked) == 22


def test_a_day_is_counted_anew_after_some_hours(book: Book, clock: HandClock) -> None:
    """A message archived late, one that was forgotten: in the end the page says so."""
    daily = DailySums(clock, book)
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
