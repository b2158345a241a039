"""Health is judged from mailbox and ledger: a service that stands still never looks fine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from triage.domain.record import Run, RunState, Trigger
from triage.report.health import AccountHealth, Look, Schedule, judge_health

NOW = datetime(2026, 11, 30, 12, 2, tzinfo=UTC)
FIVE = timedelta(minutes=5)
FIRED = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def run(state: RunState, ago: timedelta = FIVE, reason: str | None = None) -> Run:
    return Run("r", "team", Trigger.SCHEDULE, NOW - ago, state, NOW - ago, finished_at=NOW - ago, reason=reason)


DONE = run(RunState.DONE)


def health(**changes: Any) -> AccountHealth:
    schedule = {"enabled": True, "interval": FIVE, "due": None, "fired": FIRED}
    schedule.update({k: changes.pop(k) for k in list(changes) if k in schedule})
    look = {"at": NOW, "oldest_unlabelled": None, "error": None}
    look.update({k: changes.pop(k) for k in list(changes) if k in look})
    told: dict[str, Any] = {"runs": [DONE], "look": Look(**look), "queue_depth": 0, "breakers": {}, "now": NOW}
    return judge_health("team", schedule=Schedule(**schedule), **(told | changes))


def test_a_service_that_works_is_healthy() -> None:
    assert health().healthy
    assert health(oldest_unlabelled=NOW - timedelta(minutes=15)).healthy
    assert health(runs=[run(RunState.FAILED, reason="cut"), DONE]).healthy


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"oldest_unlabelled": NOW - timedelta(minutes=16)}, "waited 16 min"),
        ({"oldest_unlabelled": NOW - timedelta(days=9)}, "waited 9 days"),
        ({"fired": None}, "never fired"),
        ({"fired": FIRED - FIVE, "due": FIRED}, "fire of 2026-11-30 12:00 UTC is missing"),
        ({"runs": []}, "no run has finished yet"),
        ({"runs": [run(RunState.DONE, timedelta(minutes=18))]}, "last finished run was at 2026-11-30 11:44"),
        ({"runs": [run(RunState.RUNNING), run(RunState.DONE, timedelta(hours=3))]}, "last finished run was at"),
        ({"error": "account team: no route"}, "no route"),
        ({"runs": [run(RunState.FAILED, reason="login_refused"), DONE]}, "latest run failed (login_refused)"),
        ({"runs": [run(RunState.FAILED, reason="keywords_refused"), DONE]}, "latest run failed (keywords_refused)"),
    ],
)
def test_what_makes_it_unhealthy(changes: dict[str, Any], told: str) -> None:
    found = health(**changes)
    assert not found.healthy
    assert told in " ".join(found.problems)


def test_trouble_names_the_failure_that_may_explain_it() -> None:
    runs = [run(RunState.FAILED, reason="unreachable"), run(RunState.DONE, timedelta(hours=1))]
    assert "latest run failed (unreachable)" in " ".join(health(runs=runs).problems)


def test_an_account_that_is_switched_off_is_never_unhealthy() -> None:
    assert health(enabled=False, fired=None, runs=[], oldest_unlabelled=NOW - timedelta(days=9)).healthy


def test_a_message_dated_in_the_future_has_waited_for_no_time() -> None:
    assert health(oldest_unlabelled=NOW + timedelta(days=1)).oldest_age_s == 0


def test_a_message_has_waited_until_the_mailbox_was_looked_into() -> None:
    seen = NOW - timedelta(minutes=4)
    assert health(at=seen, oldest_unlabelled=seen - timedelta(minutes=14)).healthy
    assert not health(at=seen, oldest_unlabelled=seen - timedelta(minutes=16)).healthy
