"""Header blocks: fields, encoded words, parameters; bounded, and deaf to every malformation."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from urllib.parse import unquote_to_bytes

from triage.prepare.charset import decode
from triage.prepare.transfer import decode_base64, decode_quoted_printable

MAX_BLOCK = 256 * 1024
MAX_FIELDS = 1000
MAX_VALUE = 32 * 1024
MAX_SHOWN = 8 * 1024
"""No more of a value is decoded for a reader."""

_FIELD = re.compile(rb"^([!-9;-~]{1,100})[ \t]*:((?:[^\n]*\n[ \t])*[^\n]*)", re.MULTILINE)
_FOLD = re.compile(r"[\r\n]+[ \t]*")
_WORD = re.compile(r"=\?([^?\s]{0,60})\?([bq])\?([^?]*+(?:\?(?!=)[^?]*+)*)\?=", re.IGNORECASE)
_BETWEEN_WORDS = re.compile(r"(?<=\?=)[ \t\r\n]+(?==\?[^?\s]{0,60}\?[bqBQ]\?)")
_OPEN_WORD = re.compile(r"=\?([^?\s]{1,60})\?([bq])\?([^?\s]*)\Z", re.IGNORECASE)
_PARAM = re.compile(r""";\s*([^\s=;"]{1,60})\s*=\s*(?:"((?:[^"\\]|\\.)*)"?|([^;]*))""")
_SECTION = re.compile(r"([^*]+)\*(?:(\d{1,3})(\*)?)?")


class Fields:
    """The fields of one header block by lower-case name, first occurrence first. Values are raw bytes."""

    def __init__(self, block: bytes) -> None:
        self._values: dict[str, list[bytes]] = {}
        for name, value in _split(block[:MAX_BLOCK]):
            self._values.setdefault(name, []).append(value)

    def first(self, name: str, charset: str = "") -> str:
        """The first value of a field that is not blank, unfolded; raw 8-bit is UTF-8, else `charset`. "" if absent."""
        return next((text for v in self._values.get(name, ()) if (text := raw_text(v, charset))), "")

    def __contains__(self, name: str) -> bool:
        return name in self._values


def _split(block: bytes) -> list[tuple[str, bytes]]:
    """Lines that are no field (junk of a gateway, an mbox separator) are passed over."""
    if b"\n" not in block:
        block = block.replace(b"\r", b"\n")
    found = islice(_FIELD.finditer(block), MAX_FIELDS)
    return [(m.group(1).decode("ascii").lower(), m.group(2)[:MAX_VALUE]) for m in found]


def raw_text(value: bytes, charset: str = "") -> str:
    """A field's value as text on one line, encoded words still encoded."""
    text = value[:MAX_VALUE].decode("ascii") if value.isascii() else decode(value[:MAX_VALUE], charset)[0]
    return _FOLD.sub(" ", text).strip()


def decode_words(text: str) -> str:
    """Encoded words (RFC 2047) decoded wherever they stand, also unterminated, glued or of unknown charset."""
    text = text[:MAX_SHOWN]
    if "=?" not in text:
        return text
    out: list[str] = []
    end = 0
    pending: tuple[str, bytearray] | None = None  # neighbours of one charset may share a character
    text = _BETWEEN_WORDS.sub("", text)
    for found in _WORD.finditer(text):
        charset = found.group(1).partition("*")[0]
        payload = _payload(found.group(2), found.group(3))
        if pending and (found.start() > end or pending[0].lower() != charset.lower()):
            out.append(decode(bytes(pending[1]), pending[0])[0])
            pending = None
        if found.start() > end:
            out.append(text[end : found.start()])
        pending = (charset, pending[1] + payload) if pending else (charset, bytearray(payload))
        end = found.end()
    if pending:
        out.append(decode(bytes(pending[1]), pending[0])[0])
    tail = text[end:]
    if cut := _OPEN_WORD.search(tail):  # the closing mark was cut off
        tail = tail[: cut.start()] + decode(_payload(cut.group(2), cut.group(3)), cut.group(1))[0]
    return "".join((*out, tail))


def _payload(kind: str, text: str) -> bytes:
    raw = text.encode("utf-8", "replace")
    return decode_base64(raw) if kind in "bB" else decode_quoted_printable(raw.replace(b"_", b" "))


def parse_parameters(value: str) -> tuple[str, Mapping[str, str]]:
    """Main value (lower case) and parameters of Content-Type or Content-Disposition, RFC 2231 pieces joined."""
    value = value[:MAX_VALUE]
    main, _, _ = value.partition(";")
    plain: dict[str, str] = {}
    pieces: dict[str, dict[int, tuple[str, bool]]] = {}
    for found in _PARAM.finditer(value[len(main) :]):
        name = found.group(1).lower()
        quoted, bare = found.group(2), found.group(3)
        text = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else (bare or "").strip().strip("\"'")
        section = _SECTION.fullmatch(name)
        if section is None:
            plain.setdefault(name, text)
        else:
            number = int(section.group(2) or 0)
            encoded = section.group(3) == "*" or section.group(2) is None
            pieces.setdefault(section.group(1), {}).setdefault(number, (text, encoded))
    for name, numbered in pieces.items():
        plain[name] = _join_pieces([numbered[n] for n in sorted(numbered)])
    return main.partition("(")[0].strip().strip("\"'").lower(), plain


def _join_pieces(pieces: list[tuple[str, bool]]) -> str:
    charset, raw = "", bytearray()
    for number, (text, encoded) in enumerate(pieces):
        if encoded and number == 0 and text.count("'") >= 2:
            charset, _, text = text.split("'", 2)
        raw += unquote_to_bytes(text) if encoded else text.encode("utf-8", "replace")
    return decode(bytes(raw), charset)[0]
