"""Who wrote a mail: the addresses of From, never what a display name says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from triage.threads.fields import FOLD

MAX_AUTHORS = 8
_MAX_CHARS = 320  # RFC 5321, 4.5.3.1: 64 + 1 + 255

# A quote or bracket that never closes matches nothing here and falls to the last alternative: the field is crooked.
_TOKEN = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|<([^<>]*)>|([(),:;])|([^\s\"<>(),:;]+)|([\"<>])", re.DOTALL)
_LOOSE = re.compile(r"[^\s\"'<>(),:;\[\]]+")
_ROUTE = re.compile(r"^@[^:]*:")
_ASCII_UPPER = {c: c + 32 for c in range(ord("A"), ord("Z") + 1)}


def normalise_address(address: str) -> str:
    """An addr-spec as it is compared, "" if it is none: ASCII lower case, no route, no white space.

    Only ASCII is folded: Unicode case folding would make one address of two (RFC 6532 leaves them distinct).
    """
    bare = _ROUTE.sub("", address.strip().removeprefix("<").removesuffix(">").strip()).replace(FOLD, "")
    local, at, domain = bare.rpartition("@")
    if not at or not local or not domain or len(bare) > _MAX_CHARS or any(c.isspace() or c < " " for c in bare):
        return ""
    return f"{local}@{domain.rstrip('.')}".translate(_ASCII_UPPER)


def read_authors(values: Sequence[str]) -> tuple[str, ...]:
    """Every distinct address in the From fields, normalised; at most `MAX_AUTHORS`. Never raises.

    An address in angle brackets beats any in the words beside it. A field that can be read in two ways (open quotes,
    two bracketed addresses for one name) yields all its addresses: whoever asks for one sender then gets none.
    """
    found = dict.fromkeys(a for value in values for a in _authors(value) if a)
    return tuple(found)[:MAX_AUTHORS]


def _authors(value: str) -> Iterator[str]:
    bracketed: list[str] = []
    words: list[str] = []
    depth = 0
    quoted_before = ""
    for match in _TOKEN.finditer(value):
        quoted, angle, mark, word, crooked = match.groups()
        if crooked is not None:
            yield from map(normalise_address, _LOOSE.findall(value))
            return
        if mark in ("(", ")"):
            depth = max(0, depth + (1 if mark == "(" else -1))
        elif depth:
            continue
        elif mark is not None:
            yield from map(normalise_address, bracketed or words)
            bracketed, words = [], []
        elif angle is not None:
            bracketed.append(angle)
        elif quoted is not None:
            quoted_before = f'"{quoted}"'
            continue
        elif "@" in word:
            words.append(quoted_before + word if word.startswith("@") else word)
        quoted_before = ""
    if depth:
        yield from map(normalise_address, _LOOSE.findall(value))
        return
    yield from map(normalise_address, bracketed or words)
