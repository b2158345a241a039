"""What `triage audit` says, held against what a test counted by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from triage.domain.category import CategorySet
from triage.ledger.ledger import SqlLedger
from triage.report.audit_ledger import Scope, audit_ledger

EVER = datetime(2000, 1, 1, tzinfo=UTC)
UNAPPLIED = ("preview", "superseded", "label_refused")


def disagreements(ledger: SqlLedger, account: str, categories: CategorySet) -> Iterator[str]:
    """Invariants that the audit finds broken, and numbers in which it differs from a count record by record."""
    audit = audit_ledger(ledger, Scope(account, categories, EVER))
    for invariant in audit.invariants:
        yield from (f"audit, invariant {invariant.id}: {told}" for told in invariant.violations)
    yield from (f"audit, chain: {problem}" for problem in audit.chain.violations)
    runs = ledger.runs(account, limit=10_000)
    decided = Counter(d.ref for r in runs for d in ledger.decisions(r.id) if d.closed_reason not in UNAPPLIED)
    began = sum(run.started_at is not None for run in runs)
    counted = {1: len(decided), 4: began, 5: began}
    for number, ours in counted.items():
        theirs = next(invariant.checked for invariant in audit.invariants if invariant.id == number)
        if theirs != ours:
            yield f"audit, invariant {number}: checked {theirs}, the test counts {ours}"
