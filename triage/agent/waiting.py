"""The wait: looks at fixed slots until there is one answer, the budget is spent, or somebody says stop.

The clock that counts is the ledger's shared one: what a wait has spent never shrinks, over calls, processes and
restarts. Waking on news brings the next slot forward, once: a flood of other mail spends no more polls than silence.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from triage.agent.accepting import Acceptor
from triage.agent.answers import Call, Outcome
from triage.agent.looking import SILENCE, Look, Looker, settle_tie, why_nothing
from triage.agent.policy import Policy, PurposeKeys
from triage.agent.ports import ToolLedger
from triage.agent.result import Result
from triage.agent.slots import can_retry, slots
from triage.agent.states import Kind, Stage, State
from triage.domain.errors import MailboxChanged, MailboxError, MailboxRefused
from triage.domain.tool import WaitRecord
from triage.ports import Clock

BEAT_S = 1.0
"""So often a sleeper looks whether its wait was cancelled by another process."""
HOLD_MS = 12_000
"""So long a wait belongs to a caller who is not heard of any more."""
RENEW_MS = 4_000

Progress = Callable[[int, int, str], None]
"""Polls used, polls allowed, what the look showed: a code."""


@dataclass(slots=True)
class Signals:
    """What wakes a sleeper: `cancel` for good, `bell` also for news."""

    cancel: threading.Event = field(default_factory=threading.Event)
    bell: threading.Event = field(default_factory=threading.Event)

    def stop(self) -> None:
        self.cancel.set()
        self.bell.set()


@dataclass(slots=True)
class Waiting:
    """One call's part of a wait."""

    ledger: ToolLedger
    clock: Clock
    policy: Policy
    purpose: PurposeKeys
    looker: Looker
    acceptor: Acceptor
    call: Call
    wait: WaitRecord
    owner: str
    kind: Kind | None
    signals: Signals
    live_addresses: Callable[[], Sequence[str]]
    requested: bool
    runs_out_ms: int
    progress: Progress
    polls: list[Mapping[str, object]] = field(default_factory=list)
    counts: Mapping[str, int] = field(default_factory=dict)
    cursor: str | None = None
    _spent_at_mark: int = 0
    _mark: float = 0.0
    _beaten: float = 0.0

    def run(self) -> Result | Outcome:
        """Wait until the answer is known or the call's time is over. `self.wait` must be held by `self.owner`."""
        self._spent_at_mark, self._mark = self.wait.spent_ms, self.clock.monotonic()
        self._beaten = self._mark
        runs, delay = self.policy.runs, self.wait.start_delay_ms
        deadline = delay + _ms(self._term("deadline_seconds"))
        expiry = self.wait.spent_ms + self.runs_out_ms
        times = tuple(
            delay + at for at in slots(deadline - delay, runs.intervals, _ms(runs.min_read_seconds), self._max_polls)
        )
        call_end = self.wait.spent_ms + _ms(runs.max_call_seconds)
        last_start = call_end - _ms(runs.settle_seconds) - _ms(runs.min_read_seconds)
        end = min(deadline, expiry)
        while True:
            if self._cancelled():
                return self._outcome(State.CANCELLED, "cancelled", end)
            now = self.elapsed
            if now >= expiry and expiry < deadline:
                return self._outcome(State.EXPIRED, "run_expired", end)
            index = self._next_slot(times)
            if index is None or now >= end or self._polls_left <= 0:
                return self._timed_out(end)
            begin = times[index - 1] if index else delay
            if max(begin, now) > last_start and call_end < end:
                return self._pending(times[index], end)
            self._sleep(min(begin, end), news=False)
            target = min(times[index], end)
            woken = self._sleep(min(target, last_start) if call_end < end else target, news=True)
            if self._cancelled():
                continue
            now = self.elapsed
            if not woken and now < target:
                return self._pending(times[index], end)
            if end - now <= 0:
                continue
            self.wait = replace(self.wait, slots_done=index + 1)
            answer = self._look_and_settle("news" if woken and now < target else "slot", end)
            if answer is not None:
                return answer

    @property
    def elapsed(self) -> int:
        """Milliseconds of the wait's budget that are gone."""
        return self._spent_at_mark + max(0, int((self.clock.monotonic() - self._mark) * 1000))

    # ------------------------------------------------------------ looking

    def _look_and_settle(self, kind: str, end: int) -> Result | Outcome | None:
        look = self._look(kind, end)
        if look is None or isinstance(look, Outcome):
            return look
        decided = self._decide(look, end)
        if not isinstance(decided, Look):
            return decided
        wanted = _ms(self.policy.runs.settle_seconds)
        settle = min(wanted, end - self.elapsed - _ms(self.policy.runs.min_read_seconds))
        settled = settle >= wanted and (self._polls_left > 0 or not wanted)
        if settle > 0 and self._polls_left > 0:
            self._sleep(self.elapsed + settle, news=False)
            if self._cancelled():
                return None
            again = self._look("settle", end)
            if again is None or isinstance(again, Outcome):
                return again
            decided = self._decide(again, end)
            if not isinstance(decided, Look):
                return decided
        return self._accept(decided, "matched" if settled else "matched_unsettled", end)

    def _decide(self, look: Look, end: int) -> Look | Outcome | None:
        """The look again if it shows one message; an outcome if it shows trouble; None if it shows nothing."""
        if look.suspect:
            return self._outcome(State.REVIEW, look.suspect, end)
        if not look.candidates:
            return None
        if settle_tie(look.candidates, self.purpose.tie, self.requested) is None:
            ids = tuple(c.message_id for c in look.candidates)
            return replace(self._outcome(State.AMBIGUOUS, "several_messages", end), candidates=ids)
        return look

    def _accept(self, look: Look, reason: str, end: int) -> Result | Outcome | None:
        chosen = settle_tie(look.candidates, self.purpose.tie, self.requested)
        assert chosen is not None
        base = self._outcome(State.FOUND, reason, end)
        return self.acceptor.accept(self.call, self.purpose, chosen, self.kind, self.wait, base)

    def _look(self, kind: str, end: int) -> Look | Outcome | None:
        """One look, counted before it is made. None if the mailbox could not be read: the slot counts as failed."""
        self.wait = replace(self.wait, polls_used=self.wait.polls_used + 1)
        self.signals.bell.clear()
        if self.signals.cancel.is_set():
            self.signals.bell.set()
        at, shown = self.elapsed, "nothing"
        try:
            look = self.looker.look(max(0.05, (end - at) / 1000), self.live_addresses)
        except MailboxChanged:
            return self._outcome(State.REJECTED, "mailbox_renumbered", end)
        except MailboxRefused as refused:
            self._note(at, kind, refused.code)
            return self._outcome(State.REJECTED, refused.code, end)
        except MailboxError as error:
            self.wait = replace(self.wait, polls_failed=self.wait.polls_failed + 1)
            self._note(at, kind, error.code)
            self._beat()
            return None
        self.call.reach(Stage.EVIDENCE if look.classes else Stage.AUTHORIZED)
        self.counts, self.cursor = look.counts, look.cursor
        shown = "matched" if look.candidates else "other" if look.classes else "nothing"
        self._note(at, kind, look.suspect or shown)
        self._beat()
        return look

    def _note(self, at: int, kind: str, shown: str) -> None:
        self.polls.append({"n": self.wait.polls_used, "at_ms": at, "kind": kind, "shown": shown})
        self.progress(self.wait.polls_used, self._max_polls, shown)

    # ------------------------------------------------------------ ends

    def _timed_out(self, end: int) -> Outcome:
        left = self.purpose.max_attempts - self.wait.attempt
        outcome = self._outcome(State.TIMEOUT, self._why_nothing(), end)
        return replace(outcome, retryable=can_retry(left, self.runs_out_ms - (self.elapsed - self._spent_at_mark)))

    def _why_nothing(self) -> str:
        """The most telling cause: no answer at all, mail that did not count, or silence."""
        if self.wait.polls_used and self.wait.polls_failed >= self.wait.polls_used:
            return "mailbox_unreachable"
        reason = why_nothing(self.counts)
        if reason == SILENCE and self.wait.polls_failed:
            return "no_message_some_looks_failed"
        return reason

    def _pending(self, slot: int, end: int) -> Outcome:
        outcome = self._outcome(State.PENDING, "call_is_over", end)
        return replace(outcome, next_retry_after_ms=max(0, slot - self.elapsed), retryable=True)

    def _outcome(self, state: State, reason: str, end: int) -> Outcome:
        elapsed = self.elapsed
        return Outcome(
            state,
            reason,
            counts=self.counts,
            wait_id=self.wait.id,
            attempt=self.wait.attempt,
            polls=tuple(self.polls),
            polls_used=self.wait.polls_used,
            polls_remaining=self._polls_left,
            elapsed_ms=elapsed,
            remaining_ms=max(0, end - elapsed),
            cursor=self.cursor,
        )

    # ------------------------------------------------------------ time

    def _next_slot(self, times: Sequence[int]) -> int | None:
        """The next slot to use; of those that passed while nobody looked only the latest counts.

        With one poll left the last slot is the one that is worth it.
        """
        index = self.wait.slots_done
        if index >= len(times):
            return None
        if self._polls_left == 1:
            return len(times) - 1
        passed = [i for i in range(index, len(times)) if times[i] <= self.elapsed]
        return passed[-1] if passed else index

    def _sleep(self, until: int, *, news: bool) -> bool:
        """Sleep up to an instant of the wait; True if news, or the end of the wait, came before."""
        event = self.signals.bell if news else self.signals.cancel
        while (left := until - self.elapsed) > 0:
            if self.clock.wait(event, min(left / 1000, BEAT_S)):
                return True
            self._beat()
        return event.is_set() and news

    def _beat(self) -> None:
        """Keep the wait ours; hear whether another process wants it to end."""
        now = self.clock.monotonic()
        if (now - self._beaten) * 1000 >= RENEW_MS:
            held = self.ledger.hold_wait(self.wait.id, self.owner, HOLD_MS)
            if held is None:
                self.signals.stop()
                return
            self._spent_at_mark, self._mark = max(held.spent_ms, self.elapsed), now
            self._beaten = now
            cancelled = held.cancelled
        else:
            known = self.ledger.wait_record(self.wait.id)
            cancelled = known is None or known.cancelled
        if cancelled:
            self.signals.stop()

    def _cancelled(self) -> bool:
        return self.signals.cancel.is_set()

    @property
    def _max_polls(self) -> int:
        return int(self._term("max_polls"))

    @property
    def _polls_left(self) -> int:
        return max(0, self._max_polls - self.wait.polls_used)

    def _term(self, name: str) -> float:
        value = self.wait.terms[name]
        assert isinstance(value, int | float)
        return value


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
