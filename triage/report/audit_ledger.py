"""The audit's questions to the ledger, and what the answers mean."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Protocol

from triage.domain.category import HIJACK_ID, NONE_ID, CategorySet
from triage.domain.correction import TAKEN_BACK, Correction, CorrectionKind
from triage.domain.decision import Outcome
from triage.domain.record import DecisionRecord
from triage.policy.confidence import confidence
from triage.report.audit import BATCH_CAP, RECEIPT_WORDS, Audit, Chain, Invariant

NEWEST_ANSWERS = 5_000
_STAYS = ("action-required", "conversation", HIJACK_ID)
_ALLOWS_ANOTHER = frozenset({CorrectionKind.UNLABELLED, *TAKEN_BACK})
_ROUNDING = 1e-6


class Verified(Protocol):
    @property
    def links(self) -> int: ...
    @property
    def anew(self) -> int: ...
    @property
    def pruned(self) -> bool: ...
    @property
    def problems(self) -> tuple[str, ...]: ...


class Overlap(Protocol):
    @property
    def run_id(self) -> str: ...
    @property
    def before_id(self) -> str: ...


class AuditBook(Protocol):
    """What the audit asks of the ledger; see `triage.ledger.auditing`."""

    def decided_since(self, account: str, since: datetime) -> int: ...
    def archived_since(self, account: str, since: datetime) -> int: ...
    def answered_since(self, account: str, since: datetime) -> tuple[int, int]: ...
    def decided_more_than_once(self, account: str, since: datetime) -> tuple[tuple[DecisionRecord, ...], ...]: ...
    def doubtful_archives(self, account: str, since: datetime) -> tuple[DecisionRecord, ...]: ...
    def archived_with(self, account: str, since: datetime, label_ids: Sequence[str]) -> tuple[DecisionRecord, ...]: ...
    def archived_elsewhere(self, account: str, since: datetime, archive: str) -> tuple[DecisionRecord, ...]: ...
    def bold_heirs(self, account: str, since: datetime) -> tuple[str, ...]: ...
    def labels_beside(self, account: str, since: datetime, label_ids: Sequence[str]) -> tuple[DecisionRecord, ...]: ...
    def unanswered(self, account: str, since: datetime) -> tuple[DecisionRecord, ...]: ...
    def newest_answers(self, account: str, since: datetime, limit: int) -> tuple[DecisionRecord, ...]: ...
    def runs_since(self, account: str, since: datetime) -> int: ...
    def oversized_runs(self, account: str, since: datetime, cap: int) -> Mapping[str, int]: ...
    def overlapping_runs(self, account: str, since: datetime) -> Sequence[Overlap]: ...
    def decided_outside_their_run(self, account: str, since: datetime) -> tuple[tuple[str, str], ...]: ...
    def finished_twice(self, account: str) -> tuple[str, ...]: ...
    def corrections_of(self, decision_ids: Sequence[str]) -> tuple[Correction, ...]: ...
    def verify(self, account: str, *, whole: bool) -> Verified: ...
    def verify_receipts(self, account: str) -> Verified: ...


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose records since when. `archive` is the mailbox that archived mail belongs in, None if it is not known;
    `whole` verifies every link anew, whatever was verified before."""

    account: str
    categories: CategorySet
    since: datetime
    archive: str | None = None
    whole: bool = False

    def say(self, what: str) -> str:
        return f"account {self.account}, {what}"


def audit_ledger(book: AuditBook, scope: Scope) -> Audit:
    """The six invariants and the chains, as far as the records tell. Raises LedgerError."""
    with ThreadPoolExecutor(1, thread_name_prefix="audit") as pool:
        verified = pool.submit(_chain, book, scope)  # as long as all questions together, and outside Python's lock
        return Audit(_invariants(book, scope), verified.result(), _receipts(book, scope))


def _receipts(book: AuditBook, scope: Scope) -> Chain:
    found = book.verify_receipts(scope.account)
    return Chain(found.links, found.problems, pruned=found.pruned, words=RECEIPT_WORDS)


def _invariants(book: AuditBook, scope: Scope) -> tuple[Invariant, ...]:
    account, since = scope.account, scope.since
    decided = book.decided_since(account, since)
    runs = book.runs_since(account, since)
    answered, by_fallback = book.answered_since(account, since)
    share = f"{by_fallback / answered:.1%}" if answered else "none"
    return (
        Invariant(1, decided, tuple(_decided_twice(book, scope))),
        Invariant(2, book.archived_since(account, since), tuple(_doubtful(book, scope))),
        Invariant(3, decided, tuple(_strange(book, scope))),
        Invariant(
            4,
            runs,
            tuple(
                scope.say(f"run {run}: holds {n} messages")
                for run, n in sorted(book.oversized_runs(account, since, BATCH_CAP).items())
            ),
        ),
        Invariant(5, runs, tuple(_overlapping(book, scope))),
        Invariant(
            6,
            decided,
            tuple(_unknown_answers(book, scope)),
            (scope.say(f"{by_fallback:,} of {answered:,} answers came from a fallback ({share})"),) if answered else (),
        ),
    )


