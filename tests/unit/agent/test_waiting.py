"""The budget of a wait, to the millisecond: slots, polls, calls, resumption, clocks that jump."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.mail_tool import LINK, Bench
from triage.agent.slots import slots
from triage.domain.errors import LoginRefused, MailboxBusy, MailboxLost


def poll_times(bench: Bench) -> list[int]:
    receipts = bench.ledger.receipts(limit=100)
    return [int(str(p["at_ms"])) for r in reversed(receipts) if r.call == "wait" for p in r.polls]


def test_intervals_grow_and_the_last_look_is_as_late_as_it_can_be() -> None:
    assert slots(45_000, [1, 2, 4, 8, 8], 1_000, 20) == (1_000, 3_000, 7_000, 15_000, 23_000, 31_000, 39_000, 44_000)


def test_forty_five_seconds_nine_polls_every_five() -> None:
    assert slots(45_000, [5], 1_000, 9) == (5_000, 10_000, 15_000, 20_000, 25_000, 30_000, 35_000, 40_000, 44_000)


def test_three_seconds_left_never_wait_for_an_interval_of_eight() -> None:
    assert slots(3_000, [8], 1_000, 9) == (2_000,)


def test_few_polls_keep_the_first_ones_and_the_last() -> None:
    assert slots(45_000, [1, 2, 4, 8, 8], 1_000, 3) == (1_000, 3_000, 44_000)
    assert slots(45_000, [1, 2, 4, 8, 8], 1_000, 1) == (44_000,)


def test_a_whole_wait_polls_exactly_as_agreed(bench_of: Callable[..., Bench]) -> None:
    """45 s, 9 polls, every 5 s: nine looks, over two calls of at most 25 s, and a timeout that says why."""
    bench = bench_of(runs__intervals=[5])
    run = bench.open()
    result = bench.wait_out(run, deadline_seconds=45, max_polls=9, poll_interval_seconds=5)
    assert (result.state, result.reason, result.polls_used, result.polls_remaining) == (
        "timeout",
        "no_message_yet",
        9,
        0,
    )
    assert poll_times(bench) == [5_000, 10_000, 15_000, 20_000, 25_000, 30_000, 35_000, 40_000, 44_000]
    assert result.retryable
    assert bench.ledger.tool_run(run.mailbox_scope).attempts_used == 1  # type: ignore[union-attr]


def test_a_budget_of_thirty_is_five_fifteen_five_and_five(bench: Bench) -> None:
    budget = bench.policy.runs.budget
    assert (budget.request, budget.propagation, budget.read, budget.margin) == (5, 15, 5, 5)
    assert budget.total == 30
    assert budget.waiting == 20
    run = bench.open()
    result = bench.wait_out(run, deadline_seconds=budget.waiting)
    assert result.elapsed_ms <= budget.waiting * 1000


def test_no_call_lasts_longer_than_its_cap(bench: Bench) -> None:
    run = bench.open()
    began = bench.clock.monotonic()
    result = bench.wait(run, deadline_seconds=60, max_polls=12)
    assert result.state == "pending"
    assert bench.clock.monotonic() - began <= 25
    assert result.next_retry_after_ms is not None
    assert result.wait_id is not None


def test_a_quick_mail_is_found_at_the_first_slot_and_settled(bench: Bench) -> None:
    run = bench.open()
    bench.deliver_at(0.5, run)
    result = bench.wait(run, take="link")
    assert (result.state, result.reason) == ("found", "matched")
    assert result.artifact is not None
    assert result.artifact.verification_url == LINK
    assert result.polls_used == 2
    assert poll_times(bench) == [1_000, 3_000]


def test_a_late_delivery_within_the_deadline_is_found_at_the_last_look(bench: Bench) -> None:
    run = bench.open()
    bench.deliver_at(18.5, run)
    result = bench.wait(run)
    assert (result.state, result.reason) == ("found", "matched_unsettled")
    assert poll_times(bench)[-1] == 19_000


def test_a_second_message_within_the_settling_time_is_ambiguous(bench: Bench) -> None:
    run = bench.open()
    bench.deliver_at(0.5, run)
    bench.deliver_at(2.0, run, message_id="<2@acme.example>", body="Another: https://app.acme.example/verify/2\r\n")
    result = bench.wait(run)
    assert result.state == "ambiguous"
    assert len(set(result.candidates)) == 2
    assert result.next_action == "ask_a_person"


def test_a_second_message_after_the_settling_time_changes_nothing(bench: Bench) -> None:
    run = bench.open()
    bench.deliver_at(0.5, run)
    bench.deliver_at(9.0, run, message_id="<2@acme.example>", body="Another.\r\n")
    assert bench.wait(run).state == "found"


def test_a_resumed_wait_goes_on_under_the_same_budget(bench: Bench) -> None:
    run = bench.open()
    first = bench.wait(run, deadline_seconds=60, max_polls=12)
    bench.clock.advance(10)
    second = bench.wait(run, deadline_seconds=60, max_polls=12, wait_id=first.wait_id)
    assert second.elapsed_ms >= first.elapsed_ms + 10_000
    assert second.attempt == first.attempt == 1
    bench.clock.advance(60)
    last = bench.wait(run, deadline_seconds=60, max_polls=12, wait_id=first.wait_id)
    assert (last.state, last.remaining_ms) == ("timeout", 0)


def test_a_resumed_wait_may_not_ask_for_other_terms(bench: Bench) -> None:
    run = bench.open()
    first = bench.wait(run, deadline_seconds=60, max_polls=12)
    other = bench.wait(run, deadline_seconds=50, max_polls=12, wait_id=first.wait_id)
    assert (other.state, other.reason) == ("forbidden", "wait_terms_changed")


@pytest.mark.parametrize("jump", [-3600, 3600, -86_400])
def test_a_jump_of_the_wall_clock_moves_no_deadline(bench: Bench, jump: int) -> None:
    """Summer time, or somebody setting the clock: the wait ends when its time is over, neither sooner nor later."""
    run = bench.open()
    began = bench.clock.monotonic()
    bench.clock.at(4, lambda: bench.clock.step(jump))
    expected = "expired" if jump > 900 else "timeout"
    result = bench.wait_out(run, deadline_seconds=20)
    assert result.state in ("timeout", expected)
    assert bench.clock.monotonic() - began <= 20
    assert result.polls_used <= 9


def test_a_jump_between_two_calls_gives_no_time_back(bench: Bench) -> None:
    run = bench.open()
    first = bench.wait(run, deadline_seconds=60, max_polls=12)
    bench.clock.step(-3600)
    bench.clock.advance(5)
    second = bench.wait(run, deadline_seconds=60, max_polls=12, wait_id=first.wait_id)
    assert second.elapsed_ms >= first.elapsed_ms + 5_000


def test_a_restart_of_the_machine_counts_by_the_wall_clock(bench: Bench) -> None:
    run = bench.open()
    first = bench.wait(run, deadline_seconds=60, max_polls=12)
    bench.clock.reboot()
    bench.clock.step(30)
    second = bench.another().wait(bench.request(run, deadline_seconds=60, max_polls=12, wait_id=first.wait_id))
    assert second.elapsed_ms >= first.elapsed_ms + 30_000


def test_slots_that_passed_while_nobody_looked_cost_one_look_not_many(bench: Bench) -> None:
    run = bench.open()
    first = bench.wait(run, deadline_seconds=60, max_polls=12)
    bench.clock.advance(25)
    again = bench.wait(run, deadline_seconds=60, max_polls=12, wait_id=first.wait_id)
    assert poll_times(bench)[: first.polls_used] == [1_000, 3_000, 7_000, 15_000]
    assert poll_times(bench)[first.polls_used + 1 :] == [55_000, 59_000]
    assert again.polls_used == first.polls_used + 3  # 23, 31, 39 and 47 s in one


def test_a_run_that_ends_during_the_wait_ends_the_wait_as_expired(bench_of: Callable[..., Bench]) -> None:
    bench = bench_of(runs__identity__ttl_seconds=10)
    run = bench.open()
    result = bench.wait_out(run, deadline_seconds=20)
    assert (result.state, result.reason, result.next_action) == ("expired", "run_expired", "open_new_run")
    assert bench.clock.now() <= run.expires_at or result.remaining_ms == 0


def test_an_expired_run_is_not_looked_for(bench_of: Callable[..., Bench]) -> None:
    bench = bench_of(runs__identity__ttl_seconds=10)
    run = bench.open()
    bench.clock.advance(11)
    looks = len(bench.world.looks)
    assert (bench.wait(run).state, bench.wait(run).reason) == ("expired", "run_expired")
    assert len(bench.world.looks) == looks


# ------------------------------------------------------------ outages


def test_a_mailbox_away_throughout_is_told_from_silence(bench: Bench) -> None:
    run = bench.open()
    bench.world.trouble = MailboxLost("away")
    result = bench.wait_out(run)
    assert (result.state, result.reason) == ("timeout", "mailbox_unreachable")
    assert result.polls_used > 0


@pytest.mark.parametrize(("gone", "back"), [(0.0, 4.0), (2.0, 6.0)])
def test_an_outage_costs_its_slots_and_nothing_else(bench: Bench, gone: float, back: float) -> None:
    run = bench.open()

    def trouble(error: MailboxLost | None) -> None:
        bench.world.trouble = error

    bench.clock.at(gone, lambda: trouble(MailboxLost("away")))
    bench.clock.at(back, lambda: trouble(None))
    bench.deliver_at(1.5, run)
    assert bench.wait(run).state == "found"


def test_a_busy_server_is_no_refusal(bench: Bench) -> None:
    """[LIMIT] comes as a login error and passes."""
    run = bench.open()
    bench.world.trouble = MailboxBusy("too many connections")
    bench.clock.at(4, lambda: setattr(bench.world, "trouble", None))
    bench.deliver_at(0.2, run)
    assert bench.wait(run).state == "found"


def test_a_refused_login_is_tried_once(bench_of: Callable[..., Bench]) -> None:
    """By any number of waits, and in any process: the ledger remembers, until the login is another one."""
    from triage.agent.tool import Surroundings

    login = ["a"]
    bench = bench_of(around=Surroundings(login=lambda: login[0]))
    run = bench.open()
    bench.world.trouble = LoginRefused("no")
    before = bench.world.logins
    first = bench.wait(run)
    assert (first.state, first.reason, first.retryable) == ("rejected", "login_refused", False)
    assert bench.another().wait(bench.request(run)).reason == "login_refused"
    assert bench.world.logins == before + 1
    login[0] = "b"
    bench.world.trouble = None
    other = bench.open("signup-2")
    assert bench.wait(other).state == "timeout"


def test_a_slow_server_gets_only_the_time_that_is_left(bench: Bench) -> None:
    run = bench.open()
    bench.wait_out(run, deadline_seconds=10)
    assert max(bench.world.allowed[1:]) <= 10
    assert bench.world.allowed[-1] <= 1.001


def test_the_connection_is_given_back_when_the_wait_is_over(bench: Bench) -> None:
    run = bench.open()
    bench.wait_out(run)
    assert bench.world.open_connections == 0


# ------------------------------------------------------------ stopping


def test_a_cancelled_wait_looks_no_more_and_leaves_a_receipt(bench: Bench) -> None:
    run = bench.open()
    bench.clock.at(4, lambda: bench.another().cancel({"run_id": run.mailbox_scope}))
    result = bench.wait(run)
    assert result.state == "cancelled"
    assert all(at - 1000.0 < 6 for at in bench.world.looks)
    assert bench.ledger.receipts(run.mailbox_scope)[0].state == "cancelled"
    assert bench.world.open_connections == 0


def test_a_cancelled_wait_stays_cancelled(bench: Bench) -> None:
    run = bench.open()
    first = bench.wait(run, deadline_seconds=60, max_polls=12)
    bench.tool.cancel({"run_id": run.mailbox_scope, "wait_id": first.wait_id})
    for _ in range(2):
        again = bench.wait(run, deadline_seconds=60, max_polls=12, wait_id=first.wait_id)
        assert (again.state, again.next_action) == ("cancelled", "stop")


def test_attempts_are_bounded_beside_time(bench: Bench) -> None:
    run = bench.open()
    assert [bench.wait_out(run, deadline_seconds=5).state for _ in range(2)] == ["timeout", "timeout"]
    third = bench.wait(run)
    assert (third.state, third.reason, third.retryable) == ("forbidden", "attempts_exhausted", False)


def test_a_second_attempt_waits_for_the_policys_delay(bench_of: Callable[..., Bench]) -> None:
    bench = bench_of(purposes__verify_signup__retry_delay_ms=5000)
    run = bench.open()
    bench.wait_out(run, deadline_seconds=5)
    began = bench.clock.monotonic()
    looks = len(bench.world.looks)
    bench.wait_out(run, deadline_seconds=5)
    assert bench.world.looks[looks] - began >= 6


def test_two_callers_do_not_spend_one_wait_twice(bench: Bench) -> None:
    run = bench.open()
    first = bench.wait(run, deadline_seconds=60, max_polls=12)
    assert first.wait_id is not None
    assert bench.ledger.hold_wait(first.wait_id, "somebody", 5_000) is not None
    other = bench.wait(run, deadline_seconds=60, max_polls=12, wait_id=first.wait_id)
    assert (other.state, other.reason) == ("pending", "waited_for_elsewhere")
