"""What people did about decided messages: a label changed or taken off, a message moved back (DESIGN 4).

Two looks, both cheap and bounded. `look_for_corrections` asks the mailbox, now and then, what recently decided messages
bear by now. `words_before` asks the ledger, at the start of a run, what was decided before about the very messages that
are to be decided. What is found is recorded beside the decisions and never changes a label.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from triage.domain.category import Action, CategorySet
from triage.domain.correction import Correction, CorrectionKind
from triage.domain.decision import Verdict
from triage.domain.mail import Head, MessageRef
from triage.domain.record import DecisionRecord
from triage.ports import Mailbox, MailboxFacts
from triage.threads.headers import ThreadHeaders, read_thread_headers

TAKEN_BACK = "taken_back"
"""Why a message stays in the inbox whatever is decided: `triage undo` brought it back."""
_WHY = "It stays in the inbox: `triage undo` took it back before."
_MOST_BACK = 200
_SEEN = "\\seen"


class Corrections(Protocol):
    """The ledger's side of it."""

    def key(self, text: str) -> str: ...
    def record_corrections(self, found: Sequence[Correction]) -> tuple[Correction, ...]:
        """Record what is news; those recorded."""
        ...

    def recent_labelled(self, account: str, since: datetime, limit: int) -> tuple[DecisionRecord, ...]: ...
    def earlier_decisions(self, account: str, message_keys: Sequence[str]) -> Mapping[str, DecisionRecord]: ...
    def taken_back(self, account: str, keys: Sequence[str]) -> frozenset[str]: ...
    def looked_for_corrections(self, account: str) -> datetime | None: ...
    def note_look(self, account: str, at: datetime) -> None: ...


