"""The chain over HTTP: outages, rate limits, messages that fail alone, and a server that is wrong from the start."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from fakes.http_stub import Behaviour, HttpStub, Seen, always, endless, in_order, reply, silence
from triage.clock import SystemClock
from triage.decide.chain import Chain
from triage.decide.cost import SpendGuard
from triage.decide.link import Link
from triage.decide.providers import remote_provider
from triage.decide.question import build_question
from triage.domain.category import Category, CategorySet
from triage.domain.decision import FailureKind, Ruling
from triage.domain.mail import PreparedMail

QUESTION = build_question(
    CategorySet("", "rest", "Rest", tuple(Category(n, n, n) for n in ("work", "family", "billing"))), offer_none=False
)


def answer(choice: str = "work") -> dict[str, Any]:
    probabilities = {**dict.fromkeys(QUESTION.ids, 0.05), choice: 0.9}
    return {
        "model": "jev-1.13.0",
        "answers": {"category": {"type": "choice", "choice": choice, "probabilities": probabilities}},
        "usage": {"input_tokens": 1000, "output_tokens": 0},
    }


class Breakers:
    """A BreakerStore in memory."""

    def __init__(self) -> None:
        self.values: dict[str, Mapping[str, object]] = {}

    def load_breaker(self, key: str) -> Mapping[str, object] | None:
        return self.values.get(key)

    def save_breaker(self, key: str, value: Mapping[str, object]) -> None:
        self.values[key] = value


def decide(
    n: int,
    *stubs: HttpStub,
    model: str = "jev-latest",
    breakers: Breakers | None = None,
    seconds: float = 60.0,
    message_deadline_s: float = 20.0,
    **options: Any,
) -> dict[int, Ruling]:
    mails = {uid: PreparedMail(f"{uid}@example.com", "t@example.com", f"uid {uid}", "text " * 50) for uid in range(n)}
    rulings: dict[int, Ruling] = {}
    clock = SystemClock()
    chain = Chain(
        [
            Link(remote_provider("systemone", base_url=stub.url, model=model, clock=clock, **options), f"key-{i}", i)
            for i, stub in enumerate(stubs)
        ],
        clock=clock,
        breakers=breakers or Breakers(),
        spend=SpendGuard(lambda: 0.0, None),
        message_deadline_s=message_deadline_s,
    )
    chain.decide(
        QUESTION,
        mails,
        deadline=time.monotonic() + seconds,
        stop=threading.Event(),
        on_rulings=rulings.update,
    )
    chain.close()
    assert set(rulings) == set(mails)
    return rulings


def uid_of(seen: Seen) -> int:
    subject = seen.json["state"]["subject"]
    return int(subject.removeprefix("uid ")) if subject.startswith("uid ") else -1


def test_a_server_that_is_down_sees_ten_calls_at_most_for_two_hundred_mails() -> None:
    """And not one mail gets a fallback label because a service is down."""
    breakers = Breakers()
    with HttpStub(always(reply(b"", 503))) as stub:
        rulings = decide(200, stub, breakers=breakers)
        first = len(stub.seen)
        decide(200, stub, breakers=breakers)
        second = len(stub.seen) - first
    assert first <= 10
    assert second <= 3
    assert all(r.answer is None and not r.asked for r in rulings.values())


def test_a_server_that_comes_back_is_asked_as_before() -> None:
    breakers = Breakers()
    with HttpStub(always(reply(b"", 503))) as stub:
        decide(20, stub, breakers=breakers, retries=0)
    with HttpStub(always(reply(answer()))) as stub:
        rulings = decide(20, stub, breakers=breakers)
    assert all(r.answer for r in rulings.values())


def test_two_mails_that_fail_alone_leave_the_others_alone() -> None:
    """One is too long whatever is sent of it, one is refused; both are ruled asked, so neither is asked for ever."""

    def script(seen: Seen) -> Behaviour:
        refused = {102: reply(b"", 413), 103: reply({"detail": "text must not be empty"}, 422)}
        return refused.get(uid_of(seen), reply(answer()))

    with HttpStub(script) as stub:
        rulings = decide(120, stub)
    failed = {uid: r.failures[0].code for uid, r in rulings.items() if r.answer is None}
    assert failed == {102: "too_large", 103: "http_422"}
    assert rulings[102].asked
    assert sum(uid_of(seen) == 102 for seen in stub.seen) == 2
    assert sum(uid_of(seen) == 103 for seen in stub.seen) == 1


def test_a_mail_that_is_fine_at_half_its_length_gets_its_answer() -> None:
    def script(seen: Seen) -> Behaviour:
        return reply(b"", 413) if len(seen.json["state"]["body"]) > 200 else reply(answer())

    with HttpStub(script) as stub:
        rulings = decide(3, stub)
    assert all(r.answer and "mail_shortened" in r.answer.repaired for r in rulings.values())


@pytest.mark.parametrize(
    "refusal",
    [
        reply({"error": "Unknown model: jev-latest"}, 400),
        reply({"detail": {"error_type": "api_usage_error", "message": "Unknown model"}}, 422),
        reply({"detail": "too many options"}, 413),
    ],
)
def test_a_refusal_of_every_mail_does_not_cost_the_inbox_its_categories(refusal: Behaviour) -> None:
    """A wrong model name that comes as "bad request" looks like a bad mail; one neutral question tells them apart."""
    with HttpStub(always(refusal)) as stub:
        rulings = decide(40, stub)
    assert not any(r.asked for r in rulings.values())
    kinds = {f.kind for r in rulings.values() for f in r.failures}
    assert kinds == {FailureKind.CONFIGURATION}
    assert len(stub.seen) <= 10


def test_a_firewall_that_forbids_one_mail_does_not_stop_the_asking() -> None:
    with HttpStub(lambda seen: reply("<html>", 403) if uid_of(seen) in (3, 30) else reply(answer())) as stub:
        rulings = decide(40, stub)
    assert {uid for uid, r in rulings.items() if r.answer is None} == {3, 30}
    assert rulings[3].asked
    assert rulings[3].failures[0].kind is FailureKind.MESSAGE


def test_a_key_that_is_withdrawn_in_the_middle_of_a_batch_stops_the_asking() -> None:
    with HttpStub(in_order(*[reply(answer())] * 10, reply(b"", 403))) as stub:
        rulings = decide(100, stub)
    assert sum(r.answer is not None for r in rulings.values()) == 10
    assert not any(r.asked for r in rulings.values() if r.answer is None)
    assert len(stub.seen) <= 10 + 2 * 20


def test_a_server_that_paces_us_is_obeyed_by_all_askers_and_answers_everything() -> None:
    """Ten requests a half second are served, the rest gets 429 with the time to wait."""
    lock = threading.Lock()
    served: list[float] = []
    refused: list[float] = []

    def script(seen: Seen) -> Behaviour:
        with lock:
            recent = [t for t in served if seen.at - t < 0.5]
            if len(recent) < 10:
                served.append(seen.at)
                return reply(answer())
            refused.append(seen.at)
            return reply(b"", 429, {"retry-after-ms": str(round(1000 * (0.5 - (seen.at - recent[0]))) + 5)})

    with HttpStub(script) as stub:
        rulings = decide(60, stub, retries=5)
    assert all(r.answer for r in rulings.values())
    assert len(refused) < 120


def test_a_pause_too_long_ends_the_run_and_leaves_the_mail_for_a_later_one() -> None:
    started = time.monotonic()
    with HttpStub(always(reply(b"", 429, {"Retry-After": "999999"}))) as stub:
        rulings = decide(50, stub)
    assert time.monotonic() - started < 3
    assert len(stub.seen) <= 3
    assert not any(r.asked for r in rulings.values())
    assert "asks to wait" in rulings[49].reason


@pytest.mark.parametrize("behaviour", [silence, endless(b" ")], ids=["silent", "endless"])
def test_a_stuck_server_costs_one_messages_time_not_one_per_message(behaviour: Behaviour) -> None:
    started = time.monotonic()
    with HttpStub(always(behaviour)) as stub:
        rulings = decide(50, stub, message_deadline_s=0.5, timeout_s=0.5, retries=0)
    assert time.monotonic() - started < 5
    assert not any(r.asked for r in rulings.values())


def test_the_second_server_takes_over_from_a_dead_first_one() -> None:
    with HttpStub(always(reply(b"", 500))) as dead, HttpStub(always(reply(answer()))) as alive:
        rulings = decide(50, dead, alive)
    assert all(r.answer and r.position == 1 for r in rulings.values())
    assert len(dead.seen) <= 10


def test_a_web_page_in_place_of_answers_is_an_outage() -> None:
    with HttpStub(always(reply("<!doctype html><title>Sign in</title>"))) as stub:
        rulings = decide(50, stub)
    assert not any(r.asked for r in rulings.values())
    assert len(stub.seen) <= 10


def test_a_hiccup_is_retried_and_leaves_no_trace() -> None:
    with HttpStub(in_order(reply(b"", 502), reply(b"", 529), reply(answer()))) as stub:
        rulings = decide(1, stub)
    assert rulings[0].answer
    assert rulings[0].failures == ()


def test_a_model_of_no_known_price_is_free_on_a_machine_of_ours() -> None:
    unknown = {**answer(), "model": "nimble"}
    with HttpStub(always(reply(unknown))) as stub:
        found = decide(1, stub, model="nimble")[0].answer
    assert found
    assert found.cost_usd == 0


def test_an_answer_tells_who_gave_it_and_what_it_cost() -> None:
    with HttpStub(always(reply(answer()))) as stub:
        found = decide(1, stub)[0].answer
    assert found
    assert (found.provider, found.model, found.input_tokens) == ("systemone", "jev-1.13.0", 1000)
    assert found.cost_usd == pytest.approx(1000 * 0.042 / 1e6)
    assert 0 < found.question_tokens < 1000
