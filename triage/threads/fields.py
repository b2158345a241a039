"""Header fields out of a raw header block: unfolded, bounded, whatever the bytes are."""

from __future__ import annotations

import re
from collections.abc import Mapping

MAX_BLOCK_BYTES = 1_000_000
MAX_FIELD_BYTES = 64_000
"""Longer fields lose their middle: the nearest ancestors stand at the end of References, the root at its start."""
_HEAD_BYTES = 4_000
_MAX_REPEATS = 20

_FIELD = re.compile(rb"^([!-9;-~]{1,60})[ \t]*:(.*(?:\n[ \t].*)*)", re.MULTILINE)
_FOLD = re.compile(rb"\n[ \t]+")

FOLD = "\n"
"""Stands where a line was folded, so that an id broken over two lines can be told from two words."""


def read_fields(block: bytes, wanted: frozenset[str]) -> Mapping[str, tuple[str, ...]]:
    """The values of the `wanted` (lower-case) fields by name, in the order of the message (RFC 5322, 2.2).

    A fold is kept as one `FOLD`. Bytes that are not UTF-8 are read as Latin-1; NUL is dropped. Never raises.
    """
    text = block[:MAX_BLOCK_BYTES].replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\0", b"").lstrip(b"\n")
    end = text.find(b"\n\n")
    found: dict[str, list[str]] = {}
    for match in _FIELD.finditer(text if end < 0 else text[: end + 1]):
        name = match[1].decode("ascii").lower()
        if name in wanted:
            values = found.setdefault(name, [])
            if len(values) < _MAX_REPEATS:
                values.append(_decode(_FOLD.sub(b"\n", _cut(match[2].strip()))))
    return {name: tuple(values) for name, values in found.items()}


def _cut(value: bytes) -> bytes:
    if len(value) <= MAX_FIELD_BYTES:
        return value
    return value[:_HEAD_BYTES] + b"\n" + value[_HEAD_BYTES - MAX_FIELD_BYTES :]


def _decode(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
