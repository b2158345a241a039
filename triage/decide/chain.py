"""The chain of providers: a batch decided side by side, the first usable answer of each message counts."""

from __future__ import annotations

import contextlib
import copy
import math
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from triage.decide.batch import OUT_OF_TIME, STOPPED, Batch, Walk
from triage.decide.breaker import BreakerState, load_state
from triage.decide.cost import SpendGuard
from triage.decide.gate import Gate
from triage.decide.link import Link
from triage.domain.decision import Question, Ruling
from triage.domain.mail import PreparedMail
from triage.ports import BreakerStore, Clock, Provider

_POLL_S = 0.2
PROVEN_FOR_S = 60.0
"""How long a provider that answered is taken to be up."""
STOP_WAIT_S = 3.0
"""How long a run that was asked to stop waits for the answers that are under way."""
_GRACE_S = 2.0
"""How long past the batch's deadline a provider is waited for before its message is given up."""


class Chain:
    """The Decider (see `triage.ports`). `message_deadline_s` bounds one message: all providers, retries and waits
    together; `concurrency` how many messages are asked about side by side."""

    def __init__(
        self,
        links: Sequence[Link],
        *,
        clock: Clock,
        breakers: BreakerStore,
        spend: SpendGuard,
        concurrency: int = 20,
        message_deadline_s: float = 20.0,
    ) -> None:
        self.links = tuple(links)
        self._clock = clock
        self._breakers = breakers
        self._spend = spend
        self._concurrency = concurrency
        self._message_deadline_s = message_deadline_s
        self._answered_at: dict[int, float] = {}

    def decide(
        self,
        question: Question,
        mails: Mapping[int, PreparedMail],
        *,
        deadline: float,
        stop: threading.Event,
        on_rulings: Callable[[Mapping[int, Ruling]], None],
    ) -> None:
        """Rule on every mail (see `triage.ports.Decider`)."""
        if not mails:
            return
        self._spend.refresh()
        stored = [load_state(self._breakers.load_breaker(link.breaker_key)) for link in self.links]
        gates = [Gate(state, self._clock, proven=self._is_proven(i)) for i, state in enumerate(stored)]
        batch = Batch(
            question,
            tuple(zip(self.links, gates, strict=True)),
            clock=self._clock,
            spend=self._spend,
            deadline=deadline,
            message_deadline_s=self._message_deadline_s,
            stop=stop,
        )
        pending = dict.fromkeys(_order(list(mails), stored))
        held: dict[int, Walk] = {}
        _start(batch, {uid: mails[uid] for uid in pending}, self._concurrency)
        until = deadline + _GRACE_S
        try:
            while pending and self._clock.monotonic() <= until:
                if stop.is_set():
                    until = min(until, self._clock.monotonic() + STOP_WAIT_S)
                known: dict[int, Ruling] = {}
                for uid, walk in _ended(batch.done):
                    del pending[uid]
                    ruling = batch.ruling(walk)
                    if ruling is None:
                        held[uid] = walk
                    else:
                        known[uid] = ruling
                self._save(stored, gates)
                if known:
                    on_rulings(known)
            late = {uid: batch.late_ruling(walk) for uid, walk in held.items()}
            why = STOPPED if stop.is_set() else OUT_OF_TIME
            late |= {uid: Ruling(None, asked=False, reason=why) for uid in pending}
            if late:
                on_rulings(late)
        finally:
            batch.halt.set()
            self._remember(gates)

    def with_provider(self, provider: Provider) -> Chain:
        """The same chain, with its breakers, its spending and its connections, but this provider in place of those of
        its name."""
        other = copy.copy(self)
        other.links = tuple(
            replace(link, provider=provider) if link.provider.name == provider.name else link for link in self.links
        )
        return other

    def close(self) -> None:
        for link in self.links:
            link.provider.close()

    def _is_proven(self, position: int) -> bool:
        return self._clock.monotonic() - self._answered_at.get(position, -math.inf) < PROVEN_FOR_S

    def _remember(self, gates: Sequence[Gate]) -> None:
        """Who answered in this batch: a batch right after it (a backfill's) need not feel its way again."""
        for position, gate in enumerate(gates):
            if gate.shut:
                self._answered_at.pop(position, None)
            elif gate.answered:
                self._answered_at[position] = self._clock.monotonic()

    def _save(self, stored: list[BreakerState], gates: Sequence[Gate]) -> None:
        for i, (link, gate) in enumerate(zip(self.links, gates, strict=True)):
            state = gate.state
            if state != stored[i]:
                self._breakers.save_breaker(link.breaker_key, state.to_json())
                stored[i] = state


def _start(batch: Batch, mails: Mapping[int, PreparedMail], concurrency: int) -> None:
    """Let threads work through the mails, in their order. They are daemons: a server that is slow to answer holds up
    neither the end of a run nor the end of the process."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for uid in mails:
        waiting.put(uid)

    def work() -> None:
        with contextlib.suppress(queue.Empty):
            while not batch.halt.is_set():
                uid = waiting.get_nowait()
                batch.run(uid, mails[uid])

    for i in range(min(concurrency, len(mails))):
        threading.Thread(target=work, name=f"decide-{i}", daemon=True).start()


def _ended(done: queue.SimpleQueue[tuple[int, Walk]]) -> list[tuple[int, Walk]]:
    """What has ended by now; waits a moment for the first."""
    ended: list[tuple[int, Walk]] = []
    with contextlib.suppress(queue.Empty):
        ended.append(done.get(timeout=_POLL_S))
        while True:
            ended.append(done.get_nowait())
    return ended


def _order(uids: list[int], states: Sequence[BreakerState]) -> list[int]:
    """The order of asking. While the first breaker is half-open another message probes each time, so that one message
    the server cannot stomach does not keep it open for ever."""
    probes = states[0].probes % len(uids) if states and states[0].open else 0
    return uids[probes:] + uids[:probes]