def _decided_twice(book: AuditBook, scope: Scope) -> Iterator[str]:
    groups = book.decided_more_than_once(scope.account, scope.since)
    taken_off: dict[str, list[datetime]] = {}
    for each in book.corrections_of([d.id for group in groups for d in group]):
        if each.kind in _ALLOWS_ANOTHER:
            taken_off.setdefault(each.decision_id, []).append(each.at)
    for group in groups:
        for first, second in pairwise(group):
            if not any(at <= second.decided_at for at in taken_off.get(first.id, ())):
                yield scope.say(f"message {first.message_key}: decided by {first.id} and again by {second.id}")


def _doubtful(book: AuditBook, scope: Scope) -> Iterator[str]:
    account, since = scope.account, scope.since
    for d in book.doubtful_archives(account, since):
        if d.labelled_at is None:
            why = "archived before its label was recorded"
        elif not d.archive:
            why = "archived though it was to stay"
        else:
            why = f"archived at {d.confidence:.4f}, floor {max(d.floor, d.archive_floor):.4f}"
        yield scope.say(f"decision {d.id}: {why}")
    for d in book.archived_with(account, since, (*_STAYS, scope.categories.fallback_id)):
        yield scope.say(f"decision {d.id}: archived as {d.label_id}, which always stays")
    for decision_id in book.bold_heirs(account, since):
        yield scope.say(f"decision {decision_id}: more sure than the decision it inherited from")


def _strange(book: AuditBook, scope: Scope) -> Iterator[str]:
    categories = scope.categories
    known = (*categories.label_ids, NONE_ID)
    for d in book.labels_beside(scope.account, scope.since, known):
        asked = {*d.probabilities, categories.fallback_id}
        before = d.category_set != categories.fingerprint  # decided under other categories than today's
        for what, value in (("label", d.label_id), ("choice", d.choice)):
            if value is None or value in known or (before and (value in asked or d.outcome is Outcome.INHERITED)):
                continue
            yield scope.say(f"decision {d.id}: its {what} {value} is no configured id")
    if scope.archive is not None:
        for d in book.archived_elsewhere(scope.account, scope.since, scope.archive):
            there = d.archived_ref.mailbox if d.archived_ref else "?"
            yield scope.say(f"decision {d.id}: moved to {there}, which is not the archive")


def _overlapping(book: AuditBook, scope: Scope) -> Iterator[str]:
    for pair in book.overlapping_runs(scope.account, scope.since):
        yield scope.say(f"run {pair.run_id}: began while {pair.before_id} was not over")
    for decision_id, run_id in book.decided_outside_their_run(scope.account, scope.since):
        yield scope.say(f"run {run_id}: decision {decision_id} was made when the run was not on")
    for run_id in book.finished_twice(scope.account):
        yield scope.say(f"run {run_id}: closed more than once")


def _unknown_answers(book: AuditBook, scope: Scope) -> Iterator[str]:
    for d in book.unanswered(scope.account, scope.since):
        missing = [name for name, told in _told(d).items() if not told]
        yield scope.say(f"decision {d.id}: does not say {', '.join(missing) or 'a confidence from 0 to 1'}")
    for d in book.newest_answers(scope.account, scope.since, NEWEST_ANSWERS):
        total = math.fsum(d.probabilities.values())
        if not d.probabilities:
            continue
        if abs(total - 1) > 1e-3:
            yield scope.say(f"decision {d.id}: its probabilities sum to {total:.4f}")
        elif abs(confidence(d.probabilities) - d.confidence) > _ROUNDING and d.outcome is not Outcome.CHAIN_FAILED:
            sure = confidence(d.probabilities)
            yield scope.say(f"decision {d.id}: says {d.confidence:.4f}, its probabilities say {sure:.4f}")


def _told(d: DecisionRecord) -> Mapping[str, object]:
    if d.outcome is Outcome.INHERITED:
        return {"its ancestor": d.inherited_from, "who labelled that": d.inherited_source}
    position = "" if d.chain_position is None else "known"
    return {
        "the provider": d.provider, "the model": d.model, "the position": position, "probabilities": d.probabilities
    }  # fmt: skip


def _chain(book: AuditBook, scope: Scope) -> Chain:
    found = book.verify(scope.account, whole=scope.whole)
    notes: tuple[str, ...] = ()
    if found.anew < found.links:
        kept = found.links - found.anew
        notes = (
            f"account {scope.account}: {found.anew:,} links were recomputed; the other {kept:,} are, with their "
            "records, byte for byte as when they were. `triage audit --whole` recomputes all.",
        )
    return Chain(found.links, found.problems, notes, found.pruned)
