"""What the mail tool asks of a mailbox and of the ledger. Adapters raise only errors of `triage.domain.errors`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from triage.domain.mail import Head, MailSource, Part
from triage.domain.tool import Claim, Mark, Rates, Receipt, RunRecord, Taking, WaitRecord


class Place(Protocol):
    """A folder's numbering: everything that arrives from now on gets at least `uidnext`."""

    @property
    def folder(self) -> str: ...
    @property
    def uidvalidity(self) -> int: ...
    @property
    def uidnext(self) -> int: ...


class MailReader(Protocol):
    """One read-only connection to a mailbox. Not thread-safe. Nothing it does changes a flag or a message."""

    def allow(self, seconds: float) -> None:
        """From now on no command, and no connecting, may take longer."""
        ...

    def open(self) -> None:
        """Connect and log in. Raises LoginRefused, MailboxBusy, MailboxLost, MailboxRefused."""
        ...

    def close(self) -> None:
        """Let go of the connection; never raises."""
        ...

    def place(self, folder: str) -> Place:
        """The folder's numbering now. Raises CommandRefused if there is no such folder."""
        ...

    def arrived(
        self, folder: str, first_uid: int, named: tuple[Sequence[str], str] | None
    ) -> tuple[Place, tuple[int, ...]]:
        """UIDs from `first_uid` on; with `named` only where one of these header fields holds that text."""
        ...

    def heads(self, folder: str, uids: Sequence[int], fields: Sequence[str]) -> Mapping[int, Head]:
        """Structure, flags, INTERNALDATE and the named header fields. Gone messages are absent."""
        ...

    def source(self, folder: str, head: Head, wanted: Sequence[tuple[Part, int]]) -> MailSource:
        """A message's header and the leading octets of the wanted parts."""
        ...

    @property
    def can_idle(self) -> bool: ...
    def idle(self, folder: str, seconds: float, stop: threading.Event) -> bool:
        """Wait on the server for news of the folder; True if there is some, False also where it cannot wait."""
        ...


class ToolLedger(Protocol):
    """Runs, waits, claims and receipts. Each call is one transaction, safe from any number of processes."""

    def key(self, text: str) -> str: ...
    def mark(self) -> Mark:
        """The shared clock, for counting budgets over processes."""
        ...

    def open_run(self, run: RunRecord, receipt: Receipt, max_live: int, lease_keys: Sequence[str]) -> RunRecord:
        """Begin a run as the next generation of its id, on the first of `lease_keys` that no live run holds.

        Raises ToolRefused: run_exists (no reuse_reason), too_many_runs, no_free_address."""
        ...

    def tool_run(self, run_id: str) -> RunRecord | None:
        """The newest generation of a run id."""
        ...

    def tool_runs(
        self, account: str | None = None, *, live_at: datetime | None = None, limit: int = 200
    ) -> tuple[RunRecord, ...]:
        """Newest first; with `live_at` only those that live then."""
        ...

    def live_runs(self, at: datetime, account: str | None = None) -> int:
        """How many live then."""
        ...

    def watched_runs(self, account: str, at: datetime) -> tuple[RunRecord, ...]:
        """Live runs and those whose late mail is still looked for."""
        ...

    def end_run(self, run_id: str, generation: int, reason: str, at: datetime) -> None:
        """Once; a run that has ended stays as it is. Its waits are asked to stop."""
        ...

    def spend_read(self, run: RunRecord, most: int) -> bool:
        """Count one look; False if `most` are spent."""
        ...

    def begin_wait(self, wait: WaitRecord, most: int) -> WaitRecord:
        """A new attempt. Raises ToolRefused: attempts_exhausted, wait_in_progress."""
        ...

    def wait_record(self, wait_id: str) -> WaitRecord | None: ...
    def last_wait(self, run_id: str, generation: int) -> WaitRecord | None: ...
    def hold_wait(self, wait_id: str, owner: str, hold_ms: int) -> WaitRecord | None:
        """Take or keep the wait for this caller, the time since the last mark counted in `spent_ms`.

        None if another caller holds it."""
        ...

    def save_wait(self, wait: WaitRecord, owner: str, receipt: Receipt | None, *, release: bool) -> bool:
        """Keep how far a wait came, with the receipt of the call; False if it is not the caller's any more."""
        ...

    def cancel_waits(self, run_id: str, wait_id: str | None) -> int:
        """Ask waits to stop; how many were pending."""
        ...

    def claim_message(self, claim: Claim, taking: Taking | None, receipt: Receipt, wait: WaitRecord | None) -> bool:
        """Claim, taking, receipt and the wait's end in one transaction; False if the message is somebody's already."""
        ...

    def take(self, taking: Taking, receipt: Receipt) -> bool:
        """Record that something was taken from a claimed message; False if it was taken before."""
        ...

    def redeem(self, handle_key: str, run_id: str, at: datetime) -> tuple[Claim, Taking] | None:
        """Use up a handle; None if there is none of the run's, or it was redeemed."""
        ...

    def claims(self, account: str, message_keys: Sequence[str]) -> Mapping[str, Claim]: ...
    def claims_of(self, run_id: str, generation: int) -> tuple[Claim, ...]: ...
    def takings_of(self, run_id: str, generation: int) -> tuple[Taking, ...]: ...
    def begin_request(self, run: RunRecord, most: int) -> tuple[int, str]:
        """The number and the state (new, accepted, rejected, unknown) of the request to make or to repeat.

        Raises ToolRefused: requests_exhausted."""
        ...

    def end_request(self, run: RunRecord, number: int, state: str) -> None: ...
    def request_state(self, run: RunRecord) -> str | None:
        """Of the newest request, None if there is none."""
        ...

    def record(self, receipt: Receipt) -> None: ...
    def receipts(
        self, run_id: str | None = None, limit: int = 50, *, account: str | None = None
    ) -> tuple[Receipt, ...]:
        """Newest first."""
        ...

    def last_receipt(
        self, run_id: str, generation: int, calls: Sequence[str], *, but: Sequence[str] = ()
    ) -> Receipt | None:
        """The newest of one use of a run by these calls, of no state in `but`."""
        ...

    def receipt(self, receipt_id: str) -> Receipt | None: ...
    def tool_rates(self, since: datetime, account: str | None = None) -> Rates: ...
    def login_refusal(self, account: str) -> str | None:
        """The fingerprint of the login that the server refused last, None if none is remembered."""
        ...

    def remember_login(self, account: str, refused: str | None) -> None: ...
    def issue_token(self, token_key: str, runs: Sequence[str], until: datetime) -> None: ...
    def token_runs(self, token_key: str, at: datetime) -> frozenset[str] | None:
        """The runs a bearer token is bound to, None if it is unknown or over."""
        ...


HookPost = Callable[[str, str, bytes, Mapping[str, str], float], int]
"""Method, URL, body, headers, seconds: the status. Raises OSError where no answer came. Never follows a redirect."""
