"""The chain over scripted providers: order, fallbacks, outages, caps, deadlines, and what becomes of each message."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from decide_world import QUESTION, SURE, Breakers, HandClock, a_mail, mails

from triage.clock import SystemClock
from triage.decide.chain import Chain
from triage.decide.cost import FREE, Price, SpendGuard
from triage.decide.link import Link
from triage.domain.decision import Answer, Failure, FailureKind, Question, Ruling
from triage.domain.mail import PreparedMail
from triage.ports import Clock

GOOD = Answer("receipt", SURE, "scripted", "served-1", input_tokens=1_000_000, output_tokens=10)
Script = Callable[[PreparedMail], Answer | Failure]


class Scripted:
    """A Provider that answers by script and counts; `most` is how many asks ran side by side at most."""

    def __init__(self, script: Script, name: str = "scripted", takes_s: float = 0.0) -> None:
        self.name = name
        self.model = "asked-1"
        self.asked: list[str] = []
        self.most = 0
        self.closed = False
        self._script = script
        self._takes_s = takes_s
        self._running = 0
        self._lock = threading.Lock()

    def ask(self, question: Question, mail: PreparedMail, deadline: float) -> Answer | Failure:
        with self._lock:
            self.asked.append(mail.subject)
            self._running += 1
            self.most = max(self.most, self._running)
        time.sleep(self._takes_s)
        try:
            return self._script(mail)
        finally:
            with self._lock:
                self._running -= 1

    def close(self) -> None:
        self.closed = True


def fails(kind: FailureKind, code: str = "x") -> Failure:
    return Failure("scripted", kind, code, f"It failed with {code}.")


BUSY = fails(FailureKind.TRANSIENT, "http_503")


def good(_: PreparedMail) -> Answer:
    return GOOD


def busy(_: PreparedMail) -> Failure:
    return BUSY


class World:
    """A chain over providers, and the rulings of its batches."""

    def __init__(
        self,
        *providers: Scripted,
        price: Price | None = None,
        spend: SpendGuard | None = None,
        concurrency: int = 20,
        clock: Clock | None = None,
    ) -> None:
        self.breakers = Breakers()
        self.clock = clock or SystemClock()
        self.stop = threading.Event()
        self.chain = Chain(
            [Link(p, f"key-{i}", i, price) for i, p in enumerate(providers)],
            clock=self.clock,
            breakers=self.breakers,
            spend=spend or SpendGuard(lambda: 0.0, None),
            concurrency=concurrency,
        )

    def decide(self, batch: Mapping[int, PreparedMail], seconds: float = 30.0) -> dict[int, Ruling]:
        rulings: dict[int, Ruling] = {}
        main = threading.get_ident()

        def on_rulings(known: Mapping[int, Ruling]) -> None:
            assert threading.get_ident() == main
            assert known
            assert not set(known) & set(rulings)
            rulings.update(known)

        self.chain.decide(
            QUESTION, batch, deadline=self.clock.monotonic() + seconds, stop=self.stop, on_rulings=on_rulings
        )
        assert set(rulings) == set(batch)
        return rulings


def test_each_message_is_ruled_on_once_by_the_first_provider_that_answers() -> None:
    first, second = Scripted(good), Scripted(good)
    rulings = World(first, second).decide(mails(40))
    assert {r.position for r in rulings.values()} == {0}
    assert sorted(first.asked) == sorted(m.subject for m in mails(40).values())
    assert second.asked == []


def test_decisions_run_side_by_side_up_to_the_limit() -> None:
    provider = Scripted(good, takes_s=0.05)
    World(provider, concurrency=8).decide(mails(40))
    assert 4 <= provider.most <= 8


@pytest.mark.parametrize("kind", [FailureKind.UNUSABLE, FailureKind.MESSAGE, FailureKind.TRANSIENT])
def test_what_one_provider_cannot_answer_the_next_one_is_asked(kind: FailureKind) -> None:
    first, second = Scripted(lambda _: fails(kind)), Scripted(good)
    ruling = World(first, second).decide(mails(1))[1]
    assert (ruling.answer is not None, ruling.position, [f.kind for f in ruling.failures]) == (True, 1, [kind])


def test_a_message_refused_by_all_failed_on_its_own_account() -> None:
    """It is ruled asked without an answer, so it gets the fallback label; the others are not touched by it."""

    def script(mail: PreparedMail) -> Answer | Failure:
        return fails(FailureKind.MESSAGE, "http_422") if mail.subject == "Order 3" else GOOD

    rulings = World(Scripted(script)).decide(mails(20))
    assert [uid for uid, r in rulings.items() if r.answer is None] == [3]
    assert rulings[3].asked
    assert rulings[3].failures[0].code == "http_422"


def test_a_message_that_alone_fails_for_passing_reasons_failed_on_its_own_account() -> None:
    """The server answered all the others: what it cannot stomach must not be asked about every five minutes."""
    rulings = World(Scripted(lambda m: BUSY if m.subject == "Order 3" else GOOD)).decide(mails(20))
    assert (rulings[3].answer, rulings[3].asked) == (None, True)


def test_an_outage_costs_a_handful_of_asks_and_labels_nothing() -> None:
    provider = Scripted(busy, takes_s=0.01)
    rulings = World(provider).decide(mails(200))
    assert len(provider.asked) == 3
    assert all(r.answer is None and not r.asked for r in rulings.values())
    assert all("It failed with http_503." in r.reason for r in rulings.values())


@pytest.mark.parametrize("code", ["unauthorized", "out_of_credit", "not_found"])
def test_a_configuration_error_stops_the_asking_at_once(code: str) -> None:
    provider = Scripted(lambda _: fails(FailureKind.CONFIGURATION, code), takes_s=0.01)
    rulings = World(provider).decide(mails(200))
    assert len(provider.asked) <= 3
    assert not any(r.asked for r in rulings.values())


def test_an_outage_in_the_middle_of_a_batch_leaves_the_rest_for_the_next_run() -> None:
    answered: list[str] = []

    def script(mail: PreparedMail) -> Answer | Failure:
        if len(answered) >= 10:
            return BUSY
        answered.append(mail.subject)
        return GOOD

    provider = Scripted(script)
    rulings = World(provider, concurrency=4).decide(mails(100))
    assert sum(r.answer is not None for r in rulings.values()) == 10
    assert not any(r.asked for r in rulings.values() if r.answer is None)
    assert len(provider.asked) <= 10 + 3 + 4


def test_the_fallback_takes_over_the_whole_batch_when_the_primary_is_out() -> None:
    first, second = Scripted(busy), Scripted(good)
    rulings = World(first, second).decide(mails(50))
    assert {r.position for r in rulings.values()} == {1}
    assert len(first.asked) == 3


def test_a_batch_right_after_an_answered_one_is_asked_at_full_width_at_once() -> None:
    """A backfill need not feel its way again for each batch; after a minute, or an outage, it does."""
    clock = HandClock()
    everybody = threading.Barrier(10, timeout=5)

    def meet(_: PreparedMail) -> Answer:
        everybody.wait()
        return GOOD

    world = World(Scripted(good), clock=clock, concurrency=10)
    world.decide(mails(10))
    together = Scripted(meet)
    world.chain.links = (replace(world.chain.links[0], provider=together),)
    assert all(r.answer for r in world.decide(mails(10)).values())
    assert together.most == 10
    clock.advance(61)
    feeling = Scripted(busy, takes_s=0.02)
    world.chain.links = (replace(world.chain.links[0], provider=feeling),)
    world.decide(mails(10))
    assert feeling.most <= 3


def test_the_next_run_probes_with_one_ask_and_stays_off_if_that_fails() -> None:
    provider = Scripted(busy)
    world = World(provider)
    world.decide(mails(20))
    provider.asked.clear()
    rulings = world.decide(mails(20))
    assert len(provider.asked) == 1
    assert not any(r.asked for r in rulings.values())


def test_the_next_run_goes_on_as_usual_if_its_probe_is_answered() -> None:
    up = threading.Event()
    provider = Scripted(lambda _: GOOD if up.is_set() else BUSY)
    world = World(provider)
    world.decide(mails(20))
    up.set()
    assert all(r.answer for r in world.decide(mails(20)).values())
    assert world.breakers.values["key-0"]["open"] is False


def test_another_message_probes_each_time_so_that_one_mail_cannot_keep_the_breaker_open() -> None:
    world = World(Scripted(busy))
    world.decide(mails(20))
    probes = []
    for _ in range(3):
        provider = Scripted(busy)
        world.chain.links = (replace(world.chain.links[0], provider=provider),)
        world.decide(mails(20))
        probes += provider.asked
    assert len(set(probes)) == 3


def test_the_breaker_survives_a_restart() -> None:
    first = World(Scripted(lambda _: fails(FailureKind.CONFIGURATION, "out_of_credit")))
    first.decide(mails(1))
    provider = Scripted(lambda _: fails(FailureKind.CONFIGURATION, "out_of_credit"))
    again = World(provider)
    again.breakers = first.breakers
    again.chain = Chain(
        again.chain.links, clock=SystemClock(), breakers=first.breakers, spend=SpendGuard(lambda: 0.0, None)
    )
    rulings = again.decide(mails(20))
    assert len(provider.asked) == 1
    assert "out_of_credit" in rulings[20].reason


def test_unusable_answers_are_each_messages_own_and_never_stop_the_asking() -> None:
    provider = Scripted(lambda _: fails(FailureKind.UNUSABLE, "sum"))
    rulings = World(provider).decide(mails(30))
    assert len(provider.asked) == 30
    assert all(r.asked and r.answer is None for r in rulings.values())


def test_after_stop_no_new_mail_is_asked_and_those_under_way_are_finished() -> None:
    provider = Scripted(good, takes_s=0.2)
    world = World(provider, concurrency=4)
    threading.Timer(0.3, world.stop.set).start()
    rulings = world.decide(mails(200))
    answered = [r for r in rulings.values() if r.answer]
    assert len(answered) == len(provider.asked) < 20
    assert {r.reason for r in rulings.values() if not r.asked} == {"The run was asked to stop."}


@pytest.mark.parametrize("kind", [FailureKind.MESSAGE, FailureKind.UNUSABLE, FailureKind.TRANSIENT])
def test_a_message_that_stop_kept_from_the_next_provider_waits_for_the_next_run(kind: FailureKind) -> None:
    """The one that was not asked may be the one that knows."""
    second = Scripted(good)

    def script(_: PreparedMail) -> Failure:
        world.stop.set()
        return fails(kind)

    world = World(Scripted(script), second)
    ruling = world.decide(mails(1))[1]
    assert (ruling.answer, ruling.asked, ruling.reason) == (None, False, "The run was asked to stop.")
    assert second.asked == []


def test_a_wait_that_stop_ended_is_not_held_against_the_message() -> None:
    def script(mail: PreparedMail) -> Answer | Failure:
        if mail.subject != "Order 20":
            return GOOD
        world.stop.set()
        return fails(FailureKind.TRANSIENT, "stopped")

    world = World(Scripted(script), concurrency=1)
    rulings = world.decide(mails(20))
    assert not rulings[20].asked


def test_the_time_of_the_batch_bounds_the_asking() -> None:
    provider = Scripted(good, takes_s=0.2)
    started = time.monotonic()
    rulings = World(provider, concurrency=4).decide(mails(200), seconds=0.5)
    assert time.monotonic() - started < 1.5
    assert not any(r.asked for r in rulings.values() if r.answer is None)
    assert sum(r.answer is not None for r in rulings.values()) == len(provider.asked)


def test_a_provider_that_hangs_past_every_deadline_does_not_hang_the_run() -> None:
    release = threading.Event()

    def hang(_: PreparedMail) -> Answer:
        release.wait(20)
        return GOOD

    started = time.monotonic()
    rulings = World(Scripted(hang)).decide(mails(5), seconds=0.2)
    release.set()
    assert time.monotonic() - started < 5
    assert not any(r.asked for r in rulings.values())


def test_a_message_that_used_up_its_time_is_not_carried_to_the_next_provider() -> None:
    clock = HandClock()

    def slow(_: PreparedMail) -> Failure:
        clock.advance(21)
        return fails(FailureKind.TRANSIENT, "timeout")

    second = Scripted(good)
    rulings = World(Scripted(slow), second, clock=clock, concurrency=1).decide(mails(1), seconds=100)
    assert second.asked == []
    assert rulings[1].answer is None


def test_the_deadline_of_a_message_is_handed_down_within_that_of_the_batch() -> None:
    deadlines = []

    class Watching(Scripted):
        def ask(self, question: Question, mail: PreparedMail, deadline: float) -> Answer | Failure:
            deadlines.append(deadline)
            return super().ask(question, mail, deadline)

    clock = HandClock()
    world = World(Watching(good), clock=clock, concurrency=1)
    world.decide(mails(1), seconds=300)
    world.decide(mails(1), seconds=5)
    assert deadlines == [clock.monotonic() + 20, clock.monotonic() + 5]


def test_a_bug_in_a_provider_is_one_messages_failure() -> None:
    def script(mail: PreparedMail) -> Answer:
        if mail.subject == "Order 2":
            raise ZeroDivisionError(mail.body)
        return GOOD

    rulings = World(Scripted(script)).decide(mails(5))
    assert rulings[2].asked
    assert "ZeroDivisionError" in rulings[2].failures[0].message
    assert a_mail().body not in repr(rulings[2])
    assert all(rulings[uid].answer for uid in (1, 3, 4, 5))


def test_an_error_of_the_caller_ends_the_batch_and_no_more_is_asked() -> None:
    provider = Scripted(good, takes_s=0.05)
    world = World(provider, concurrency=2)

    class LeaseLost(Exception):
        pass

    def on_rulings(known: Mapping[int, Ruling]) -> None:
        raise LeaseLost

    with pytest.raises(LeaseLost):
        world.chain.decide(QUESTION, mails(100), deadline=time.monotonic() + 30, stop=world.stop, on_rulings=on_rulings)
    time.sleep(0.3)
    assert len(provider.asked) < 10


def test_an_answer_bears_its_cost() -> None:
    ruling = World(Scripted(good), price=Price(0.042, 1.0)).decide(mails(1))[1]
    assert ruling.answer is not None
    assert ruling.answer.cost_usd == pytest.approx(0.042 + 10 / 1e6)


def test_a_provider_on_this_machine_is_free() -> None:
    assert Link(Scripted(good), "k", 0).price_of("anything") == FREE


def test_the_spend_cap_stops_the_asking_and_says_so() -> None:
    provider = Scripted(good, takes_s=0.01)
    world = World(provider, price=Price(0.125), spend=SpendGuard(lambda: 0.5, 1.0), concurrency=1)
    rulings = world.decide(mails(20))
    assert len(provider.asked) == 4
    assert {r.reason for r in rulings.values() if not r.asked} == {
        "The day's spending has reached spend_cap_usd_per_day (1.00 USD)."
    }


def test_a_free_provider_is_asked_whatever_was_spent() -> None:
    world = World(Scripted(good), price=FREE, spend=SpendGuard(lambda: 5.0, 1.0))
    assert all(r.answer for r in world.decide(mails(5)).values())


def test_many_askers_side_by_side_overshoot_the_cap_by_no_more_than_the_first_asks() -> None:
    provider = Scripted(good, takes_s=0.01)
    world = World(provider, price=Price(0.125), spend=SpendGuard(lambda: 0.0, 1.0))
    world.decide(mails(100))
    assert 8 <= len(provider.asked) <= 10


def test_nothing_to_decide_touches_nothing() -> None:
    assert World(Scripted(good)).decide({}) == {}


def test_closing_the_chain_closes_its_providers() -> None:
    provider = Scripted(good)
    World(provider).chain.close()
    assert provider.closed


def test_a_chain_with_another_provider_shares_the_breakers_and_leaves_the_first_as_it_was() -> None:
    old, new = Scripted(good), Scripted(good)
    world = World(old)
    first = world.chain
    world.chain = first.with_provider(new)
    world.decide(mails(2))
    assert (len(old.asked), len(new.asked)) == (0, 2)
    world.chain = first
    world.decide(mails(2))
    assert (len(old.asked), len(new.asked)) == (2, 2)
