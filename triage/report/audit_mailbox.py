"""The audit's look into the mailbox: labels as they stand on messages, held against the records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from triage.domain.category import CategorySet
from triage.domain.mail import Head, MessageRef
from triage.domain.record import DecisionRecord
from triage.ports import Mailbox, MailboxFacts
from triage.report.audit import Chain, Invariant
from triage.threads.headers import read_thread_headers

WINDOW = 5_000
MOST = 2_000
"""Labelled messages looked at in each mailbox: the newest of the last 5,000 messages."""
_RECENT = 5_000


class Book(Protocol):
    """What it asks of the ledger."""

    def key(self, text: str) -> str: ...
    def recent_labelled(self, account: str, since: datetime, limit: int) -> tuple[DecisionRecord, ...]: ...
    def explained(self, account: str, keys: Sequence[str]) -> Mapping[str, DecisionRecord]: ...
    def decisions_by_message(self, account: str, key: str) -> tuple[DecisionRecord, ...]: ...
    def label_ids_ever(self, account: str) -> frozenset[str]: ...
    def remembered_since(self, account: str) -> datetime | None: ...


@dataclass(frozen=True, slots=True)
class Looked:
    """Labelled messages of inbox and archive, and how the search was bounded, in words."""

    facts: MailboxFacts
    heads: tuple[Head, ...]
    words: str


def look(mailbox: Mailbox, categories: CategorySet, since: datetime) -> Looked:
    """Find the labelled messages that arrived since, in inbox and archive: SEARCH and FETCH each, nothing is changed.

    Raises MailboxError.
    """
    facts = mailbox.open()
    if facts.label_store == "folder":
        return Looked(facts, (), "labels are folders here: only the records were checked")
    labels = [*categories.labels, *_foreign(facts, categories)]
    heads: list[Head] = []
    for box in (facts.inbox, facts.archive):
        if box is None:
            continue
        uids = mailbox.search(box, [f"SINCE {_day(since)}", _any_of(labels, facts.label_store)], window=WINDOW)
        heads += mailbox.fetch_flags(box, uids[-MOST:]).values() if uids else ()
    boxes = " and ".join(box for box in (facts.inbox, facts.archive) if box)
    words = (
        f"{len(heads):,} labelled messages in {boxes} that arrived since {since:%Y-%m-%d} "
        f"(at most {MOST:,} among the last {WINDOW:,} messages of each)"
    )
    return Looked(facts, tuple(heads), words)


def judge_mailbox(
    looked: Looked, book: Book, account: str, categories: CategorySet, since: datetime, chain: Chain
) -> tuple[Invariant, ...]:
    """What the labels as they stand say of the invariants 1, 2 and 3.

    A label of ours always has its decision recorded first. So a label without one was put there by another hand, as
    long as the chain shows that no record is missing; if it shows that one is, nobody can tell, and it is reported.
    """
    known = _Known(book, account, since, looked.heads)
    ever = book.label_ids_ever(account)
    remembered = book.remembered_since(account) if chain.pruned else None
    twice: list[str] = []
    doubtful: list[str] = []
    strange: list[str] = []
    by_hand = forgotten = 0
    for head in looked.heads:
        name = f"account {account}, message {head.ref}"
        strange += (f"{name}: bears {label}, which is no configured id" for label in _unknown(head, categories, ever))
        ids = categories.ids_on(head.flags)
        if not ids:
            continue
        record = known.of(head)
        if record is None:
            if remembered is not None and head.received is not None and head.received < remembered:
                forgotten += 1
            elif chain.holds:
                by_hand += 1
            else:
                twice.append(f"{name}: bears {', '.join(ids)}, no decision explains it, and records are missing")
        else:
            if len(ids) > 1 and set(ids) <= {d.label_id for d in known.all_of(record) if d.labelled_at is not None}:
                twice.append(f"{name}: bears {' and '.join(ids)}, both decided")
            if _hidden(head, record, ids, looked.facts):
                doubtful.append(f"{name}: archived and unread, but decision {record.id} says that it stays")
    notes = []
    if by_hand:
        notes.append(f"account {account}: {by_hand:,} labels were put there by another hand: no decision is missing")
    if forgotten:
        notes.append(f"account {account}: {forgotten:,} labels are older than what the records remember")
    count = len(looked.heads)
    return (
        Invariant(1, count, tuple(twice), tuple(notes)),
        Invariant(2, sum(h.ref.mailbox == looked.facts.archive for h in looked.heads), tuple(doubtful)),
        Invariant(3, count, tuple(strange)),
    )


class _Known:
    """Which decision explains a message: by where it lies, where it was put, or its Message-ID."""

    def __init__(self, book: Book, account: str, since: datetime, heads: Sequence[Head]) -> None:
        self._book, self._account = book, account
        self._places: dict[MessageRef, DecisionRecord] = {}
        for record in reversed(book.recent_labelled(account, since, _RECENT)):
            self._places[record.archived_ref or record.ref] = record
        left = [head for head in heads if head.ref not in self._places]
        self._keys = {head.ref: self._names(head) for head in left}
        self._found = book.explained(account, [key for keys in self._keys.values() for key in keys])

    def of(self, head: Head) -> DecisionRecord | None:
        if head.ref in self._places:
            return self._places[head.ref]
        return next((self._found[key] for key in self._keys[head.ref] if key in self._found), None)

    def all_of(self, record: DecisionRecord) -> tuple[DecisionRecord, ...]:
        return self._book.decisions_by_message(self._account, record.message_key)

    def _names(self, head: Head) -> tuple[str, ...]:
        return self._book.key(str(head.ref)), self._book.key(read_thread_headers(head.headers).message_id)


def _hidden(head: Head, record: DecisionRecord, ids: Sequence[str], facts: MailboxFacts) -> bool:
    """In the archive, by nobody's decision, and nobody has read it."""
    seen = "\\seen" in {flag.casefold() for flag in head.flags}
    stays = record.archived_at is None and not record.archive
    return head.ref.mailbox == facts.archive and stays and not seen and tuple(ids) == (record.label_id,)


def _unknown(head: Head, categories: CategorySet, ever: frozenset[str]) -> Iterator[str]:
    if not categories.parent:
        return
    prefix = f"{categories.parent}/".casefold()
    for flag in sorted(head.flags):
        if flag.casefold().startswith(prefix) and categories.id_of(flag) is None and flag[len(prefix) :] not in ever:
            yield flag


def _foreign(facts: MailboxFacts, categories: CategorySet) -> list[str]:
    """Keywords under our parent that no category of ours explains."""
    prefix = f"{categories.parent}/".casefold()
    if not categories.parent or facts.label_store != "keyword":
        return []
    return sorted(k for k in facts.keywords if k.casefold().startswith(prefix) and categories.id_of(k) is None)[:100]


def _any_of(labels: Sequence[str], store: str) -> str:
    terms = [f"KEYWORD {label}" if store == "keyword" else f'X-GM-LABELS "{label}"' for label in labels]
    return "OR " * (len(terms) - 1) + " ".join(terms)


def _day(moment: datetime) -> str:
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    return f"{moment.day}-{months[moment.month - 1]}-{moment.year}"
