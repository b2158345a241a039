"""What people did in a mailbox, gathered for the embedded classifier to learn from.

A lesson is a message whose label a person put on or changed, one that a person moved back to the inbox, one of the junk
mailbox if the operator names it. One that was read and left as it was filed only holds. What the program filed and
nobody touched is no lesson. Bounded: two searches, two fetches of flags, then twenty messages at a time; only reads.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from triage.decide.embedded.anchors import anchor_of
from triage.decide.embedded.learn import MOST_HELD, NEWEST, Correction, Held, Teacher
from triage.domain.category import CategorySet
from triage.domain.correction import TAKEN_BACK, CorrectionKind
from triage.domain.decision import Question
from triage.domain.mail import MessageRef, PreparedMail
from triage.pipeline.confirmed import Book, Hand, Sighting, Window, confirmed_label, sightings
from triage.pipeline.replay import fetch
from triage.ports import Mailbox

MOST_JUNK = 25
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_TAUGHT_BY = {Hand.PUT: Teacher.LABELLED, Hand.CHANGED: Teacher.RELABELLED}


@dataclass(frozen=True, slots=True)
class Lesson:
    """One message and what it teaches; `teacher` None if it only holds. `to_label` "" if it was only moved back."""

    ref: MessageRef
    teacher: Teacher | None
    from_label: str = ""
    to_label: str = ""


@dataclass(frozen=True, slots=True)
class Lessons:
    """All that a mailbox teaches, the newest last. `digest` changes with any of it."""

    taught: tuple[Lesson, ...]
    held: tuple[Lesson, ...]

    def __bool__(self) -> bool:
        return bool(self.taught)

    @property
    def digest(self) -> str:
        text = "\n".join(f"{x.ref} {x.teacher} {x.from_label} {x.to_label}" for x in (*self.taught, *self.held))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def find_lessons(
    mailbox: Mailbox, book: Book, account: str, categories: CategorySet, question: Question, window: Window, junk: str
) -> Lessons:
    """Look for lessons, at most as many as are learned from. `junk` is the junk mailbox's name, "" for none.

    Raises MailboxError, LedgerError; MailboxRefused where labels are folders.
    """
    inbox = mailbox.open().inbox
    seen = sightings(mailbox, book, account, categories, window)
    dated = sorted(seen, key=lambda s: (s.head.received or _EARLIEST, s.head.ref))
    found = [lesson for s in dated if (lesson := lesson_of(s, categories, inbox))]
    taught = [lesson for lesson in found if lesson.teacher]
    spam = next((o.id for o in question.options if anchor_of(o) == "spam"), None)
    if junk and spam:
        uids = mailbox.search(junk, ["UNDELETED"])[-MOST_JUNK:]
        heads = mailbox.fetch_flags(junk, uids)
        taught = [Lesson(heads[uid].ref, Teacher.JUNK, "", spam) for uid in sorted(heads)] + taught
    held = [lesson for lesson in found if lesson.teacher is None]
    return Lessons(tuple(taught[-NEWEST:]), tuple(held[-MOST_HELD:]))


def lesson_of(seen: Sighting, categories: CategorySet, inbox: str) -> Lesson | None:
    """What one message teaches, if anything. Pure."""
    record, ref = seen.record, seen.head.ref
    word = confirmed_label(seen, categories)
    if word is not None:
        label_id, hand = word
        before = record.label_id if record else ""
        return Lesson(ref, None) if hand is Hand.LEFT else Lesson(ref, _TAUGHT_BY[hand], before, label_id)
    if record is None or seen.said & TAKEN_BACK or CorrectionKind.UNLABELLED in seen.said:
        return None
    back = record.archived_at is not None and ref.mailbox == inbox
    return Lesson(ref, Teacher.MOVED_BACK, record.label_id) if back else None


def fetch_lessons(
    lessons: Lessons, mailbox_at: Callable[[str], Mailbox], max_chars: int, stop: threading.Event
) -> tuple[list[Correction], list[Held]]:
    """The mail of the lessons, prepared as a run would; what is gone is left out. Raises MailboxError."""
    mails: dict[MessageRef, PreparedMail] = {}
    wanted = {lesson.ref: lesson.ref for lesson in (*lessons.taught, *lessons.held)}
    for folder in sorted({ref.mailbox for ref in wanted}):
        if stop.is_set():
            break
        mailbox = mailbox_at(folder)
        try:
            mails |= dict(fetch(mailbox, wanted, max_chars))
        finally:
            mailbox.close()
    return _corrections(lessons.taught, mails), [
        Held(mail, _group(mail)) for lesson in lessons.held if (mail := mails.get(lesson.ref))
    ]


def _corrections(taught: Sequence[Lesson], mails: Mapping[MessageRef, PreparedMail]) -> list[Correction]:
    return [
        Correction(mail, lesson.from_label, lesson.to_label, lesson.teacher, _group(mail))
        for lesson in taught
        if lesson.teacher and (mail := mails.get(lesson.ref))
    ]


def _group(mail: PreparedMail) -> str:
    """Mail of one sender is alike: it is left out together, or a trial would prove nothing."""
    return mail.sender.casefold()
