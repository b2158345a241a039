"""An earlier mail that a reply might inherit from, and what came of asking whether it may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from triage.domain.decision import Ancestor
from triage.threads.headers import ThreadHeaders

Found = Mapping[str, Sequence["Candidate"]]
"""Message-ID -> every mail in the mailbox that bears exactly this id (a mail can be there twice)."""

PERSON = "person"
DECISION = "decision"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A mail that really is in the mailbox, labelled or not: unlabelled ones show who took part.

    `label_ids` are the ids of the account's categories and fallback that it bears now. `source` says who labelled it,
    "person" or "decision"; a decision's `confidence` (0..1) and the `archive_floor` it needed come from the ledger
    (`math.inf` where that decision was not allowed to archive). `received` is INTERNALDATE, aware. `moved_back`: a
    person took it out of the archive again.
    """

    headers: ThreadHeaders
    message_key: str
    label_ids: tuple[str, ...] = ()
    confidence: float = 0.0
    source: str = DECISION
    archive_floor: float = 0.0
    received: datetime | None = None
    moved_back: bool = False


class KeepReason(StrEnum):
    """Why a mail stays in the inbox whatever its category asks for."""

    NONE = ""
    OWNER_WROTE = "owner_wrote"
    MOVED_BACK = "ancestor_moved_back"
    BELOW_FLOOR = "ancestor_below_archive_floor"


class AskReason(StrEnum):
    """Why a mail inherits nothing and the model is asked."""

    NO_ANCESTOR = "no_ancestor"
    NOT_FOUND = "ancestor_not_found"
    UNLABELLED = "ancestor_unlabelled"
    NOT_EARLIER = "ancestor_not_earlier"
    AMBIGUOUS = "ancestor_ambiguous"
    HIJACK = "hijack_in_thread"
    NOT_A_PARTICIPANT = "sender_not_in_thread"
    NOT_NAMED = "ancestor_not_named"
    FORWARD = "forward"
    SUBJECT_CHANGED = "subject_changed"


@dataclass(frozen=True, slots=True)
class Inherit:
    """Take over the ancestor's category. `why` is a sentence for a person without any text of the mail.

    `archive_floor` is what the ancestor's own decision needed to be archived, 0 where a person labelled it.
    """

    ancestor: Ancestor
    why: str
    archive_floor: float = 0.0
    keep_reason: KeepReason = KeepReason.NONE

    @property
    def keep_in_inbox(self) -> bool:
        return self.keep_reason is not KeepReason.NONE


@dataclass(frozen=True, slots=True)
class WaitFor:
    """These mails of the batch, ancestors of this one, must be decided first. Never circular."""

    uids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the model; `keep_in_inbox` holds for whatever it answers."""

    reason: AskReason
    why: str
    keep_reason: KeepReason = KeepReason.NONE

    @property
    def keep_in_inbox(self) -> bool:
        return self.keep_reason is not KeepReason.NONE


WHY: Mapping[AskReason, str] = {
    AskReason.NO_ANCESTOR: "the mail names no earlier mail",
    AskReason.NOT_FOUND: "none of the mails it answers is in the mailbox",
    AskReason.UNLABELLED: "the earlier mails of its thread bear no category",
    AskReason.NOT_EARLIER: "the mails it names came after it",
    AskReason.AMBIGUOUS: "the mail it answers bears more than one category",
    AskReason.HIJACK: "its thread holds a hijack attempt",
    AskReason.NOT_A_PARTICIPANT: "its thread is archived and its sender had no part in it so far",
    AskReason.NOT_NAMED: "its thread is archived and only other mails connect it to that thread",
    AskReason.FORWARD: "its thread is archived and it is a forward",
    AskReason.SUBJECT_CHANGED: "its subject has nothing of the mail it refers to",
}
