"""Cron lines, checked against the scheduler that will fire them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from apscheduler.triggers.cron import CronTrigger
from hypothesis import given
from hypothesis import strategies as st

from triage.config.cron import parse_cron

START = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)  # a Monday


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("*/5 * * * *", "*/5 * * * *"),
        ("  0   9-17/2 * JAN,mar  * ", "0 9-17/2 * jan,mar *"),
        ("0 9 * * 1-5", "0 9 * * mon,tue,wed,thu,fri"),
        ("0 9 * * 0", "0 9 * * sun"),
        ("0 9 * * 7", "0 9 * * sun"),
        ("0 9 * * 5-7", "0 9 * * sun,fri,sat"),
        ("0 9 * * fri-sun", "0 9 * * sun,fri,sat"),
        ("0 9 * * Mon-Fri", "0 9 * * mon,tue,wed,thu,fri"),
        ("0 9 * * */2", "0 9 * * sun,tue,thu,sat"),
        ("0 0 29 2 *", "0 0 29 2 *"),
    ],
)
def test_a_cron_line_gets_one_spelling(written: str, means: str) -> None:
    assert parse_cron(written) == means
    assert parse_cron(means) == means


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("", "needs five fields"),
        ("* * * * * *", "not 6"),
        ("@hourly", "needs five fields"),
        ("60 * * * *", "has 60 as minute; it goes from 0 to 59"),
        ("* 24 * * *", "has 24 as hour"),
        ("* * 0 * *", "has 0 as day of the month; it goes from 1 to 31"),
        ("* * * 13 *", "has 13 as month"),
        ("* * * * 8", "has 8 as weekday"),
        ("*/0 * * * *", "leads nowhere"),
        ("*/60 * * * *", "leads nowhere"),
        ("5-5/2 * * * *", "leads nowhere"),
        ("30-10 * * * *", "counts backwards in the minute (30-10)"),
        ("five * * * *", "is not understood (five)"),
        ("1,,2 * * * *", "is not understood ()"),
        ("-1 * * * *", "is not understood"),
        ("٣ * * * *", "is not understood"),
        ("* * 30 2 *", "never fires"),
        ("* * 31 4,6 *", "never fires"),
        ("* * 1 * mon", "restricts both the day of the month and the weekday"),
    ],
)
def test_a_line_that_cannot_fire_as_meant_is_refused(written: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_cron(written)
    assert said in str(caught.value)


def test_weekday_numbers_mean_the_same_to_the_scheduler() -> None:
    """APScheduler counts 0 as Monday; names leave no room for that."""
    trigger = CronTrigger.from_crontab(parse_cron("0 9 * * 1"), timezone=UTC)
    fire = trigger.get_next_fire_time(None, START)
    assert fire == datetime(2026, 12, 7, 9, 0, tzinfo=UTC)
    assert fire.strftime("%a") == "Mon"


def spans(low: int, high: int) -> st.SearchStrategy[str]:
    point = st.integers(low, high)
    pair = st.tuples(point, point).map(sorted)
    return st.one_of(
        st.just("*"),
        st.integers(1, high - low).map(lambda n: f"*/{n}"),
        point.map(str),
        pair.map(lambda p: f"{p[0]}-{p[1]}"),
        st.lists(point, min_size=1, max_size=4).map(lambda ps: ",".join(map(str, ps))),
    )


@given(
    minute=spans(0, 59),
    hour=spans(0, 23),
    weekday=st.one_of(st.just("*"), st.lists(st.integers(0, 7), min_size=1, max_size=3)),
)
def test_whatever_is_accepted_fires_in_the_scheduler_on_the_days_cron_means(
    minute: str, hour: str, weekday: str | list[int]
) -> None:
    days = "*" if isinstance(weekday, str) else ",".join(map(str, weekday))
    trigger = CronTrigger.from_crontab(parse_cron(f"{minute} {hour} * * {days}"), timezone=UTC)
    fire = trigger.get_next_fire_time(None, START)
    assert fire is not None
    assert fire - START <= timedelta(days=8)
    if not isinstance(weekday, str):
        assert fire.isoweekday() % 7 in {day % 7 for day in weekday}
