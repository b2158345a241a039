"""What the core asks of the world. Adapters keep these promises; nothing here knows a library.

All calls are synchronous. An adapter raises only errors of `triage.domain.errors`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Protocol

from triage.domain.decision import Answer, Failure, Question, Ruling
from triage.domain.mail import Head, MessageRef, PartBytes, PreparedMail
from triage.domain.record import DecisionRecord, Fire, Run, StepRecord, Trigger


class Clock(Protocol):
    """Time, injected. `now` is aware UTC and may step; `monotonic` (seconds) never goes back."""

    def now(self) -> datetime: ...
    def monotonic(self) -> float: ...
    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        """Sleep until `event` is set (True) or the time has passed (False)."""
        ...


# ---------------------------------------------------------------- mailbox


@dataclass(frozen=True, slots=True)
class MailboxFacts:
    """What the server said of itself and of the inbox when it was opened."""

    inbox: str
    uidvalidity: int
    messages: int
    read_only: bool
    keeps_keywords: bool
    keywords: frozenset[str]  # every keyword SELECT's FLAGS and PERMANENTFLAGS list
    capabilities: frozenset[str]
    archive: str | None  # None: none found, it would be created as `archive_to_create`
    archive_to_create: str
    sent: str | None
    highest_modseq: int  # 0 without CONDSTORE
    label_store: str  # keyword | gmail | folder


@dataclass(frozen=True, slots=True)
class Located:
    """An earlier message found by Message-ID: where it is and what it bears now. `headers` holds THREAD_FIELDS only."""

    ref: MessageRef
    message_id: str
    flags: frozenset[str]
    headers: bytes
    thread_id: str = ""
    received: datetime | None = None


@dataclass(frozen=True, slots=True)
class Labelled:
    """What came of storing labels: stored, given way (somebody labelled it meanwhile), gone, refused by the server.

    `flags` is what a stored message bore right afterwards; a message that was moved to its label's folder has none.
    """

    stored: frozenset[int]
    yielded: Mapping[int, frozenset[str]]
    gone: frozenset[int]
    refused: Mapping[int, str]
    flags: Mapping[int, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Moved:
    """What came of archiving. `to` maps UIDs to their new place where the server told it (COPYUID), else None."""

    moved: Mapping[int, MessageRef | None]
    gone: frozenset[int]
    refused: Mapping[int, str]


class Mailbox(Protocol):
    """One connection to one account's mailbox. Not thread-safe. Reading never changes a flag (always PEEK)."""

    def open(self) -> MailboxFacts:
        """Connect, log in, discover, SELECT the inbox read-write. Idempotent while connected."""
        ...

    def close(self) -> None:
        """Log out if the connection still answers; never raises."""
        ...

    def select_unlabelled(
        self,
        labels: Sequence[str],
        since: date | None,
        limit: int,
        *,
        before: date | None = None,
        newest_first: bool = False,
    ) -> tuple[int, ...]:
        """UIDs of at most `limit` undeleted inbox messages with none of `labels`, received (INTERNALDATE) on or after
        `since` and before `before`. Oldest first unless `newest_first`. The answer is bounded on any mailbox size."""
        ...

    def fetch_heads(self, uids: Sequence[int]) -> Mapping[int, Head]:
        """Headers, structure, flags of inbox messages in one command. Messages that are gone are absent."""
        ...

    def fetch_texts(self, wanted: Mapping[int, Sequence[tuple[str, int]]]) -> Mapping[int, Mapping[str, PartBytes]]:
        """For each UID the leading bytes of the named sections: {uid: [(section, max_bytes)]}. Pipelined.
        `PartBytes.part` is a stub with the path only. A section that is missing is absent."""
        ...

    def fetch_whole(self, uid: int, max_bytes: int) -> bytes | None:
        """The first `max_bytes` of one inbox message; for a message whose structure cannot be read."""
        ...

    def locate(self, message_ids: Sequence[str], hints: Mapping[str, MessageRef]) -> Mapping[str, tuple[Located, ...]]:
        """Find messages by exact Message-ID: `hints` verified first, then narrow windows of inbox, archive and sent
        (the whole mailbox only if the adapter was configured so). The inbox is selected again afterwards."""
        ...

    def locate_threads(self, thread_ids: Sequence[str]) -> Mapping[str, tuple[Located, ...]]:
        """Messages of a server-side thread (X-GM-THRID, OBJECTID); empty where the server has none."""
        ...

    def flags_of(self, uids: Sequence[int]) -> Mapping[int, Head]:
        """Current flags and MODSEQ of inbox messages (other fields of Head empty). Gone messages are absent."""
        ...

    def store_labels(self, plan: Mapping[int, str], heads: Mapping[int, Head], others: Sequence[str]) -> Labelled:
        """Put one label (keyword) on each message, one STORE a label, pipelined, guarded by UNCHANGEDSINCE where the
        server has CONDSTORE, else by looking at the flags right before. A message that bears any of `others` (all the
        account's labels) by then is left as it is. Verified by reading back: `stored` really bear it."""
        ...

    def archive(self, uids: Sequence[int]) -> Moved:
        """Move inbox messages to the archive: MOVE, else COPY and UID EXPUNGE of just those UIDs. Never a bare
        EXPUNGE, never \\Deleted when the COPY failed. Creates the archive if it is missing."""
        ...

    # the rest serves check, audit, undo, corrections and the mail tool
    def search(self, mailbox: str, criteria: Sequence[str], *, window: int = 5000) -> tuple[int, ...]:
        """UIDs in any mailbox (opened read-only) that match ASCII search keys, within the last `window` messages."""
        ...

    def fetch_flags(self, mailbox: str, uids: Sequence[int]) -> Mapping[int, Head]:
        """Flags, INTERNALDATE and chosen headers in any mailbox (opened read-only)."""
        ...

    def remove_labels(self, mailbox: str, plan: Mapping[int, Sequence[str]]) -> frozenset[int]:
        """Take labels off; the UIDs that no longer bear them."""
        ...

    def move_back(self, uids: Sequence[int]) -> Moved:
        """Move messages of the archive back to the inbox."""
        ...

    def oldest_unlabelled(self, labels: Sequence[str], since: date | None) -> datetime | None:
        """INTERNALDATE of the oldest message `select_unlabelled` would return, None if there is none."""
        ...


