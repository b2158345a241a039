"""Categories as an operator writes them, and the label each becomes in the mailbox."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum

HIJACK_ID = "hijack-attempt"
RUN_ID = "run"
RUN_LATE_ID = "run-late"
"""What mail of the mail tool's runs bears once the run is over: it was nobody's to sort."""
NONE_ID = "none-of-these"
"""The option offered beside the categories (DESIGN 6); choosing it means the fallback label."""
ANCHORS = (
    "action-required", "conversation", "notification", "receipt", "newsletter", "promotion", "spam", HIJACK_ID,
)  # fmt: skip
"""The categories the embedded classifier knows by heart; `like:` names one of them."""


class Action(StrEnum):
    KEEP = "keep"
    ARCHIVE = "archive"


@dataclass(frozen=True, slots=True)
class Category:
    """One category: `criteria` says what belongs in it, `floor` (0..1) may ask for more than the general floor.

    `like` names one of the embedded classifier's anchors that this category resembles.
    """

    id: str
    name: str
    criteria: str
    examples: tuple[str, ...] = ()
    action: Action = Action.KEEP
    floor: float | None = None
    like: str | None = None


@dataclass(frozen=True, slots=True)
class CategorySet:
    """The categories of one account: 2 to 255, the fallback's id and name, and the parent of all labels."""

    parent: str
    fallback_id: str
    fallback_name: str
    categories: tuple[Category, ...]

    def get(self, category_id: str) -> Category | None:
        return next((c for c in self.categories if c.id == category_id), None)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(c.id for c in self.categories)

    @property
    def label_ids(self) -> tuple[str, ...]:
        """Every id that may stand on a message: the categories, then the fallback."""
        return (*self.ids, self.fallback_id)

    def label(self, label_id: str) -> str:
        """The keyword of an id, `Parent/id`; an empty parent gives the bare id."""
        return f"{self.parent}/{label_id}" if self.parent else label_id

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.label(i) for i in self.label_ids)

    @property
    def settled_labels(self) -> tuple[str, ...]:
        """The keywords of which each says that a message waits for nothing: the categories', and those of runs."""
        return (*self.labels, self.label(RUN_ID), self.label(RUN_LATE_ID))

    def id_of(self, label: str) -> str | None:
        """The id a keyword stands for; keywords are case-insensitive (RFC 9051, 2.3.2)."""
        wanted = label.casefold()
        return next((i for i in self.label_ids if self.label(i).casefold() == wanted), None)

    def ids_on(self, flags: frozenset[str]) -> tuple[str, ...]:
        """The ids of this set that a message's flags bear, sorted."""
        return tuple(sorted({i for f in flags if (i := self.id_of(f)) is not None}))

    def action(self, label_id: str) -> Action:
        """What a label asks for. The fallback and the hijack category never leave the inbox."""
        category = self.get(label_id)
        if category is None or label_id == HIJACK_ID:
            return Action.KEEP
        return category.action

    @property
    def fingerprint(self) -> str:
        """16 hex digits that change whenever the question would change (ids, criteria, examples)."""
        text = json.dumps([[c.id, c.criteria, c.examples] for c in self.categories], ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
