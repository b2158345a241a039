"""What stands around the tool: the deciding chain's word on a wish, the dashboard's view, the shared connection."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import timedelta

import pytest

from fakes.mail_reader import StepClock
from support.mail_tool import Bench
from support.premises import wait_until
from triage.agent.model_intent import QUESTION, ask_chain
from triage.agent.overview import overview
from triage.agent.states import Intent
from triage.domain.category import NONE_ID
from triage.domain.decision import Answer, Question, Ruling
from triage.domain.mail import PreparedMail


class OneAnswer:
    """A Decider that always gives the same ruling."""

    def __init__(self, choice: str | None, p: float = 0.9) -> None:
        self.choice, self.p = choice, p
        self.bodies: list[str] = []

    def decide(
        self,
        question: Question,
        mails: Mapping[int, PreparedMail],
        *,
        deadline: float,
        stop: threading.Event,
        on_rulings: Callable[[Mapping[int, Ruling]], None],
    ) -> None:
        self.bodies += [mail.body for mail in mails.values()]
        if self.choice is None:
            on_rulings({uid: Ruling(None) for uid in mails})
            return
        rest = (1 - self.p) / (len(question.ids) - 1)
        probabilities = dict.fromkeys(question.ids, rest) | {self.choice: self.p}
        on_rulings({uid: Ruling(Answer(self.choice, probabilities, "p", "m"), 0) for uid in mails})


@pytest.mark.parametrize(("choice", "intent"), [("take_link", Intent.TAKE_LINK), (NONE_ID, None), (None, None)])
def test_the_chain_gives_an_intent_or_none(choice: str | None, intent: Intent | None) -> None:
    decider = OneAnswer(choice)
    found, confidence = ask_chain(decider, StepClock())("el enlace, por favor")
    assert found is intent
    assert (confidence > 0.5) == (intent is not None)
    assert decider.bodies == ["el enlace, por favor"]


def test_every_intent_is_an_option_and_so_is_none() -> None:
    assert set(QUESTION.ids) == {str(intent) for intent in Intent} | {NONE_ID}


def test_the_overview_tells_the_same_story_as_the_results(bench: Bench) -> None:
    found, silent = bench.open(), bench.open("signup-2")
    bench.deliver(found)
    first, second = bench.wait(found), bench.wait_out(silent, deadline_seconds=5)
    now = bench.clock.now()
    seen = overview(bench.ledger, now, now - timedelta(hours=1), "team")
    lines = {line.id: (line.state, line.reason) for line in seen.runs}
    assert lines == {
        "signup-1842": (str(first.state), first.reason),
        "signup-2": (str(second.state), second.reason),
    }
    assert (seen.live, seen.rates.timeout) == (2, 1)
    assert found.address not in repr(seen)


def test_a_run_that_lapsed_is_shown_as_expired(bench: Bench) -> None:
    bench.open()
    bench.clock.advance(1000)
    now = bench.clock.now()
    line = overview(bench.ledger, now, now, "team").runs[0]
    assert (line.state, line.reason) == ("expired", "run_expired")


@pytest.mark.parametrize("reason", ["cancelled", "finished", "trigger_rejected"])
def test_a_run_that_was_ended_is_shown_as_its_caller_was_told(bench: Bench, reason: str) -> None:
    run = bench.open()
    told = bench.tool.cancel({"run_id": run.mailbox_scope, "reason": reason})
    line = overview(bench.ledger, bench.clock.now(), bench.clock.now(), "team").runs[0]
    assert (line.state, line.reason, line.next_action, line.live) == (told.state, reason, told.next_action, False)


def test_asking_how_a_run_stands_does_not_hide_how_it_stands(bench: Bench) -> None:
    """However often: the last call that moved the run is found, for the page and for the rule of asking anew."""
    run = bench.open()
    timed_out = bench.wait_out(run, deadline_seconds=5)
    for _ in range(60):
        bench.tool.status({"run_id": run.mailbox_scope})
    line = overview(bench.ledger, bench.clock.now(), bench.clock.now(), "team").runs[0]
    assert (line.state, line.reason) == (timed_out.state, timed_out.reason)
    asked = bench.tool.request_new({"run_id": run.mailbox_scope, "mailbox_id": run.mailbox_id})
    assert asked.reason == "request_unanswered"


def test_many_runs_share_one_connection(bench: Bench) -> None:
    runs = [bench.open(f"signup-{n}") for n in range(5)]
    before = bench.world.logins
    most: list[int] = []
    bench.clock.at(1.5, lambda: most.append(bench.world.open_connections))
    waits = [bench.tool.wait(bench.request(run, deadline_seconds=3)) for run in runs]
    assert {str(wait.state) for wait in waits} == {"timeout"}
    assert most == [1]
    assert bench.world.logins == before + 5
    assert bench.world.open_connections == 0


def test_who_listens_gives_way_to_who_looks_where_connections_are_short(
    bench_of: Callable[..., Bench],
) -> None:
    """One connection there is: the listener has it at first; the look that is refused has it the next time."""
    bench = bench_of(runs__idle="early_slot")
    bench.world.can_idle, run = True, bench.open()
    bench.world.most_connections = 1
    bench.deliver(run)
    bench.clock.at(0.5, lambda: wait_until(lambda: bench.world.open_connections == 1))
    bench.clock.at(2, lambda: wait_until(lambda: bench.world.open_connections == 0))
    result = bench.wait(run)
    receipt = bench.ledger.receipt(str(result.receipt_id))
    assert receipt is not None
    assert result.state == "found"
    assert [poll["shown"] for poll in receipt.polls] == ["busy", "matched", "matched"]
