"""What is remembered of an account so that a server is not stormed: a refused login, a request to come back later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Protocol

from triage.domain.errors import LoginRefused, MailboxBusy, TriageError
from triage.domain.record import Run, Trigger
from triage.ports import Clock

FIRST_PAUSE = timedelta(minutes=1)
LONGEST_PAUSE = timedelta(hours=1)


class AccountStates(Protocol):
    def account_state(self, account: str) -> Mapping[str, object]: ...
    def save_account_state(self, account: str, value: Mapping[str, object]) -> None: ...


class AccountGate:
    """`triage.schedule.worker.Gate` over the ledger.

    `login_of` fingerprints how an account logs in (host, user, secret): a refused login is tried again only once that
    changes. A manual run ignores a pause, never a refused login.
    """

    def __init__(self, states: AccountStates, login_of: Callable[[str], str], clock: Clock) -> None:
        self._states, self._login_of, self._clock = states, login_of, clock

    def refusal(self, account: str) -> LoginRefused | None:
        """Was exactly this login refused before?"""
        state = self._states.account_state(account)
        if state.get("refused_login") and state["refused_login"] == self._login_of(account):
            return LoginRefused(
                "The server refused this login before, so it is not tried again. Correct username or password; "
                "the next run then logs in."
            )
        return None

    def closed(self, run: Run) -> TriageError | None:
        refusal = self.refusal(run.account)
        if refusal is not None:
            return refusal
        until = _instant(self._states.account_state(run.account).get("busy_until"))
        now = self._clock.now()
        # A pause further off than any we make was written before the clock was set back.
        if until is not None and now < until <= now + LONGEST_PAUSE and run.trigger is not Trigger.MANUAL:
            return MailboxBusy(f"The server asked for a pause until {until:%Y-%m-%d %H:%M} UTC.")
        return None

    def refused(self, run: Run, error: LoginRefused) -> None:
        del error
        self._states.save_account_state(run.account, {"refused_login": self._login_of(run.account)})

    def busy(self, run: Run, error: MailboxBusy) -> None:
        """Pause as long as the server asked for, else twice as long each time, up to an hour."""
        times = self._states.account_state(run.account).get("busy_times", 0)
        n = times if isinstance(times, int) else 0
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(n, 6))
        if error.retry_after_s is not None:
            pause = min(LONGEST_PAUSE, timedelta(seconds=error.retry_after_s))
        until = self._clock.now() + pause
        self._states.save_account_state(run.account, {"busy_until": until.isoformat(), "busy_times": n + 1})

    def passed(self, run: Run) -> None:
        if self._states.account_state(run.account):
            self._states.save_account_state(run.account, {})


def _instant(value: object) -> datetime | None:
    return datetime.fromisoformat(value) if isinstance(value, str) else None
