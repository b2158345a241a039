"""How well the demo did, against what a person would have chosen. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from triage.domain.category import Action, CategorySet
from triage.domain.mail import MessageRef
from triage.domain.record import DecisionRecord


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of messages. `labelled` got a category (not the fallback), `right` of them the one a person would choose;
    `wrongly_archived` left the inbox although a person would have kept them there."""

    decided: int
    labelled: int
    right: int
    archived: int
    wrongly_archived: int

    @property
    def unsure(self) -> int:
        return self.decided - self.labelled


def score(decisions: Iterable[DecisionRecord], truth: Mapping[MessageRef, str], categories: CategorySet) -> Score:
    """Compare each decision with `truth`, which names the category a person would choose for each message."""
    known = [d for d in decisions if d.ref in truth]
    labelled = [d for d in known if d.label_id != categories.fallback_id]
    archived = [d for d in known if d.archived_at is not None]
    return Score(
        decided=len(known),
        labelled=len(labelled),
        right=sum(d.label_id == truth[d.ref] for d in labelled),
        archived=len(archived),
        wrongly_archived=sum(categories.action(truth[d.ref]) is Action.KEEP for d in archived),
    )
