"""What became of a decision afterwards: a person changed it, let it stand, or had it taken back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from triage.domain.mail import MessageRef


class CorrectionKind(StrEnum):
    RELABELLED = "relabelled"  # another label stands on the message
    UNLABELLED = "unlabelled"  # the label was taken off: decide again
    MOVED_BACK = "moved_back"  # out of the archive, into the inbox
    CONFIRMED = "confirmed"  # read since, and left as it was: a weak yes
    UNDOING = "undoing"  # `triage undo` is about to take the decision back
    UNDONE = "undone"  # `triage undo` took it back


BY_A_PERSON = frozenset({CorrectionKind.RELABELLED, CorrectionKind.UNLABELLED, CorrectionKind.MOVED_BACK})
"""The kinds that say: this decision was wrong."""
TAKEN_BACK = frozenset({CorrectionKind.UNDOING, CorrectionKind.UNDONE})
"""The kinds after which the message is never archived by a decision again."""


@dataclass(frozen=True, slots=True)
class Correction:
    """One such fact, found at `at` (aware UTC). `from_label` is the label id that was decided, `to_label` the one that
    stands now, None if none does. `ref` is where the message lies now, None if that is not known."""

    id: str
    account: str
    decision_id: str
    message_key: str
    message_id_key: str
    kind: CorrectionKind
    from_label: str
    to_label: str | None
    at: datetime
    ref: MessageRef | None = None