@dataclass(frozen=True, slots=True)
class LookTerms:
    """How far a look goes: the newest `limit` decisions of the last `period`, at most once `every` so long."""

    limit: int = 500
    period: timedelta = timedelta(days=14)
    every: timedelta = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look found: how many messages were seen, and what was news."""

    seen: int
    found: tuple[Correction, ...]


def is_due(book: Corrections, account: str, terms: LookTerms, now: datetime) -> bool:
    last = book.looked_for_corrections(account)
    return terms.limit > 0 and (last is None or now - last >= terms.every)


def look_for_corrections(
    mailbox: Mailbox, book: Corrections, account: str, categories: CategorySet, terms: LookTerms, now: datetime
) -> Looked:
    """Look at recently decided messages where they were left, and record what people did about them.

    One FETCH for the inbox and one for each place messages were archived to; one SEARCH more if an archived message is
    not there any more. Nothing is written to the mailbox. Raises MailboxError, LedgerError.
    """
    book.note_look(account, now)
    records = _newest_of_each(book.recent_labelled(account, now - terms.period, terms.limit)) if terms.limit else ()
    if not records:
        return Looked(0, ())
    facts = mailbox.open()
    heads = _where_they_were_left(mailbox, facts, records)
    found = [c for r in records if (head := heads.get(r.id)) for c in judge(r, head, facts.inbox, categories, now)]
    lost = {r.message_id_key: r for r in records if r.archived_at and r.id not in heads and r.message_id_key}
    for record, head in _back_in_the_inbox(mailbox, facts, categories, lost, book):
        heads[record.id] = head
        found += judge(record, head, facts.inbox, categories, now)
    return Looked(len(heads), book.record_corrections(found))


def judge(
    record: DecisionRecord, head: Head, inbox: str, categories: CategorySet, now: datetime
) -> tuple[Correction, ...]:
    """What the message as it is now says about its decision. Pure but for the ids.

    A label of ours beside the decided one was put there by a person: many clients add a tag without taking one off.
    """
    borne = categories.ids_on(head.flags)
    others = [i for i in borne if i != record.label_id]
    found = []
    if len(others) == 1:
        found.append(correction(record, CorrectionKind.RELABELLED, others[0], now, head.ref))
    elif not borne:
        found.append(correction(record, CorrectionKind.UNLABELLED, None, now, head.ref))
    if record.archived_at is not None and head.ref.mailbox == inbox:
        found.append(correction(record, CorrectionKind.MOVED_BACK, None, now, head.ref))
    if not found and not others and _was_read(record, head):
        found.append(correction(record, CorrectionKind.CONFIRMED, record.label_id, now, head.ref))
    return tuple(found)


def correction(
    record: DecisionRecord, kind: CorrectionKind, to_label: str | None, now: datetime, ref: MessageRef | None
) -> Correction:
    return Correction(
        id=secrets.token_hex(12),
        account=record.account,
        decision_id=record.id,
        message_key=record.message_key,
        message_id_key=record.message_id_key,
        kind=kind,
        from_label=record.label_id,
        to_label=to_label,
        at=now,
        ref=ref,
    )


@dataclass(frozen=True, slots=True)
class WordsBefore:
    """What is known of a batch from before: the messages that were taken back, which no decision archives again."""

    held: frozenset[int] = frozenset()

    def bind(self, uid: int, verdict: Verdict) -> Verdict:
        """The verdict, without the archive where the message was taken back."""
        if uid not in self.held or verdict.action is not Action.ARCHIVE:
            return verdict
        return replace(verdict, action=Action.KEEP, vetoes=(*verdict.vetoes, TAKEN_BACK), why=f"{verdict.why} {_WHY}")


def words_before(
    book: Corrections | None,
    account: str,
    heads: Mapping[int, Head],
    mails: Mapping[int, ThreadHeaders],
    now: datetime,
    *,
    record: bool = True,
) -> WordsBefore:
    """Look the messages of a batch up before they are decided.

    One that was labelled before and is unlabelled again had its label taken off by a person (decide again): that is
    recorded, unless this run only previews. One that was taken back is held in the inbox.
    """
    if book is None or not heads:
        return WordsBefore()
    keys = {uid: book.key(str(head.ref)) for uid, head in heads.items()}
    ids = {uid: book.key(mails[uid].message_id) for uid in heads if mails[uid].message_id}
    taken = book.taken_back(account, [*keys.values(), *ids.values()])
    held = frozenset(uid for uid in heads if keys[uid] in taken or ids.get(uid, "") in taken)
    earlier = book.earlier_decisions(account, [keys[uid] for uid in heads if uid not in held])
    if earlier and record:
        book.record_corrections(
            [
                correction(earlier[key], CorrectionKind.UNLABELLED, None, now, heads[uid].ref)
                for uid, key in keys.items()
                if key in earlier and uid not in held
            ]
        )
    return WordsBefore(held)


def _newest_of_each(records: Sequence[DecisionRecord]) -> tuple[DecisionRecord, ...]:
    newest: dict[str, DecisionRecord] = {}
    for record in records:  # newest first
        newest.setdefault(record.message_key, record)
    return tuple(newest.values())


def _where_they_were_left(mailbox: Mailbox, facts: MailboxFacts, records: Sequence[DecisionRecord]) -> dict[str, Head]:
    """The messages that are still where the program left them, by decision."""
    inbox = {r.ref.uid: r for r in records if not r.archived_at and _is_in(r.ref, facts.inbox, facts.uidvalidity)}
    found = {inbox[uid].id: head for uid, head in mailbox.flags_of(sorted(inbox)).items()} if inbox else {}
    boxes: dict[str, dict[int, DecisionRecord]] = {}
    for record in records:
        if record.archived_at and record.archived_ref:
            boxes.setdefault(record.archived_ref.mailbox, {})[record.archived_ref.uid] = record
    for name, there in boxes.items():
        for uid, head in mailbox.fetch_flags(name, sorted(there)).items():
            if head.ref == there[uid].archived_ref:
                found[there[uid].id] = head
    return found


def _back_in_the_inbox(
    mailbox: Mailbox,
    facts: MailboxFacts,
    categories: CategorySet,
    lost: Mapping[str, DecisionRecord],
    book: Corrections,
) -> list[tuple[DecisionRecord, Head]]:
    """Archived messages that left the archive and lie in the inbox, with any label of ours: who moves a message back
    may have changed its label too."""
    if not lost or facts.label_store != "keyword":
        return []
    uids = mailbox.search(facts.inbox, [keyword_criteria(categories.labels)])[-_MOST_BACK:]
    found = []
    for head in mailbox.fetch_flags(facts.inbox, uids).values() if uids else ():
        key = book.key(read_thread_headers(head.headers).message_id)
        if key in lost:
            found.append((lost[key], head))
    return found


def keyword_criteria(labels: Sequence[str]) -> str:
    """Search keys for the messages that bear any of these keywords."""
    terms = [f"KEYWORD {label}" for label in labels]
    return "OR " * (len(terms) - 1) + " ".join(terms)


def _is_in(ref: MessageRef, mailbox: str, uidvalidity: int) -> bool:
    return (ref.mailbox, ref.uidvalidity) == (mailbox, uidvalidity)


def _was_read(record: DecisionRecord, head: Head) -> bool:
    """Read since it was decided."""
    return _SEEN in {f.casefold() for f in head.flags} and _SEEN not in {f.casefold() for f in record.flags}
