"""Recent mail decided once more, by other categories: what would flip, what would newly leave the inbox. Only reads.

The messages are fetched where they lie now (PEEK), so nothing of them needs to be kept; nothing is recorded, no label
touched. What a message's thread said about the archive (the owner wrote in it, it was taken back) holds again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from triage.domain.category import Action
from triage.domain.correction import Correction
from triage.domain.decision import Outcome, Question, Ruling, Verdict
from triage.domain.mail import MessageRef, PreparedMail
from triage.domain.record import DecisionRecord
from triage.pipeline.corrections import TAKEN_BACK
from triage.pipeline.texts import fetch_sources
from triage.policy.judge import Policy, judge
from triage.ports import Clock, Decider, Mailbox
from triage.prepare import prepare
from triage.threads.candidate import KeepReason

T = TypeVar("T")
BATCH = 20
CHARS_PER_TOKEN = 4
_KEPT_BY_THREAD = (*(str(reason) for reason in KeepReason if reason), TAKEN_BACK)


class Book(Protocol):
    def recent_labelled(self, account: str, since: datetime, limit: int) -> tuple[DecisionRecord, ...]: ...


@dataclass(frozen=True, slots=True)
class Replayed:
    """One message: what was decided, and what the other categories make of it. `ruling` tells why nobody answered."""

    record: DecisionRecord
    verdict: Verdict | None
    ruling: Ruling

    @property
    def flips(self) -> bool:
        return self.verdict is not None and self.verdict.label_id != self.record.label_id

    @property
    def newly_archived(self) -> bool:
        return self.verdict is not None and self.verdict.action is Action.ARCHIVE and not self.record.archive

    @property
    def newly_kept(self) -> bool:
        return self.verdict is not None and self.verdict.action is Action.KEEP and self.record.archive


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a replay would cost before it is begun; `usd` None where a price is not known."""

    messages: int
    input_tokens: int
    usd: float | None


def candidates(book: Book, account: str, since: datetime, limit: int) -> tuple[DecisionRecord, ...]:
    """The newest decisions that a model was asked about, one for each message."""
    newest: dict[str, DecisionRecord] = {}
    for record in book.recent_labelled(account, since, limit * 3):
        if record.outcome is not Outcome.INHERITED:
            newest.setdefault(record.message_key, record)
    return tuple(newest.values())[:limit]


def estimate(
    records: Sequence[DecisionRecord], question_tokens: int, usd_of: Callable[[int], float] | None
) -> Estimate:
    """From what the same messages took before: their own tokens, and the new question's."""
    mail = sum(_mail_tokens(record) for record in records)
    tokens = mail + question_tokens * len(records)
    return Estimate(len(records), tokens, usd_of(tokens) if usd_of else None)


def fetch(mailbox: Mailbox, wanted: Mapping[MessageRef, T], max_chars: int) -> Iterator[tuple[T, PreparedMail]]:
    """Those of these messages that lie in this mailbox's inbox, prepared as a run would. Only reads.

    Raises MailboxError.
    """
    facts = mailbox.open()
    here = (facts.inbox, facts.uidvalidity)
    there = {place.uid: r for place, r in wanted.items() if (place.mailbox, place.uidvalidity) == here}
    uids = sorted(there)
    for start in range(0, len(uids), BATCH):
        heads = dict(mailbox.fetch_heads(uids[start : start + BATCH]))
        for uid, source in fetch_sources(mailbox, heads).items():
            try:
                mail = prepare(source, max_chars=max_chars)
            except Exception:  # noqa: BLE001, S112 - a mail that cannot be read is no mail to compare
                continue
            yield there[uid], mail


def places(records: Sequence[DecisionRecord], corrections: Sequence[Correction]) -> Mapping[MessageRef, DecisionRecord]:
    """Where these messages lie: where they were seen last (`corrections`, oldest first), else where they were left."""
    seen = {c.decision_id: c.ref for c in corrections if c.ref is not None}
    found = {}
    for record in records:
        place = seen.get(record.id) or (record.archived_ref if record.archived_at else record.ref)
        if place is not None:
            found[place] = record
    return found


def decide_again(
    decider: Decider,
    question: Question,
    policy: Policy,
    mails: Sequence[tuple[DecisionRecord, PreparedMail]],
    *,
    clock: Clock,
    batch_deadline_s: float,
    stop: threading.Event,
) -> Iterator[Replayed]:
    """Put the question to the chain, batch by batch; those that nobody was asked about come with no verdict."""
    for start in range(0, len(mails), BATCH):
        batch = dict(enumerate(mails[start : start + BATCH]))
        rulings: dict[int, Ruling] = {}

        def on_rulings(more: Mapping[int, Ruling], rulings: dict[int, Ruling] = rulings) -> None:
            rulings.update(more)

        decider.decide(
            question,
            {n: mail for n, (_, mail) in batch.items()},
            deadline=clock.monotonic() + batch_deadline_s,
            stop=stop,
            on_rulings=on_rulings,
        )
        for n, (record, mail) in batch.items():
            if n in rulings:
                kept = next((code for code in record.warnings if code in _KEPT_BY_THREAD), "")
                yield Replayed(record, judge(rulings[n], mail, policy, kept), rulings[n])


def _mail_tokens(record: DecisionRecord) -> int:
    own = record.input_tokens - record.question_tokens
    return own if own > 0 else record.body_chars // CHARS_PER_TOKEN + 40
