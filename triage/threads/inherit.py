"""May a reply take over its thread's category (DESIGN 4)? The order of the rules is told in docs/threads.md."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from triage.domain.category import Action, CategorySet
from triage.domain.decision import Ancestor
from triage.threads.candidate import (
    DECISION,
    PERSON,
    WHY,
    Ask,
    AskReason,
    Candidate,
    Found,
    Inherit,
    KeepReason,
    WaitFor,
)
from triage.threads.headers import ThreadHeaders
from triage.threads.subjects import are_related
from triage.threads.thread import Thread, build_thread

__all__ = ["Ask", "AskReason", "Candidate", "Found", "Inherit", "KeepReason", "WaitFor", "resolve"]

_NOT_NEEDED = "not_needed"
_LISTS_AND_MACHINES = ("same_list", "same_automated_sender")


def resolve(
    uid: int,
    batch: Mapping[int, ThreadHeaders],
    found: Found,
    decided: Mapping[int, Candidate],
    *,
    owner: frozenset[str],
    categories: CategorySet,
    server_thread: Sequence[Candidate] = (),
    received: Mapping[int, datetime] | None = None,
) -> Inherit | WaitFor | Ask:
    """Inherit, wait for ancestors of the same batch, or ask the model.

    `decided` holds every mail of the batch that is settled, those without a label too. `owner` are normalised
    addresses. `received` is when the mails of the batch arrived. `server_thread` are mails of the server's own thread:
    only those known to have come before this mail count, and only where its references lead to no category.
    Raises KeyError if `uid` is not in the batch.
    """
    times = received or {}
    older = _older(server_thread, times.get(uid))
    if not batch[uid].parents and not older:  # it names nobody, as most mail does: there is no thread to put together
        return _ask(AskReason.NO_ANCESTOR, KeepReason.NONE)
    thread = build_thread(uid, batch, found, decided, times, older)
    waiting = {u for i in thread.line for u in thread.pending.get(i, ())}
    if waiting:
        return WaitFor(tuple(sorted(waiting)))
    keep = thread.keep_reason(owner)
    if thread.holds_hijack():
        return _ask(AskReason.HIJACK, keep)
    for rule, copies in _nearest_first(thread, older):
        if any(_categories_on(c, categories) for c in copies):
            return _judge(thread, rule, copies, categories, keep)
    return _ask(_nothing_to_inherit(thread, older), keep)


def _older(mails: Sequence[Candidate], received: datetime | None) -> tuple[Candidate, ...]:
    """The server's thread before this mail, latest first; without both times nothing is known to be earlier."""
    if received is None:
        return ()
    earlier = [(c.received, c) for c in mails if c.received is not None and c.received < received]
    return tuple(c for _, c in sorted(earlier, key=lambda pair: pair[0], reverse=True))


def _nearest_first(thread: Thread, older: Sequence[Candidate]) -> Iterator[tuple[str, tuple[Candidate, ...]]]:
    for message_id in thread.line:
        yield "reference", thread.copies(message_id)
    for candidate in older:
        if candidate.headers.message_id not in thread.later:
            yield "thread_id", (candidate,)


def _categories_on(candidate: Candidate, categories: CategorySet) -> tuple[str, ...]:
    """The real categories on a mail: the fallback says that nobody knew, so it is no category."""
    return tuple(i for i in candidate.label_ids if i != categories.fallback_id and categories.get(i) is not None)


