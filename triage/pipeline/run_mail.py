"""Mail of the mail tool's runs is left to them: it costs no decision and stays in the inbox.

While a run lives its mail bears nothing. Once it is over the mail gets a label of its own, so that a person sees what
it was, and so that it is not looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from triage.domain.mail import Head
from triage.pipeline.plan import RunMail, RunScope
from triage.ports import Mailbox

_ROUNDS = 8
"""Each asks for twice as many messages: a batch is found behind a hundred times as many of runs."""
_FEW = 20

Select = Callable[[int], tuple[int, ...]]
"""At most so many unlabelled messages, in the order in which they are to be taken."""


@dataclass(frozen=True, slots=True)
class _SortedOut:
    """Messages that are no run's, and those that are: "" while the run lives, else the label's id."""

    free: tuple[int, ...]
    owned: dict[int, str]
    heads: dict[int, Head]


def leave_run_mail(scope: RunScope, room: int, select: Select) -> tuple[int, ...]:
    """At most `room` messages of `select` that are no run's. Those of runs take no place in the batch."""
    run_mail = scope.tools.run_mail
    uids = select(room)
    if run_mail is None or not uids or not run_mail.watched():
        return uids
    found = _sort_out(scope.tools.mailbox, run_mail, room, select, uids)
    _label(scope, {uid: label_id for uid, label_id in found.owned.items() if label_id}, found.heads)
    left = sum(not label_id for label_id in found.owned.values())
    scope.tools.log.event("run_mail", left=left, found=len(found.owned))
    return found.free


def oldest_waiting(mailbox: Mailbox, run_mail: RunMail, labels: Sequence[str], since: date | None) -> datetime | None:
    """When the oldest message arrived that waits to be sorted; mail of runs waits for nobody. Raises MailboxError."""
    oldest = mailbox.oldest_unlabelled(labels, since)
    if oldest is None or not run_mail.watched():
        return oldest

    def select(most: int) -> tuple[int, ...]:
        return mailbox.select_unlabelled(labels, since, most)

    found = _sort_out(mailbox, run_mail, _FEW, select, select(_FEW))
    return found.heads[found.free[0]].received if found.free else None


def _sort_out(mailbox: Mailbox, run_mail: RunMail, room: int, select: Select, uids: tuple[int, ...]) -> _SortedOut:
    heads: dict[int, Head] = {}
    owned: dict[int, str] = {}
    asked = room
    for further in range(_ROUNDS, -1, -1):
        fresh = dict(mailbox.fetch_heads([uid for uid in uids if uid not in heads]))
        heads.update(fresh)
        owned.update(run_mail.sort(fresh))
        free = tuple(uid for uid in uids if uid in heads and uid not in owned)
        if len(free) >= room or len(uids) < asked or not further:
            break
        asked *= 2
        uids = select(asked)
    return _SortedOut(free[:room], owned, heads)


def _label(scope: RunScope, ended: dict[int, str], heads: dict[int, Head]) -> None:
    """Mail of runs that are over. Safe to repeat: the label is the state."""
    plan = scope.plan
    if not ended or not plan.writes:
        return
    scope.lease.check()
    labels = {uid: plan.categories.label(label_id) for uid, label_id in ended.items()}
    scope.tools.mailbox.store_labels(labels, {uid: heads[uid] for uid in labels}, plan.categories.settled_labels)
