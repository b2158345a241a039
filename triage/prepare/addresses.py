"""Address lists made readable (RFC 5322, 3.4): names decoded, groups named, anything malformed shown as it is."""

from __future__ import annotations

import re

from triage.prepare.clean import one_line
from triage.prepare.headers import decode_words

MAX_SHOWN = 8
MAX_CHARS = 400

_PIECE = re.compile(r'"(?:[^"\\]|\\.){0,300}"|<[^<>]*>|[,;:()"<\\]|[^,;:()"<\\]+')
_ANGLE = re.compile(r"\s*<\s*([^<>]*?)\s*>?\s*\Z")


def readable(value: str, limit: int = MAX_SHOWN) -> str:
    """A From, To or Cc value for a reader: `Name <address>`, at most `limit` of them and `MAX_CHARS` characters."""
    shown: list[str] = []
    total = 0
    for item in _items(" ".join(value.split())):
        text = _item(item)
        if not text:
            continue
        total += 1
        if total <= limit:
            shown.append(text)
    if total > limit:
        shown.append(f"and {total - limit} more")
    return one_line(", ".join(shown), MAX_CHARS)


def _items(value: str) -> list[str]:
    """The list split at commas outside quotes, comments and angle brackets; a group's name stays with its first."""
    items: list[str] = []
    current: list[str] = []
    comment = 0
    for piece in _PIECE.findall(value):
        if piece == "(":
            comment += 1
        elif piece == ")" and comment:
            comment -= 1
        elif comment == 0 and piece in ",;":
            items.append("".join(current))
            current = []
            continue
        current.append(piece)
    items.append("".join(current))
    return items


def _item(text: str) -> str:
    text = text.strip().rstrip(":").strip()
    found = _ANGLE.search(text)
    if found is None:
        return one_line(decode_words(text), 200)
    name = _plain(text[: found.start()])
    address = one_line(decode_words(found.group(1)), 200)
    if not name or name.casefold() == address.casefold():
        return address or name
    return f"{name} <{address}>" if address else name


def _plain(name: str) -> str:
    """A display name without its quotes, decoded."""
    bare = re.sub(r'\\(.)|"', r"\1", name) if '"' in name or "\\" in name else name
    return one_line(decode_words(bare), 200).strip("'\" ")
