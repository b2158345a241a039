"""What was paid for is counted, whether the answer could be used or not, and the day's cap holds against all of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

import pytest

from fakes.http_stub import Behaviour, HttpStub, Seen, always, reply
from triage.clock import SystemClock
from triage.decide.chain import Chain
from triage.decide.cost import Price, SpendGuard
from triage.decide.link import Link
from triage.decide.providers import remote_provider
from triage.decide.question import build_question
from triage.domain.category import Category, CategorySet
from triage.domain.decision import FailureKind, Ruling
from triage.domain.mail import PreparedMail

QUESTION = build_question(
    CategorySet("", "rest", "Rest", tuple(Category(n, n, n) for n in ("work", "family", "billing"))), offer_none=False
)
PRICE = Price(1000.0, 5000.0)  # 1 USD a thousand tokens read, 5 a thousand written: sums that can be read


class NoBreakers:
    def load_breaker(self, key: str) -> Mapping[str, object] | None:
        return None

    def save_breaker(self, key: str, value: Mapping[str, object]) -> None:
        pass


def body(probabilities: object, **usage: int) -> dict[str, Any]:
    return {
        "model": "stub-2",
        "answers": {"category": {"type": "choice", "choice": "work", "probabilities": probabilities}},
        "usage": usage,
    }


GOOD = body({"work": 0.9, "family": 0.05, "billing": 0.05}, input_tokens=1000, output_tokens=0)
BAD = body({"work": 0.5}, input_tokens=1000, output_tokens=100)


def decide(stub: HttpStub, n: int, cap_usd: float | None = None) -> dict[int, Ruling]:
    clock = SystemClock()
    provider = remote_provider("systemone", base_url=stub.url, model="stub-2", clock=clock, retries=0)
    chain = Chain(
        [Link(provider, "key", 0, price=PRICE)],
        clock=clock,
        breakers=NoBreakers(),
        spend=SpendGuard(lambda: 0.0, cap_usd),
        concurrency=1,
    )
    rulings: dict[int, Ruling] = {}
    mails = {uid: PreparedMail("a@example.com", "t@example.com", f"uid {uid}", "text") for uid in range(n)}
    chain.decide(QUESTION, mails, deadline=time.monotonic() + 30, stop=threading.Event(), on_rulings=rulings.update)
    chain.close()
    return rulings


def test_an_answer_that_cannot_be_used_costs_what_it_took() -> None:
    with HttpStub(always(reply(BAD))) as stub:
        ruling = decide(stub, 1)[0]
    (failure,) = ruling.failures
    assert (failure.kind, failure.model, failure.input_tokens) == (FailureKind.UNUSABLE, "stub-2", 1000)
    assert ruling.cost_usd == failure.cost_usd == pytest.approx(1.0 + 0.5)


def test_a_refused_answer_of_a_server_that_does_not_count_is_estimated() -> None:
    with HttpStub(always(reply(body(None)))) as stub:
        ruling = decide(stub, 1)[0]
    assert 0.05 < ruling.cost_usd < 0.5


def test_a_probe_is_charged_to_the_mail_that_needed_it() -> None:
    def script(seen: Seen) -> Behaviour:
        return reply({"detail": "no"}, 400) if seen.json["state"]["subject"].startswith("uid") else reply(GOOD)

    with HttpStub(script) as stub:
        rulings = decide(stub, 2)
    assert [r.failures[0].kind for r in rulings.values()] == [FailureKind.MESSAGE] * 2
    assert sum(r.cost_usd for r in rulings.values()) == pytest.approx(1.0)


def test_a_server_that_did_not_answer_costs_nothing() -> None:
    with HttpStub(always(reply(b"", 503))) as stub:
        assert decide(stub, 1)[0].cost_usd == 0


def test_the_days_cap_holds_against_answers_that_cannot_be_used() -> None:
    """1.50 USD an answer and a cap of 4: the third one passes it, a fourth is never asked for."""
    with HttpStub(always(reply(BAD))) as stub:
        rulings = decide(stub, 10, cap_usd=4.0)
        asked = len(stub.seen)
    assert asked <= 3
    assert sum(not r.asked for r in rulings.values()) == 10 - asked
    assert any("spend_cap_usd_per_day" in r.reason for r in rulings.values())
