"""One batch on its way along the chain: what its worker threads share, and what their findings amount to."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from triage.decide.cost import FREE, SpendGuard
from triage.decide.gate import Gate
from triage.decide.link import Link
from triage.decide.remote import RemoteProvider
from triage.domain.decision import Answer, Failure, FailureKind, Question, Ruling
from triage.domain.mail import PreparedMail
from triage.ports import Clock

STOPPED = "The run was asked to stop."
OUT_OF_TIME = "The time for this batch was used up."


@dataclass(slots=True)
class Walk:
    """One message's way along the chain. `strained` holds the gates at which it failed for a passing reason, `unasked`
    says why the run left it before the end, if it did: then it is as if it had not been asked."""

    answer: Answer | None = None
    position: int | None = None
    failures: list[Failure] = field(default_factory=list)
    strained: list[Gate] = field(default_factory=list)
    unasked: str = ""


class Batch:
    """`run` is called in worker threads and puts what it found into `done`; the rest belongs to the calling thread."""

    def __init__(
        self,
        question: Question,
        doors: Sequence[tuple[Link, Gate]],
        *,
        clock: Clock,
        spend: SpendGuard,
        deadline: float,
        message_deadline_s: float,
        stop: threading.Event,
    ) -> None:
        self.done: queue.SimpleQueue[tuple[int, Walk]] = queue.SimpleQueue()
        self.halt = threading.Event()
        self._question = question
        self._doors = doors
        self._clock = clock
        self._spend = spend
        self._deadline = deadline
        self._message_deadline_s = message_deadline_s
        self._stop = stop

    def run(self, uid: int, mail: PreparedMail) -> None:
        self.done.put((uid, self._walk(mail)))

    def ruling(self, walk: Walk) -> Ruling | None:
        """The ruling on a message if it is certain by now; None if the rest of the batch must tell."""
        failures = tuple(walk.failures)
        if walk.answer is not None:
            return Ruling(walk.answer, walk.position, failures)
        if walk.unasked:
            return Ruling(None, failures=failures, asked=False, reason=walk.unasked)
        if any(f.kind in (FailureKind.MESSAGE, FailureKind.UNUSABLE) for f in failures):
            return Ruling(None, failures=failures)
        return None if failures else Ruling(None, asked=False, reason=self._outage())

    def late_ruling(self, walk: Walk) -> Ruling:
        """A message whose every try failed for a passing reason: its own fault only if the same provider, still in
        service, answered other messages of this batch; else an outage, and it waits for the next run."""
        failures = tuple(walk.failures)
        if any(gate.answered and not gate.shut for gate in walk.strained):
            return Ruling(None, failures=failures)
        return Ruling(None, failures=failures, asked=False, reason=self._outage() or failures[-1].message)

    def _walk(self, mail: PreparedMail) -> Walk:
        walk = Walk()
        until: float | None = None
        for link, gate in self._doors:
            if not gate.admit(self._over):
                walk.unasked = self._why_over()
                if walk.unasked:
                    break
                continue
            if link.paid and not self._spend.admit():
                gate.release()
                walk.unasked = self._spend.reason
                break
            if until is None:
                until = min(self._deadline, self._clock.monotonic() + self._message_deadline_s)
            result = self._ask(link, gate, mail, until)
            gate.report(result)
            if link.paid:
                self._spend.settle(result.cost_usd)
            if isinstance(result, Answer):
                walk.answer, walk.position = result, link.position
                return walk
            walk.failures.append(result)
            if result.kind is FailureKind.TRANSIENT:
                walk.strained.append(gate)
                walk.unasked = self._why_over()
            if walk.unasked or self._clock.monotonic() >= until:
                break
        return walk

    def _ask(self, link: Link, gate: Gate, mail: PreparedMail, until: float) -> Answer | Failure:
        provider = link.provider
        try:
            if not isinstance(provider, RemoteProvider):
                return _priced(link, provider.ask(self._question, mail, until))
            result = _priced(link, provider.ask(self._question, mail, until, self._stop))
            return result if isinstance(result, Answer) else self._weigh(link, provider, gate, result, until)
        except Exception as error:  # noqa: BLE001 - a provider's bug is one message's failure, never the batch's
            message = f"{provider.name} failed with {type(error).__name__}. Please report this."
            return Failure(provider.name, FailureKind.TRANSIENT, "internal_error", message)

    def _weigh(self, link: Link, provider: RemoteProvider, gate: Gate, failure: Failure, until: float) -> Failure:
        """The failure as what it is (see `Gate.weigh`); what a probe cost is charged to the mail that needed it."""
        probes: list[Answer | Failure] = []

        def probe() -> Answer | Failure:
            probes.append(_priced(link, provider.probe(self._question, until)))
            return probes[-1]

        weighed = gate.weigh(failure, probe)
        return replace(weighed, cost_usd=weighed.cost_usd + sum(p.cost_usd for p in probes))

    def _over(self) -> bool:
        return self.halt.is_set() or bool(self._why_over())

    def _why_over(self) -> str:
        if self._stop.is_set():
            return STOPPED
        return OUT_OF_TIME if self._clock.monotonic() >= self._deadline else ""

    def _outage(self) -> str:
        shut = [(link, gate) for link, gate in self._doors if gate.shut]
        return " ".join(f"{link.provider.name} is not asked: {gate.state.message}" for link, gate in shut)


def _priced(link: Link, result: Answer | Failure) -> Answer | Failure:
    """With its cost: a server charges for an answer whether it can be used or not."""
    price = link.price_of(result.model) or FREE
    return replace(result, cost_usd=price.usd(result.input_tokens, result.output_tokens))
