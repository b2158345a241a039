"""Taking decisions back: labels off, archived mail to the inbox, only where nobody touched it since.

The plan is a value: what would be done with each message, or why it is left alone. Carrying it out keeps DESIGN 4's
order the other way round, each step durable before the next: taking back recorded -> moved -> label off -> recorded.
From the first record on no decision archives the message again (docs/adr/0007), so a run that comes in between, or a
crash, leaves mail too visible and never hides it. Repeating an undo does what was left undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal, Protocol

from triage.domain.category import CategorySet
from triage.domain.correction import Correction, CorrectionKind
from triage.domain.mail import Head, MessageRef
from triage.domain.record import DecisionRecord
from triage.pipeline.corrections import correction, keyword_criteria
from triage.pipeline.recover import untouched
from triage.ports import Mailbox, MailboxFacts
from triage.threads.headers import read_thread_headers

CLOSED = "undone"
"""Why a decision whose archive was still to come is closed."""
_NEWEST = 500
_TICK = timedelta(microseconds=1)  # what is recorded later is read back later
Deed = Literal["label_off", "move_back", "finish", "none"]


class UndoBook(Protocol):
    """What undo asks of the ledger."""

    def key(self, text: str) -> str: ...
    def corrections_of(self, decision_ids: Sequence[str]) -> tuple[Correction, ...]: ...
    def record_corrections(self, found: Sequence[Correction]) -> tuple[Correction, ...]: ...
    def earlier_decisions(self, account: str, message_keys: Sequence[str]) -> Mapping[str, DecisionRecord]: ...
    def mark_closed(self, decision_ids: Sequence[str], reason: str, at: datetime) -> None: ...


@dataclass(frozen=True, slots=True)
class UndoStep:
    """What is to be done about one decision: `label_off` where it lies in the inbox, `move_back` from the archive and
    the label off, `finish` the record of an earlier undo, or `none`, and `why` not."""

    record: DecisionRecord
    deed: Deed
    place: MessageRef | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Undone:
    """What came of it: decisions taken back, and those that were not, with the reason."""

    taken_back: tuple[DecisionRecord, ...]
    left: Mapping[str, str]


def plan_undo(
    mailbox: Mailbox, book: UndoBook, records: Sequence[DecisionRecord], categories: CategorySet
) -> tuple[UndoStep, ...]:
    """Look at the messages as they are now. Only reads. Raises MailboxError, LedgerError."""
    facts = mailbox.open()
    said: dict[str, set[CorrectionKind]] = {}
    begun: dict[str, MessageRef | None] = {}
    for each in book.corrections_of([r.id for r in records]):
        said.setdefault(each.decision_id, set()).add(each.kind)
        if each.kind is CorrectionKind.UNDOING:
            begun[each.decision_id] = each.ref
    written = [r for r in records if r.labelled_at is not None and r.closed_reason != "preview"]
    heads = _find(mailbox, facts, written, categories, book, begun)
    newest = book.earlier_decisions(records[0].account, [r.message_key for r in written]) if written else {}
    steps = []
    for record in records:
        kinds = said.get(record.id, set())
        if record not in written:
            steps.append(UndoStep(record, "none", why="nothing was written to the mailbox"))
        elif CorrectionKind.UNDONE in kinds:
            steps.append(UndoStep(record, "none", why="taken back already"))
        elif newest[record.message_key].id != record.id:
            steps.append(UndoStep(record, "none", why="it was decided again since"))
        elif facts.label_store == "folder":
            steps.append(UndoStep(record, "none", why="labels are folders here: move it back by hand"))
        else:
            steps.append(_judge(record, heads.get(record.id), facts, categories, begun=record.id in begun))
    return tuple(steps)


def carry_out(
    mailbox: Mailbox, book: UndoBook, steps: Sequence[UndoStep], categories: CategorySet, now: datetime
) -> Undone:
    """Do what the plan says. Raises MailboxError, LedgerError; then it may be repeated."""
    todo = {s.record.id: s for s in steps if s.deed != "none"}
    left = {s.record.id: s.why for s in steps if s.deed == "none"}
    if not todo:
        return Undone((), left)
    facts = mailbox.open()
    book.record_corrections(
        [correction(s.record, CorrectionKind.UNDOING, None, now, s.place) for s in todo.values() if s.deed != "finish"]
    )
    open_archives = [s.record.id for s in todo.values() if s.record.archive and s.record.archived_at is None]
    book.mark_closed(open_archives, CLOSED, now)
    places = {i: s.place for i, s in todo.items() if s.deed == "label_off"}
    back = _move_back(mailbox, facts, [s for s in todo.values() if s.deed == "move_back"], categories, book, left)
    _record(book, CorrectionKind.UNDOING, todo, back, now + _TICK)  # under its new name too, before its label goes
    places |= back
    done = _labels_off(mailbox, facts, todo, places, categories, left)
    done |= {i: s.place for i, s in todo.items() if s.deed == "finish"}
    _record(book, CorrectionKind.UNDONE, todo, done, now + 2 * _TICK)
    return Undone(tuple(todo[i].record for i in done), left)


def _judge(
    record: DecisionRecord, head: Head | None, facts: MailboxFacts, categories: CategorySet, *, begun: bool
) -> UndoStep:
    if head is None:
        return UndoStep(record, "none", why="it is not where it was left: somebody moved or deleted it")
    borne = categories.ids_on(head.flags)
    in_inbox = head.ref.mailbox == facts.inbox
    if begun and in_inbox and not borne:
        return UndoStep(record, "finish", head.ref)
    if borne != (record.label_id,):
        now = ", ".join(borne) or "no label"
        return UndoStep(record, "none", head.ref, f"somebody changed its label: it bears {now}")
    if not untouched(record, head.flags, categories.label(record.label_id)):
        return UndoStep(record, "none", head.ref, "somebody touched it since: its flags changed")
    if record.archived_at is not None and in_inbox and not begun:
        return UndoStep(record, "none", head.ref, "somebody moved it back to the inbox")
    return UndoStep(record, "label_off" if in_inbox else "move_back", head.ref)


def _find(
    mailbox: Mailbox,
    facts: MailboxFacts,
    records: Sequence[DecisionRecord],
    categories: CategorySet,
    book: UndoBook,
    begun: Mapping[str, MessageRef | None],
) -> dict[str, Head]:
    """The messages where they were left, by decision; archived ones whose place is not known, or that are not there any
    more, by Message-ID in archive and inbox."""
    found: dict[str, Head] = {}
    boxes: dict[str, dict[int, DecisionRecord]] = {}
    places = {r.id: begun.get(r.id) or (r.archived_ref if r.archived_at else r.ref) for r in records}
    for record in records:
        place = places[record.id]
        if place is not None:
            boxes.setdefault(place.mailbox, {})[place.uid] = record
    for name, there in boxes.items():
        for uid, head in mailbox.fetch_flags(name, sorted(there)).items():
            if head.ref == places[there[uid].id]:
                found[there[uid].id] = head
    lost = {r.message_id_key: r for r in records if r.archived_at and r.id not in found and r.message_id_key}
    for box in (facts.archive, facts.inbox):
        if box and lost:
            for record, head in _by_message_id(mailbox, box, lost, book, _bearing(lost, categories)):
                found[record.id] = head
                lost.pop(record.message_id_key, None)
    bare = {key: record for key, record in lost.items() if record.id in begun}
    if bare:
        newest = mailbox.search(facts.inbox, ["ALL"], window=_NEWEST)
        found |= {r.id: head for r, head in _by_message_id(mailbox, facts.inbox, bare, book, newest)}
    return found


def _bearing(records: Mapping[str, DecisionRecord], categories: CategorySet) -> str:
    """Search keys for the messages that bear one of these decisions' labels."""
    return keyword_criteria(sorted({categories.label(r.label_id) for r in records.values()}))


