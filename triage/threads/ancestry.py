"""Who descends from whom, by what the mails of a batch and the mails found say of themselves."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from triage.threads.headers import ThreadHeaders

Edges = Mapping[str, tuple[str, ...]]
"""Message-ID -> the ids that a mail bearing it says it descends from (all copies together)."""


def edges(mails: Iterable[tuple[str, Iterable[str]]]) -> Edges:
    """Build the graph from (message id, parents) pairs; mails without an id cannot be descended from."""
    found: dict[str, dict[str, None]] = {}
    for message_id, parents in mails:
        if message_id:
            found.setdefault(message_id, {}).update(dict.fromkeys(parents))
    return {message_id: tuple(parents) for message_id, parents in found.items()}


def ancestors(of: Iterable[str], graph: Edges) -> tuple[str, ...]:
    """The ids `of` and every id reachable from them, by steps and then in the order written; cycles are walked once."""
    seen = dict.fromkeys(of)
    waiting = deque(seen)
    while waiting:
        for parent in graph.get(waiting.popleft(), ()):
            if parent not in seen:
                seen[parent] = None
                waiting.append(parent)
    return tuple(seen)


def descendants(of: str, graph: Edges) -> frozenset[str]:
    """Every id that says, directly or through others, that it came after `of`; none for the empty id."""
    if not of:
        return frozenset()
    children: dict[str, list[str]] = {}
    for message_id, parents in graph.items():
        for parent in parents:
            children.setdefault(parent, []).append(message_id)
    return frozenset(ancestors(children.get(of, ()), {i: tuple(c) for i, c in children.items()}))


def waves(batch: Mapping[int, ThreadHeaders]) -> tuple[tuple[int, ...], ...]:
    """The batch in an order in which every mail comes after its ancestors in it; mails of one wave are independent.

    Mails of a cycle do not wait for one another. There are at most as many waves as mails.
    """
    graph = edges((h.message_id, h.parents) for h in batch.values())
    by_id: dict[str, list[int]] = {}
    for uid, headers in batch.items():
        if headers.message_id:
            by_id.setdefault(headers.message_id, []).append(uid)
    needs: dict[int, set[int]] = {}
    for uid, headers in batch.items():
        later = descendants(headers.message_id, graph) | {headers.message_id}
        needs[uid] = {other for parent in headers.parents if parent not in later for other in by_id.get(parent, ())}
    ordered: list[tuple[int, ...]] = []
    placed: set[int] = set()
    while len(placed) < len(batch):
        # Never empty: a need points from a descendant to an ancestor that does not descend from it, so needs form no
        # cycle among ids; a mail without an id is nobody's need.
        wave = tuple(uid for uid in batch if uid not in placed and needs[uid] <= placed)
        placed.update(wave)
        ordered.append(wave)
    return tuple(ordered)
