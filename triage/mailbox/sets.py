"""UID sets: written short, cut by the length of the command, read with a bound (RFC 9051, 9: sequence-set)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

ROOM = 7000
"""Octets a set may fill, so that a whole command stays under the 8,000 that servers must accept (RFC 7162, 4)."""

MAX_MEMBERS = 1_000_000


def ranges(uids: Iterable[int]) -> list[tuple[int, int]]:
    """Sorted, merged ranges: [1, 2, 3, 7] is [(1, 3), (7, 7)]."""
    found: list[tuple[int, int]] = []
    for uid in sorted(set(uids)):
        if found and uid == found[-1][1] + 1:
            found[-1] = (found[-1][0], uid)
        else:
            found.append((uid, uid))
    return found


def chunks(uids: Iterable[int], room: int = ROOM) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The set in as few pieces as fit `room` octets each, with the UIDs of each piece."""
    words: list[str] = []
    members: list[int] = []
    used = 0
    for first, last in ranges(uids):
        word = str(first) if first == last else f"{first}:{last}"
        if words and used + len(word) + 1 > room:
            yield ",".join(words), tuple(members)
            words, members, used = [], [], 0
        words.append(word)
        members.extend(range(first, last + 1))
        used += len(word) + 1
    if words:
        yield ",".join(words), tuple(members)


def parse(text: str, limit: int = MAX_MEMBERS) -> list[int]:
    """The members of a set as the server wrote it, in its order (COPYUID pairs two sets by position).

    Raises ValueError for anything else, and for a set of more than `limit` members.
    """
    members: list[int] = []
    for word in text.split(","):
        first, colon, last = word.partition(":")
        if not text.isascii() or not first.isdecimal() or (colon and not last.isdecimal()):
            raise ValueError("not a set of UIDs")
        low, high = int(first), int(last or first)
        step = 1 if high >= low else -1
        if abs(high - low) + len(members) >= limit:
            raise ValueError("a set of too many UIDs")
        members.extend(range(low, high + step, step))
    return members
