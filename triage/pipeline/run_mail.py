"""Mail of the mail tool's runs is left to them: it costs no decision and stays in the inbox.

While a run lives its mail bears nothing. Once it is over the mail gets a label of its own, so that a person sees what
it was, and so that it is not looked at again.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from triage.domain.mail import Head
from triage.pipeline.plan import RunScope

_MOST = 10


def leave_run_mail(scope: RunScope, room: int, select: Callable[[int], tuple[int, ...]]) -> tuple[int, ...]:
    """At most `room` messages of `select` that are no run's. Those of runs take no place in the batch."""
    run_mail, mailbox = scope.tools.run_mail, scope.tools.mailbox
    uids = select(room)
    if run_mail is None or not uids or not run_mail.watched():
        return uids
    heads: dict[int, Head] = {}
    owned: dict[int, str] = {}
    asked = room
    for again in count(1):
        fresh = dict(mailbox.fetch_heads([uid for uid in uids if uid not in heads]))
        heads.update(fresh)
        owned.update(run_mail.sort(fresh))
        free = tuple(uid for uid in uids if uid not in owned)
        if len(free) >= room or len(uids) < asked or again == _MOST:
            break
        asked = room + len(owned)
        uids = select(asked)
    _label(scope, {uid: label_id for uid, label_id in owned.items() if label_id}, heads)
    scope.tools.log.event("run_mail", left=sum(not label_id for label_id in owned.values()), found=len(owned))
    return free[:room]


def _label(scope: RunScope, ended: dict[int, str], heads: dict[int, Head]) -> None:
    """Mail of runs that are over. Safe to repeat: the label is the state."""
    plan = scope.plan
    if not ended or not plan.writes:
        return
    scope.lease.check()
    labels = {uid: plan.categories.label(label_id) for uid, label_id in ended.items()}
    scope.tools.mailbox.store_labels(labels, {uid: heads[uid] for uid in labels}, plan.categories.settled_labels)
