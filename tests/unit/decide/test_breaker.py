"""When a provider is not asked any more, and when it is asked again."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from triage.decide.breaker import BreakerState, load_state
from triage.domain.decision import Failure, FailureKind

NOW = datetime(2026, 3, 3, 12, 0, tzinfo=UTC)


def failure(kind: FailureKind, code: str = "x") -> Failure:
    return Failure("systemone", kind, code, f"Because of {code}.")


BUSY = failure(FailureKind.TRANSIENT)


def after(*results: Failure | None, start: BreakerState | None = None) -> BreakerState:
    state = start or BreakerState()
    for result in results:
        state = state.after(result, NOW)
    return state


def test_three_transient_failures_in_a_row_open_it() -> None:
    assert not after(BUSY, BUSY).open
    assert after(BUSY, BUSY, BUSY).open


@pytest.mark.parametrize("kind", [None, FailureKind.MESSAGE, FailureKind.UNUSABLE])
def test_an_answer_of_any_kind_begins_the_count_anew(kind: FailureKind | None) -> None:
    """A server that refuses one mail is a server that is up."""
    between = failure(kind) if kind else None
    assert not after(BUSY, BUSY, between, BUSY, BUSY).open


def test_refused_messages_never_open_it() -> None:
    assert after(*[failure(FailureKind.MESSAGE)] * 50) == BreakerState()


def test_a_configuration_error_opens_it_at_once_with_its_sentence() -> None:
    state = after(failure(FailureKind.CONFIGURATION, "out_of_credit"))
    assert (state.open, state.code, state.message) == (True, "out_of_credit", "Because of out_of_credit.")
    assert state.since == "2026-03-03T12:00:00+00:00"


def test_a_server_that_asks_for_a_long_pause_gets_it() -> None:
    assert after(failure(FailureKind.TRANSIENT, "retry_later")).open


def test_a_wait_that_we_ended_ourselves_does_not_count() -> None:
    stopped = failure(FailureKind.TRANSIENT, "stopped")
    assert after(BUSY, BUSY, stopped, stopped) == after(BUSY, BUSY)


def test_a_failed_probe_keeps_it_open_since_the_same_time_with_the_newest_reason() -> None:
    opened = after(failure(FailureKind.CONFIGURATION, "unauthorized"))
    again = opened.after(failure(FailureKind.TRANSIENT, "timeout"), datetime(2026, 3, 4, tzinfo=UTC))
    assert (again.open, again.since, again.code, again.probes) == (True, opened.since, "timeout", 1)


def test_a_probe_that_is_answered_closes_it() -> None:
    assert after(BUSY, BUSY, BUSY, None) == BreakerState()


def test_it_survives_a_restart() -> None:
    state = after(BUSY, BUSY, failure(FailureKind.CONFIGURATION))
    assert load_state(json.loads(json.dumps(state.to_json()))) == state


@pytest.mark.parametrize("value", [None, {}, {"open": "yes"}, {"failures": None}, {"other": 1}, {"failures": True}])
def test_a_state_that_another_version_wrote_is_a_closed_one(value: dict[str, object] | None) -> None:
    assert load_state(value) == BreakerState()
