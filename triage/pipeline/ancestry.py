"""The thread step: find each reply's ancestors in the mailbox and what is known of their labels."""

from __future__ import annotations

import math
from collections.abc import Mapping

from triage.domain.category import Action
from triage.domain.mail import Head
from triage.domain.record import DecisionRecord
from triage.pipeline.plan import RunScope
from triage.ports import Located
from triage.threads.candidate import DECISION, PERSON, Candidate
from triage.threads.headers import ThreadHeaders, read_thread_headers
from triage.threads.lookups import further_lookups, lookups
from triage.threads.rounds import Gathered


def gather_threads(
    scope: RunScope, inbox: str, heads: Mapping[int, Head], mails: Mapping[int, ThreadHeaders]
) -> Gathered:
    """Locate the ancestors the batch names. The ledger only hints where to look; the mailbox says what they bear."""
    plan, journal = scope.plan, scope.tools.journal
    wanted = lookups(mails)
    found = _found(scope, inbox, wanted)
    found |= _found(scope, inbox, further_lookups(mails, found))
    return Gathered(
        mails=mails,
        keys={uid: journal.key(str(head.ref)) for uid, head in heads.items()},
        found=found,
        owner=plan.owner,
        categories=plan.categories,
        server_threads=_server_threads(scope, inbox, heads, mails, found),
        received={uid: head.received for uid, head in heads.items() if head.received is not None},
    )


def decided_candidate(record: DecisionRecord, headers: ThreadHeaders, head: Head) -> Candidate:
    """A message of this very batch, once decided, as an ancestor of its replies."""
    return Candidate(
        headers=headers,
        message_key=record.message_key,
        label_ids=(record.label_id,),
        confidence=record.confidence,
        source=DECISION,
        archive_floor=_archive_floor(record, wanted=record.archive),
        received=head.received,
    )


def _found(scope: RunScope, inbox: str, message_ids: tuple[str, ...]) -> dict[str, tuple[Candidate, ...]]:
    if not message_ids:
        return {}
    known = _known(scope, message_ids)
    hints = {m: record.archived_ref or record.ref for m, record in known.items()}
    located = scope.tools.mailbox.locate(message_ids, hints)
    return {
        m: tuple(_candidate(scope, inbox, place, known.get(m)) for place in places) for m, places in located.items()
    }


def _known(scope: RunScope, message_ids: tuple[str, ...]) -> dict[str, DecisionRecord]:
    """What the ledger remembers of these messages, by Message-ID."""
    journal = scope.tools.journal
    keys = {m: journal.key(m) for m in message_ids}
    records = journal.latest_decisions(scope.plan.account, list(keys.values())) if keys else {}
    return {m: records[k] for m, k in keys.items() if k in records}


def _server_threads(
    scope: RunScope,
    inbox: str,
    heads: Mapping[int, Head],
    mails: Mapping[int, ThreadHeaders],
    found: Mapping[str, tuple[Candidate, ...]],
) -> dict[int, tuple[Candidate, ...]]:
    """The server's own threads (X-GM-THRID, THREADID) of the messages whose references led nowhere."""
    wanted = {
        uid: head.thread_id
        for uid, head in heads.items()
        if head.thread_id and not any(c.label_ids for p in mails[uid].parents for c in found.get(p, ()))
    }
    if not wanted:
        return {}
    threads = scope.tools.mailbox.locate_threads(sorted(set(wanted.values())))
    known = _known(scope, tuple(place.message_id for places in threads.values() for place in places))
    return {
        uid: tuple(_candidate(scope, inbox, place, known.get(place.message_id)) for place in threads.get(thread, ()))
        for uid, thread in wanted.items()
    }


def _candidate(scope: RunScope, inbox: str, place: Located, record: DecisionRecord | None) -> Candidate:
    """A located message as an ancestor. A label that no decision of ours explains was put there by a person, unless
    the message is so old that the ledger has forgotten what was decided: then nobody vouches for it, and its replies
    take the label over but are not archived."""
    label_ids = scope.plan.categories.ids_on(place.flags)
    ours = record if record is not None and label_ids == (record.label_id,) else None
    forgotten = ours is None and place.received is not None and place.received < scope.plan.remembered_since
    wants_archive = bool(label_ids) and scope.plan.categories.action(label_ids[0]) is Action.ARCHIVE
    return Candidate(
        headers=read_thread_headers(place.headers),
        message_key=record.message_key if record else scope.tools.journal.key(str(place.ref)),
        label_ids=label_ids,
        confidence=ours.confidence if ours else 0.0 if forgotten else 1.0,
        source=DECISION if ours or forgotten else PERSON,
        archive_floor=_archive_floor(ours, wanted=wants_archive) if ours else 0.0,
        received=place.received,
        moved_back=record is not None and record.archived_at is not None and place.ref.mailbox == inbox,
    )


def _archive_floor(record: DecisionRecord, *, wanted: bool) -> float:
    """What an archive by this decision asked for: beyond reach where something other than doubt kept it back."""
    vetoed = wanted and not record.archive and record.confidence >= record.archive_floor
    return math.inf if vetoed else record.archive_floor
