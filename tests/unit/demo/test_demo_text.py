"""The demo's sentences say the numbers they are given."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from io import StringIO
from pathlib import Path

from rich.console import Console, RenderableType

from triage.cli.demo_text import honesty, intro, invitation, model_cost, run_line
from triage.decide.cost import Price, PriceEntry
from triage.demo.address import Address
from triage.demo.cost import Estimate
from triage.demo.mails import sample_mails
from triage.demo.score import Score
from triage.domain.record import Run, RunState, Trigger

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ADDRESS = Address("127.0.0.1", 40143, "hello@harbourlane.example", "pass word")


def said(what: RenderableType) -> str:
    """The text on one line, as wide as it likes."""
    stream = StringIO()
    Console(file=stream, width=80).print(what)
    return " ".join(stream.getvalue().split())


def a_run(state: RunState = RunState.DONE, error: str | None = None, **counts: int) -> Run:
    end = NOON + timedelta(seconds=0.42)
    return Run("r1", "demo", Trigger.MANUAL, NOON, state, NOON, NOON, end, error=error, counts=counts)


def test_the_intro_counts_the_sample() -> None:
    text = said(intro(sample_mails(NOON)))
    assert "54 unsorted mails" in text
    assert "5 older ones" in text


def test_a_run_is_one_line_with_what_became_of_its_mails() -> None:
    line = said(run_line(1, a_run(selected=20, archived=9, below_floor=3, inherited=2)))
    assert line == "Run 1 20 mails: 9 archived, 3 unsure, 2 as their thread 0.4 s"


def test_a_failed_run_says_why() -> None:
    assert said(run_line(2, a_run(RunState.FAILED, "the server went away"))) == "Run 2 failed: the server went away"


def test_the_demo_owns_up_to_wrong_archives() -> None:
    text = said(honesty(Score(decided=54, labelled=40, right=33, archived=20, wrongly_archived=2)))
    assert "Of 54 mails 40 got a category, 33 of these the one a person would have chosen" in text
    assert "14 were left as unsure; 20 were archived, 2 of them wrongly" in text


def test_none_wrong_is_said_in_words() -> None:
    assert "20 were archived, none of them wrongly" in said(honesty(Score(54, 40, 33, 20, 0)))


def test_the_cost_of_a_model_names_model_price_and_day() -> None:
    price = PriceEntry("*", "jev-latest", Price(0.042), date(2026, 10, 1))
    text = said(model_cost(Estimate(21_500, 0.000903, 0.0167), "jev-latest", price))
    assert "about 21,500 tokens here: 0.0009 USD with jev-latest at 0.042 USD per million" in text
    assert "(price of 2026-10-01), that is 0.0167 USD per 1,000 mails." in text


def test_the_invitation_has_all_that_a_mail_client_asks_for() -> None:
    text = said(invitation(ADDRESS, Path("/tmp/triage-demo"), None))
    assert "127.0.0.1, port 40143, no TLS" in text
    assert "User hello@harbourlane.example" in text
    assert "Password pass word" in text
    assert "Dashboard" not in text


def test_the_dashboard_is_named_when_there_is_one() -> None:
    assert "Dashboard http://127.0.0.1:8025/" in said(invitation(ADDRESS, Path("x"), "http://127.0.0.1:8025/"))
