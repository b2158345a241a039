"""What the ledger alone can prove of the six invariants (DESIGN 3), after runs whose records are at hand. Pure.

The demo's mailbox dies with it, so nothing is read back from a mailbox here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from triage.domain.category import CategorySet
from triage.domain.decision import Outcome
from triage.domain.record import DecisionRecord, Run

BATCH_CAP = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One invariant: its number and words, how many items were looked at, and the ids of those that break it."""

    id: int
    words: str
    checked: int
    violations: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.violations


def check_invariants(
    runs: Sequence[Run], decisions: Sequence[DecisionRecord], categories: CategorySet
) -> tuple[Finding, ...]:
    """The six findings over the runs of one account and all their decisions."""
    messages = Counter(d.message_key for d in decisions)
    sizes = Counter(d.run_id for d in decisions)
    archived = [d for d in decisions if d.archived_at is not None]
    asked = [d for d in decisions if d.outcome in (Outcome.APPLIED, Outcome.BELOW_FLOOR)]
    spans = sorted((r.started_at, r.finished_at, r.id) for r in runs if r.started_at and r.finished_at)
    return (
        Finding(1, "No message is decided twice", len(decisions), tuple(k for k, n in messages.items() if n > 1)),
        Finding(
            2,
            "Nothing doubtful is archived",
            len(archived),
            tuple(d.id for d in archived if d.confidence < max(d.floor, d.archive_floor)),
        ),
        Finding(
            3,
            "A mail moves nothing but its own label",
            len(decisions),
            tuple(d.id for d in decisions if d.label_id not in categories.label_ids),
        ),
        Finding(
            4, f"No run holds more than {BATCH_CAP}", len(runs), tuple(r for r, n in sizes.items() if n > BATCH_CAP)
        ),
        Finding(
            5,
            "Runs of an account never overlap",
            len(spans),
            tuple(later[2] for earlier, later in pairwise(spans) if later[0] < earlier[1]),
        ),
        Finding(
            6,
            "It is known who answered",
            len(asked),
            tuple(d.id for d in asked if not (d.provider and d.model and d.probabilities)),
        ),
    )
