"""Labels that people confirmed, with their mail, read from the mailbox: what a model can be measured on.

A label counts if a person put it there (no decision of ours explains it), if a person changed it, or if the message was
read since it was decided and the label was left standing. Two searches and two fetches, then one fetch a message; the
windows are bounded and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from triage.domain.category import CategorySet
from triage.domain.correction import Correction, CorrectionKind
from triage.domain.errors import MailboxRefused
from triage.domain.mail import HEADER_FIELDS, Head, MailSource, Part
from triage.domain.record import DecisionRecord
from triage.ports import Mailbox, MailboxFacts
from triage.prepare import choose_parts
from triage.threads.headers import read_thread_headers

_AGAINST = frozenset(CorrectionKind) - {CorrectionKind.CONFIRMED}


class Hand(StrEnum):
    """How a person confirmed a label. `LEFT` is a weak yes, and it favours the model that decided."""

    PUT = "put"
    CHANGED = "changed"
    LEFT = "left"


class Shelf(Protocol):
    """A read-only connection that fetches from any folder."""

    def open(self) -> None: ...
    def heads(self, folder: str, uids: Sequence[int], fields: Sequence[str]) -> Mapping[int, Head]: ...
    def source(self, folder: str, head: Head, wanted: Sequence[tuple[Part, int]]) -> MailSource: ...


class Book(Protocol):
    """What the ledger knows of decisions and of what became of them."""

    def key(self, text: str) -> str: ...
    def explained(self, account: str, keys: Sequence[str]) -> Mapping[str, DecisionRecord]: ...
    def corrections_of(self, decision_ids: Sequence[str]) -> tuple[Correction, ...]: ...


@dataclass(frozen=True, slots=True)
class Window:
    """How far to look: the newest `limit` labelled messages of inbox and archive each, among the last `messages`.

    From before `remembered_since` the ledger knows no decision, so a label of that time proves nobody's hand.
    """

    remembered_since: datetime
    limit: int = 500
    messages: int = 5000


@dataclass(frozen=True, slots=True)
class Sighting:
    """A message that bears a label of ours, the decision about it if there is one, and what became of that. `known`
    says that a decision would be remembered."""

    head: Head
    record: DecisionRecord | None
    said: frozenset[CorrectionKind]
    known: bool


@dataclass(frozen=True, slots=True)
class ConfirmedMail:
    """A message, the id of the label it bears by a person's will, and how we know."""

    head: Head
    label_id: str
    hand: Hand
    mail: MailSource


def confirmed_mails(
    mailbox: Mailbox, shelf: Shelf, book: Book, account: str, categories: CategorySet, window: Window
) -> Iterator[ConfirmedMail]:
    """The confirmed labels of an account, inbox first, newest first; the fallback label counts as none.

    Raises MailboxError, LedgerError; MailboxRefused where labels are folders, in which nobody can tell whose hand moved
    a message.
    """
    found = [
        (seen.head, *word)
        for seen in sightings(mailbox, book, account, categories, window)
        if (word := confirmed_label(seen, categories))
    ]
    shelf.open()
    for head, label_id, hand in found:
        folder, uid = head.ref.mailbox, head.ref.uid
        full = shelf.heads(folder, [uid], HEADER_FIELDS).get(uid)
        if full is None or full.ref != head.ref:
            continue  # gone, or renumbered, since the look
        yield ConfirmedMail(head, label_id, hand, shelf.source(folder, full, choose_parts(full.structure)))


def sightings(
    mailbox: Mailbox, book: Book, account: str, categories: CategorySet, window: Window
) -> tuple[Sighting, ...]:
    """The labelled messages of inbox and archive, inbox first, newest first. Raises as `confirmed_mails` does."""
    facts = mailbox.open()
    if facts.label_store == "folder":
        raise MailboxRefused("with labels: folder nobody can tell which label a person put on a message")
    heads = [head for folder in _folders(facts) for head in _labelled(mailbox, folder, categories, facts, window)]
    names = {head.ref: _names(head, book) for head in heads}
    records = book.explained(account, [key for keys in names.values() for key in keys])
    about = {ref: next((records[k] for k in keys if k in records), None) for ref, keys in names.items()}
    said: dict[str, set[CorrectionKind]] = {}
    for correction in book.corrections_of([record.id for record in about.values() if record]):
        said.setdefault(correction.decision_id, set()).add(correction.kind)
    return tuple(
        Sighting(
            head,
            record := about[head.ref],
            frozenset(said.get(record.id, ())) if record else frozenset(),
            head.received is None or head.received >= window.remembered_since,
        )
        for head in heads
    )


def confirmed_label(seen: Sighting, categories: CategorySet) -> tuple[str, Hand] | None:
    """The label a person confirmed on a message, if it bears one. Pure."""
    head, record, said = seen.head, seen.record, seen.said
    borne = categories.ids_on(head.flags)
    if record is None:
        put = len(borne) == 1 and seen.known and borne[0] != categories.fallback_id
        return (borne[0], Hand.PUT) if put else None
    others = [label_id for label_id in borne if label_id != record.label_id]
    if others:
        changed = len(others) == 1 and others[0] != categories.fallback_id
        return (others[0], Hand.CHANGED) if changed else None
    left = CorrectionKind.CONFIRMED in said and not said & _AGAINST and record.label_id != categories.fallback_id
    return (record.label_id, Hand.LEFT) if left and borne else None


def _folders(facts: MailboxFacts) -> tuple[str, ...]:
    return (facts.inbox,) if facts.archive in (None, facts.inbox) else (facts.inbox, str(facts.archive))


def _labelled(
    mailbox: Mailbox, folder: str, categories: CategorySet, facts: MailboxFacts, window: Window
) -> list[Head]:
    """The newest messages of a folder that bear a label of ours, newest first."""
    terms = [
        f"KEYWORD {label}" if facts.label_store == "keyword" else f'X-GM-LABELS "{label}"'
        for label in categories.labels
    ]
    keys = "OR " * (len(terms) - 1) + " ".join(terms)
    uids = mailbox.search(folder, ["UNDELETED", keys], window=window.messages)[-window.limit :]
    heads = mailbox.fetch_flags(folder, uids)
    return [heads[uid] for uid in sorted(heads, reverse=True)]


def _names(head: Head, book: Book) -> tuple[str, ...]:
    """The keys under which the ledger may know a message: where it lies, and its Message-ID."""
    keys = (book.key(str(head.ref)), book.key(read_thread_headers(head.headers).message_id))
    return tuple(key for key in keys if key)