# ---------------------------------------------------------------- deciding


class Provider(Protocol):
    """One decision model. Thread-safe: a batch asks side by side.

    `name` is the adapter ("systemone", "embedded", ...). Raises nothing: a failed ask is a Failure value.
    """

    name: str
    model: str

    def ask(self, question: Question, mail: PreparedMail, deadline: float) -> Answer | Failure:
        """Ask once, with its own bounded retries. `deadline` is a `Clock.monotonic` instant."""
        ...

    def close(self) -> None: ...


class Decider(Protocol):
    """The chain as the pipeline sees it."""

    def decide(
        self,
        question: Question,
        mails: Mapping[int, PreparedMail],
        *,
        deadline: float,
        stop: threading.Event,
        on_rulings: Callable[[Mapping[int, Ruling]], None],
    ) -> None:
        """Rule on every mail side by side; `on_rulings` is called from the calling thread with all that have become
        known since its last call, each mail once, so that they can be made durable at once. After `stop` no new mail is
        asked; the untouched rest is ruled `asked=False`. The breaker and the spend cap stop asking too (DESIGN 6)."""
        ...


# ---------------------------------------------------------------- ledger


class RunQueue(Protocol):
    """DESIGN 8. Every call is safe from any number of processes."""

    def enqueue(
        self, account: str, trigger: Trigger, fire_time: datetime, options: Mapping[str, str] | None = None
    ) -> Run | None:
        """Insert one fire, as `fire` does; None if (account, fire time) is there already."""
        ...

    def fire(self, fires: Sequence[Fire]) -> Mapping[str, str]:
        """Insert scheduled fires, one an account; the run's id by account for those that were not there already.
        Waiting scheduled fires of an account coalesce into the newest one, the older ones recorded as coalesced."""
        ...

    def claim(
        self, owner: str, lease: timedelta, accounts: Sequence[str] | None = None, run_id: str | None = None
    ) -> Run | None:
        """Take the oldest queued run whose account has none running (or exactly `run_id`), or None."""
        ...

    def renew(self, run_id: str, owner: str, lease: timedelta) -> bool:
        """Extend the lease; False if it is no longer ours (or has already run out)."""
        ...

    def holds(self, run_id: str, owner: str) -> bool:
        """Is the run still ours, with time left?"""
        ...

    def finish(
        self,
        run_id: str,
        owner: str,
        *,
        failed: str | None = None,
        error: str | None = None,
        counts: Mapping[str, int] | None = None,
    ) -> bool:
        """Close a run as done, or failed with a reason code; False if it was not ours any more."""
        ...

    def expire(self) -> tuple[Run, ...]:
        """Mark every run whose lease ran out as failed (`cut`); the runs so marked."""
        ...

    def depth(self, account: str | None = None) -> int: ...