def _by_message_id(
    mailbox: Mailbox, name: str, wanted: Mapping[str, DecisionRecord], book: UndoBook, where: str | Sequence[int]
) -> list[tuple[DecisionRecord, Head]]:
    """Which of these messages (by Message-ID) lie in a mailbox, among UIDs or what a search in it finds."""
    uids = mailbox.search(name, [where]) if isinstance(where, str) else where
    found = []
    for head in mailbox.fetch_flags(name, uids).values() if uids else ():
        key = book.key(read_thread_headers(head.headers).message_id)
        if key in wanted:
            found.append((wanted[key], head))
    return found


def _move_back(
    mailbox: Mailbox,
    facts: MailboxFacts,
    steps: Sequence[UndoStep],
    categories: CategorySet,
    book: UndoBook,
    left: dict[str, str],
) -> dict[str, MessageRef | None]:
    """Move archived messages to the inbox; where each lies there, as far as that is known."""
    by_uid = {s.place.uid: s.record for s in steps if s.place is not None}
    if not by_uid:
        return {}
    moved = mailbox.move_back(sorted(by_uid))
    left |= {by_uid[u].id: "it left the archive meanwhile" for u in moved.gone}
    left |= {by_uid[u].id: f"the server refused to move it: {why}" for u, why in moved.refused.items()}
    places = {by_uid[uid].id: place for uid, place in moved.moved.items()}
    untold = {r.message_id_key: r for uid, r in by_uid.items() if moved.moved.get(uid, r.ref) is None}
    bearing = _bearing(untold, categories) if untold else ""
    for record, head in _by_message_id(mailbox, facts.inbox, untold, book, bearing) if untold else ():
        places[record.id] = head.ref
    return places


def _labels_off(
    mailbox: Mailbox,
    facts: MailboxFacts,
    todo: Mapping[str, UndoStep],
    places: Mapping[str, MessageRef | None],
    categories: CategorySet,
    left: dict[str, str],
) -> dict[str, MessageRef | None]:
    by_uid = {place.uid: i for i, place in places.items() if place is not None}
    plan = {uid: [categories.label(todo[i].record.label_id)] for uid, i in by_uid.items()}
    bare = mailbox.remove_labels(facts.inbox, plan)
    left |= {i: "the server did not take its label off" for uid, i in by_uid.items() if uid not in bare}
    left |= {i: "moved to the inbox; its label is still on it" for i, place in places.items() if place is None}
    return {i: places[i] for uid, i in by_uid.items() if uid in bare}


def _record(
    book: UndoBook,
    kind: CorrectionKind,
    todo: Mapping[str, UndoStep],
    places: Mapping[str, MessageRef | None],
    now: datetime,
) -> None:
    """Record where messages lie now; one that came back from the archive has a new name."""
    found = []
    for i, place in places.items():
        told = correction(todo[i].record, kind, None, now, place)
        found.append(told if place is None else replace(told, message_key=book.key(str(place))))
    book.record_corrections(found)
