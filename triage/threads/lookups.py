"""Which Message-IDs of a batch are worth looking for in the mailbox."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triage.threads.candidate import Found
from triage.threads.headers import ThreadHeaders


def lookups(batch: Mapping[int, ThreadHeaders], *, per_message: int = 6, total: int = 60) -> tuple[str, ...]:
    """The ids to locate, nearest first, every message served before any is served twice.

    Of more than `per_message` ancestors the root replaces the last: whether the owner began the thread decides if its
    replies stay. Ids borne by the batch itself are left out, and ids no server can search for (not printable ASCII).
    """
    own = {headers.message_id for headers in batch.values()}
    return _by_rank([_wishes(headers, own, per_message) for headers in batch.values()], total)


def further_lookups(
    batch: Mapping[int, ThreadHeaders], found: Found, *, per_message: int = 2, total: int = 20
) -> tuple[str, ...]:
    """A second look, mostly empty: the ids that unlabelled mails found at first name and the batch does not.

    Some programs write In-Reply-To alone; the answer to the owner's own mail then names a mail in Sent, and only that
    one names the labelled mail. Not needed for a thread whose replies carry References.
    """
    known = {i for headers in batch.values() for i in (headers.message_id, *headers.parents)} | set(found)
    unlabelled = [c.headers for mails in found.values() for c in mails if not c.label_ids]
    return _by_rank([_wishes(headers, known, per_message) for headers in unlabelled], total)


def _by_rank(wishes: Sequence[tuple[str, ...]], total: int) -> tuple[str, ...]:
    depth = max(map(len, wishes), default=0)
    ranked = dict.fromkeys(wish[rank] for rank in range(depth) for wish in wishes if rank < len(wish))
    return tuple(ranked)[: max(0, total)]


def _wishes(headers: ThreadHeaders, own: set[str], limit: int) -> tuple[str, ...]:
    ids = tuple(i for i in headers.parents if i not in own and i.isascii() and i.isprintable())
    if len(ids) <= limit or limit < 2:
        return ids[: max(0, limit)]
    return (*ids[: limit - 1], ids[-1])
