"""Message-IDs out of Message-ID, In-Reply-To and References, however they are written (RFC 5322, 3.6.4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from triage.threads.encoded_words import decode_words
from triage.threads.fields import FOLD

MAX_ID_CHARS = 512
MAX_PARENTS = 40

# One alternative per kind of token, none of which can start inside another: one pass, no backtracking.
_TOKEN = re.compile(r"<([^<>]*)>|([()])|([^\s<>(),;\"']+)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def read_ids(value: str) -> tuple[str, ...]:
    """The Message-IDs in one field value, in the order written, exact in case and with angle brackets.

    Ids in brackets count; only where there is none, words with an @ do. Comments are left out unless nothing else is
    there. An id broken by a fold is joined. `<>` and ids over `MAX_ID_CHARS` characters are dropped. Never raises.
    """
    plain: list[str] = []
    bare: list[str] = []
    commented: list[str] = []
    depth = 0
    for match in _TOKEN.finditer(decode_words(value)):
        bracketed, paren, word = match.groups()
        if paren is not None:
            depth = depth + 1 if paren == "(" else max(0, depth - 1)
        elif bracketed is not None:
            (commented if depth else plain).append(_joined(bracketed))
        elif not depth and "@" in word.strip("@"):
            bare.append(word.rstrip(".:"))
    return _kept(plain) or _kept(commented) or _kept(bare)


def order_parents(in_reply_to: Sequence[str], references: Sequence[str], own: str) -> tuple[str, ...]:
    """Ancestors nearest first: In-Reply-To, then References from the end; without `own`, each id once.

    Of several ids in In-Reply-To the one that References name last is the nearest. At most `MAX_PARENTS` are kept:
    the nearest, and the root, because whoever began the thread is worth knowing.
    """
    place = {id_: n for n, id_ in enumerate(references)}
    direct = sorted(in_reply_to, key=lambda id_: -place.get(id_, -1))
    ordered = tuple(id_ for id_ in dict.fromkeys((*direct, *reversed(references))) if id_ != own)
    if len(ordered) <= MAX_PARENTS:
        return ordered
    return (*ordered[: MAX_PARENTS - 1], ordered[-1])


def _joined(inner: str) -> str:
    return "".join(line.strip() for line in inner.split(FOLD))


def _kept(inners: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"<{i}>" for i in inners if _is_id(i))


def _is_id(inner: str) -> bool:
    if not 0 < len(inner) <= MAX_ID_CHARS or _CONTROL.search(inner):
        return False
    return "@" in inner or not any(c.isspace() for c in inner)
