"""UTF-16 without a byte order mark, and UTF-16 that went through servers which carry neither NUL nor a bare LF."""

from __future__ import annotations

WIDE = frozenset({"utf_16", "utf_16_be", "utf_16_le"})
_SAMPLE = 2048
_LATIN = {0x8000 + code: code for code in range(0x01, 0x100)}
_ASCII = {0x8000 + code: code for code in (0x09, 0x0A, 0x0D, *range(0x20, 0x7F))}
_NUL_OR_ITS_STAND_IN = b"\0\x80"
"""Servers send 0x80 for NUL (RFC 9051, 4.3.1)."""


def wide_codec(data: bytes, label: str) -> str:
    """The codec with its byte order if this is UTF-16, labelled so or plain to see; "" if it is not."""
    sample = data[:_SAMPLE].replace(b"\r\n", b"\n")
    even, odd = sample[::2], sample[1::2]
    if label in WIDE:
        if b"\0" not in sample and b" " in sample and sample.isascii():
            return ""  # the label lies: single bytes
        if label != "utf_16":
            return label
        # all letters of a script share their high byte
        return "utf_16_le" if len(set(odd)) < len(set(even)) else "utf_16_be"
    if label not in ("", "ascii") or len(sample) < 8 or not (b"\0" in sample or b"\x80" in sample):
        return ""
    if _noughts(odd) > 0.4 * len(odd) and _noughts(even) < 0.05 * len(even):
        return "utf_16_le"
    if _noughts(even) > 0.4 * len(even) and _noughts(odd) < 0.05 * len(odd):
        return "utf_16_be"
    return ""


def without_added_returns(data: bytes) -> bytes:
    """The octets before a server put CRLF for each LF octet; in UTF-16 the two never stand side by side."""
    return data.replace(b"\r\n", b"\n")


def with_noughts(text: str) -> str:
    """The text before a server put 0x80 for each NUL, which made U+8020 of a blank and U+800A of a line end."""
    if "\u8020" not in text and "\u800a" not in text:
        return text
    shifted = sum(1 for c in text if "\u8000" <= c <= "\u80ff")
    return text.translate(_LATIN if shifted > len(text) / 4 else _ASCII)


def _noughts(octets: bytes) -> int:
    return len(octets) - len(octets.translate(None, _NUL_OR_ITS_STAND_IN))