def _judge(
    thread: Thread, rule: str, copies: Sequence[Candidate], categories: CategorySet, keep: KeepReason
) -> Inherit | Ask:
    """The nearest labelled ancestor decides; where it cannot be trusted the model is asked, not an older ancestor."""
    agreeing = _agreeing(copies, categories)
    if not agreeing:
        return _ask(AskReason.AMBIGUOUS, keep)
    # Of copies that agree the least confident speaks.
    ancestor = min(agreeing, key=lambda c: _probability(c.confidence))
    label_id = _categories_on(ancestor, categories)[0]
    archives = categories.action(label_id) is Action.ARCHIVE
    part = _participation(thread, agreeing)
    objection = _against_archiving(thread, rule, agreeing, part, keep) if archives else None
    if objection is None and _is_new_matter(thread, agreeing, part, archives):
        objection = AskReason.SUBJECT_CHANGED
    if objection is not None:
        return _ask(objection, keep)
    if rule == "reference" and ancestor in thread.settled.get(ancestor.headers.message_id, ()):
        rule = "same_batch"
    by_person = ancestor.source == PERSON
    confidence = 1.0 if by_person else _probability(ancestor.confidence)
    floor = 0.0 if by_person else ancestor.archive_floor
    if archives and keep is KeepReason.NONE and not confidence >= floor:
        keep = KeepReason.BELOW_FLOOR
    participation = part if archives and part else _NOT_NEEDED
    return Inherit(
        Ancestor(
            message_key=ancestor.message_key,
            label_id=label_id,
            confidence=confidence,
            source=PERSON if by_person else DECISION,
            rule=rule,
            participation=participation,
            owner_wrote=keep is KeepReason.OWNER_WROTE,
        ),
        why=f"inherited from the nearest labelled mail of its thread ({rule}, {participation})",
        archive_floor=floor,
        keep_reason=keep,
    )


def _against_archiving(
    thread: Thread, rule: str, agreeing: Sequence[Candidate], part: str | None, keep: KeepReason
) -> AskReason | None:
    """Why an archiving category must not be taken over unasked, None if it may."""
    if part is None:
        return AskReason.NOT_A_PARTICIPANT
    # A mail in between may be a stranger's who took a missing id: he must not lead another's reply into the archive.
    named = rule == "thread_id" or any(c.headers.message_id in thread.mail.parents for c in agreeing)
    if not named and keep is KeepReason.NONE:
        return AskReason.NOT_NAMED
    return AskReason.FORWARD if thread.mail.forwarded else None


def _is_new_matter(thread: Thread, agreeing: Sequence[Candidate], part: str | None, archives: bool) -> bool:
    """Does the subject say that an old mail was only taken as a template, its references carried along?

    In-Reply-To is a deliberate answer, but even that does not send a new matter to the archive. Lists and machines
    change their subjects within a thread.
    """
    doubted = archives or not thread.mail.answers
    return doubted and part not in _LISTS_AND_MACHINES and not _related(thread, agreeing)


def _agreeing(copies: Sequence[Candidate], categories: CategorySet) -> tuple[Candidate, ...]:
    """The labelled copies if they agree on one category; a person's word on one outweighs decisions on others."""
    labelled = [c for c in copies if _categories_on(c, categories)]
    labelled = [c for c in labelled if c.source == PERSON] or labelled
    return tuple(labelled) if len({i for c in labelled for i in _categories_on(c, categories)}) == 1 else ()


def _participation(thread: Thread, ancestors: Sequence[Candidate]) -> str | None:
    """Whose part in the thread speaks for this sender, None if nobody's. Addresses are compared whole."""
    mail = thread.mail
    if mail.list_id and any(c.headers.list_id == mail.list_id for c in ancestors):
        return "same_list"
    if not mail.sender:
        return None
    own = [c for c in ancestors if c.headers.sender == mail.sender]
    if own:
        both = mail.automated and any(c.headers.automated for c in own)
        return "same_automated_sender" if both else "sender_in_thread"
    return "sender_in_thread" if any(thread.took_part(mail.sender, c) for c in ancestors) else None


def _related(thread: Thread, copies: Sequence[Candidate]) -> bool:
    return any(are_related(thread.mail.subject, c.headers.subject) for c in copies)


def _probability(confidence: float) -> float:
    return min(1.0, max(0.0, confidence)) if math.isfinite(confidence) else 0.0


def _nothing_to_inherit(thread: Thread, older: Sequence[Candidate]) -> AskReason:
    parents = thread.mail.parents
    if older or any(map(thread.copies, thread.line)):
        return AskReason.UNLABELLED
    if not parents:
        return AskReason.NO_ANCESTOR
    return AskReason.NOT_EARLIER if any(i in thread.later for i in parents) else AskReason.NOT_FOUND


def _ask(reason: AskReason, keep: KeepReason) -> Ask:
    return Ask(reason, WHY[reason], keep)
