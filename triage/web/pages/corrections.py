"""Corrections: what people changed after a decision, from which category to which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from triage.domain.correction import BY_A_PERSON, CorrectionKind
from triage.web.messages import Request
from triage.web.page import Page
from triage.web.pages.asking import account_of, days_of
from triage.web.room import PERIODS, Room

NEWEST = 100
COUNTS_S = 30.0

WORDS = {
    CorrectionKind.RELABELLED: "another label was put on it",
    CorrectionKind.UNLABELLED: "the label was taken off",
    CorrectionKind.MOVED_BACK: "it was moved back to the inbox",
    CorrectionKind.CONFIRMED: "it was read and left as it was",
    CorrectionKind.UNDOING: "an undo began",
    CorrectionKind.UNDONE: "an undo took it back",
}


@dataclass(frozen=True, slots=True)
class Change:
    """From one category to another, so many times; `swaps` counts the other way round."""

    before: str
    after: str
    count: int
    swaps: int


def corrections(room: Room, request: Request) -> Page:
    """How often which category was corrected into which, and the newest corrections one by one."""
    account, days = account_of(room, request), days_of(request)
    since = room.period(days)[0]
    ledger = room.ledger
    seen = room.figures.look(("corrections", account, days), lambda: ledger.correction_counts(account, since), COUNTS_S)
    by_kind: Counter[str] = Counter()
    for (kind, _, _), count in seen.value.items():
        by_kind[kind] += count
    wrong = sum(by_kind[kind] for kind in BY_A_PERSON)
    reviewed = wrong + by_kind[CorrectionKind.CONFIRMED]
    newest = [c for c in ledger.corrections(account, since, NEWEST) if c.kind is not CorrectionKind.CONFIRMED]
    values = {
        "account": account,
        "accounts": room.accounts(),
        "days": days,
        "periods": PERIODS,
        "by_kind": by_kind,
        "kinds": CorrectionKind,
        "wrong": wrong,
        "reviewed": reviewed,
        "wrong_share": wrong / reviewed if reviewed else None,
        "changes": _changes(seen.value),
        "newest": newest,
        "words": WORDS,
        "looked_at": ledger.looked_for_corrections(account),
        "counted_at": seen.at,
    }
    return Page("corrections.html", "Corrections", "corrections", values)


def _changes(counts: Mapping[tuple[str, str, str | None], int]) -> list[Change]:
    moves = {
        (before, after): count
        for (kind, before, after), count in counts.items()
        if kind == CorrectionKind.RELABELLED and after is not None
    }
    found = [Change(a, b, count, moves.get((b, a), 0)) for (a, b), count in moves.items()]
    return sorted(found, key=lambda change: (-change.count, change.before, change.after))