class Journal(Protocol):
    """What was decided and what was about to be done. Each call is durable when it returns."""

    def key(self, text: str) -> str:
        """The keyed fingerprint (32 hex digits) of a text, e.g. of a MessageRef or a Message-ID; "" of ""."""
        ...

    def record_decisions(self, records: Sequence[DecisionRecord]) -> None:
        """Decisions of one run, all of them or none. Raises LeaseLost if the run is over, LedgerError if one of the
        messages has an unapplied decision already."""
        ...

    def mark_labelled(self, decision_ids: Sequence[str], at: datetime) -> None: ...
    def mark_archived(self, archived: Mapping[str, MessageRef | None], at: datetime) -> None: ...
    def mark_closed(self, decision_ids: Sequence[str], reason: str, at: datetime) -> None:
        """These decisions will not be finished, and why (gone, person_touched, superseded, ...)."""
        ...

    def mark_recovered(self, decision_ids: Sequence[str], run_id: str, at: datetime) -> None: ...
    def previewed(self, account: str, category_set: str, message_keys: Sequence[str]) -> frozenset[str]:
        """Which of these messages were decided in preview already, under the same category set."""
        ...

    def unfinished(self, account: str, limit: int = 500) -> tuple[DecisionRecord, ...]:
        """Unclosed decisions whose label or archive is not recorded as done, oldest first."""
        ...

    def latest_decisions(self, account: str, message_id_keys: Sequence[str]) -> Mapping[str, DecisionRecord]:
        """By Message-ID fingerprint the newest decision that was labelled: an ancestor's hint and confidence."""
        ...

    def record_step(self, run_id: str, step: StepRecord) -> None:
        """Durable with the next write of this process at the latest when the run is finished."""
        ...

    def spent_usd(self, since: datetime) -> float: ...


class Records(Protocol):
    """Reading back for show, report and audit."""

    def runs(self, account: str | None = None, limit: int = 20, since: datetime | None = None) -> tuple[Run, ...]: ...
    def last_fires(self, accounts: Sequence[str]) -> Mapping[str, datetime]:
        """The latest fire time of each account's schedule, whatever became of it; absent if it never fired."""
        ...

    def run(self, run_id: str) -> Run | None:
        """By id or unique prefix of it."""
        ...

    def steps(self, run_id: str) -> tuple[StepRecord, ...]: ...
    def decisions(self, run_id: str) -> tuple[DecisionRecord, ...]: ...


class Ledger(RunQueue, Journal, Records, Protocol):
    """The run records: SQLite on one machine, PostgreSQL on many."""

    def close(self) -> None: ...


class BreakerStore(Protocol):
    """Breaker state that survives restarts: a small JSON value by provider key."""

    def load_breaker(self, key: str) -> Mapping[str, object] | None: ...
    def save_breaker(self, key: str, value: Mapping[str, object]) -> None: ...
