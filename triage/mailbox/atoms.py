"""IMAP data as nested values: one match a token, where imapclient's lexer takes a step of Python an octet.

The structures and headers of a batch cost a quarter of a run's time that way. A test holds the two to the same result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Value = int | bytes | None | tuple["Value", ...]
"""A number, an atom or string, NIL, a list."""

MAX_DEPTH = 200

_TOKEN = re.compile(
    rb"""[ \t\r\n]*+(?:
        (?P<mark>[()])
      | "(?P<quoted>(?:[^"\\]++|\\.)*)"
      | (?P<word>(?:[^\x00-\x20()"\[]++|\[[^\]]*+\])+)   # what stands in square brackets belongs to the word
      | \Z
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(rb'\\(["\\])')
_LITERAL = re.compile(rb"\{(\d+)\}\Z")


def values(parts: Sequence[object]) -> tuple[Value, ...]:
    """The values of one response (RFC 9051, 4) as imaplib hands it over: octets, or (octets, literal) where a literal
    was sent. Raises ValueError for what is no such data."""
    lists: list[list[Value]] = [[]]
    for part in parts:
        match part:
            case bytes():
                _read(part, lists)
            case (bytes() as text, bytes() as literal):
                marker = _LITERAL.search(text)
                if marker is None or int(marker[1]) != len(literal):
                    raise ValueError("a literal of another length than told")
                _read(text[: marker.start()], lists)
                lists[-1].append(literal)
            case _:
                raise ValueError("not what imaplib hands over")
    if len(lists) != 1:
        raise ValueError("a list without its end")
    return tuple(lists[0])


def _read(text: bytes, lists: list[list[Value]]) -> None:
    """Put the values of `text` into the innermost of the open lists."""
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError("not IMAP data")
        at = token.end()
        match token.lastgroup:
            case "word":
                lists[-1].append(_atom(token["word"]))
            case "quoted":
                data = token["quoted"]
                lists[-1].append(_ESCAPED.sub(rb"\1", data) if b"\\" in data else data)
            case "mark" if token["mark"] == b"(":
                if len(lists) > MAX_DEPTH:
                    raise ValueError("lists in lists without end")
                lists.append([])
            case "mark":
                done = tuple(lists.pop())
                if not lists:
                    raise ValueError("a list that ends before it begins")
                lists[-1].append(done)


def _atom(word: bytes) -> Value:
    if word == b"NIL":
        return None
    if word.isdigit() and (len(word) == 1 or not word.startswith(b"0")):
        return int(word)
    return word
