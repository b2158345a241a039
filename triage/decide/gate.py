"""One batch's door to one provider: the breaker, and few asks at once until the provider has shown that it is up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

from triage.decide.breaker import TRIP_AFTER, BreakerState
from triage.domain.decision import Answer, Failure, FailureKind
from triage.ports import Clock

_POLL_S = 0.05


class Gate:
    """Thread-safe. Lives for one batch; `state` is what to store.

    Until a provider has answered, only as many asks run side by side as it takes to trip the breaker (one, if the
    breaker was open): a dead server sees a handful of calls, not the whole batch. One that is `proven`, by a batch that
    has just ended, is spared that. Once the breaker opens, asks under way finish and no new one starts.
    """

    def __init__(self, state: BreakerState, clock: Clock, *, proven: bool = False) -> None:
        self.state = state
        self.half_open = state.open
        self.answered = False
        self.shut = False
        self._clock = clock
        self._alive = proven and state == BreakerState()
        self._under_way = 0
        self._changed = threading.Condition()
        self._probe_lock = threading.Lock()
        self._probed: Answer | Failure | None = None

    def admit(self, give_up: Callable[[], bool]) -> bool:
        """Wait for a turn; False if the breaker is open or `give_up` says so. True is followed by report or release."""
        with self._changed:
            while not self.shut and not give_up():
                if self._alive or self._under_way < self._trials():
                    self._under_way += 1
                    return True
                self._changed.wait(_POLL_S)
            return False

    def _trials(self) -> int:
        return 1 if self.half_open else TRIP_AFTER - self.state.failures

    def release(self) -> None:
        """The admitted ask was not made after all."""
        with self._changed:
            self._under_way -= 1
            self._changed.notify_all()

    def report(self, result: Answer | Failure) -> None:
        """What came of an admitted ask."""
        failure = result if isinstance(result, Failure) else None
        with self._changed:
            self._under_way -= 1
            self.answered = self.answered or failure is None
            if not self.shut:
                self.state = self.state.after(failure, self._clock.now())
                self.shut = self.state.open
                self._alive = self._alive or self.state == BreakerState()
                self.half_open = self.half_open and not self._alive
            self._changed.notify_all()

    def weigh(self, failure: Failure, probe: Callable[[], Answer | Failure]) -> Failure:
        """A failure as what it is: one mail's, or the server's whatever the mail. `probe` asks about a mail of ours.

        A refusal of one mail, before anything was answered in this batch, is checked once: so a wrong model name that a
        server reports as "bad request" does not cost the whole inbox its categories. A 403 is checked each time:
        moderation and firewalls answer with it too, and one hostile mail must not stop the asking.
        """
        if failure.code == "forbidden":
            with self._probe_lock:
                fine = isinstance(probe(), Answer)
            message = "The server forbids this one mail (403)."
            return replace(failure, kind=FailureKind.MESSAGE, message=message) if fine else failure
        if failure.kind is not FailureKind.MESSAGE:
            return failure
        with self._probe_lock:
            if self.answered:
                return failure
            if self._probed is None:
                self._probed = probe()
            probed = self._probed
        if isinstance(probed, Failure) and probed.kind in (FailureKind.CONFIGURATION, FailureKind.MESSAGE):
            return replace(failure, kind=FailureKind.CONFIGURATION, code=probed.code, message=probed.message)
        return failure
