"""Transfer encodings undone (RFC 2045, 6), complete or cut anywhere. Nothing here raises."""

from __future__ import annotations

import binascii
import re

_BASE64 = re.compile(rb"[A-Za-z0-9+/\s]*+=?\s*+=?\s*+")
_FROM_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_ONLY_BASE64 = re.compile(rb"(?:[A-Za-z0-9+/]{4})+(?:\r?\n(?:[A-Za-z0-9+/]{4})*)*[A-Za-z0-9+/]{0,3}={0,2}")
_NOT_BASE64 = re.compile(rb"[^A-Za-z0-9+/]+")
_BLANKS_BEFORE_END = re.compile(rb"=[ \t]+(?=\r?\n|\Z)")
_SOFT_BREAK = re.compile(rb"=\r?\n")
_QP_SIGNS = re.compile(rb"=(?:3D|20|C[23]|E2|\r?\n)")
_CUT_ESCAPE = re.compile(rb"=[0-9A-Fa-f]?\Z")


def decode_transfer(data: bytes, encoding: str) -> bytes:
    """The bytes behind a Content-Transfer-Encoding, whose name may be misspelt or plainly wrong."""
    name = re.sub(r"[^a-z0-9]", "", encoding.lower())
    if name.startswith("base64"):
        return decode_base64(data)
    if name.startswith("quotedprintable"):
        return decode_quoted_printable(data)
    if name in ("uuencode", "xuuencode", "uue", "xuue"):
        return _decode_uu(data)
    if len(data) >= 40 and _ONLY_BASE64.fullmatch(data.rstrip()) and (text := _quanta(data)) and _reads_well(text):
        return text
    # quoted-printable that lost its label: soft line ends and escapes of its own, several of them
    if data.count(b"=\n") + data.count(b"=\r\n") >= 2 and len(_QP_SIGNS.findall(data)) >= 4:
        return decode_quoted_printable(data)
    return data


def _reads_well(data: bytes) -> bool:
    """Text in UTF-8 with blanks in it and no controls, as no name or number turns into by chance."""
    text = data.decode("utf-8", "replace")
    return " " in text and "\ufffd" not in text[:-1] and all(c.isprintable() or c in "\r\n\t" for c in text)


def decode_base64(data: bytes) -> bytes:
    """Base64 that may be cut, padded in the middle, wrongly labelled, or followed by a list's plain-text footer."""
    if b"-" in data or b"_" in data:
        plain = data.translate(_FROM_URL_SAFE)
        data = plain if _BASE64.fullmatch(plain) else data
    if _BASE64.fullmatch(data):
        return _quanta(data)
    out: list[bytes] = []
    chunk: list[bytes] = []
    lines = data.split(b"\n")
    for n, line in enumerate(lines):
        bare = line.strip()
        if b" " in bare:  # words: no base64 any more
            if not out and not chunk:
                return data
            return b"".join((*out, _quanta(b"".join(chunk)), b"\n", *(rest + b"\n" for rest in lines[n:])))
        chunk.append(bare)
        if bare.endswith(b"="):
            out.append(_quanta(b"".join(chunk)))
            chunk = []
    return b"".join((*out, _quanta(b"".join(chunk))))


def _quanta(data: bytes) -> bytes:
    """Whole groups of four; a group that was cut gives the bytes it still holds."""
    pure = _NOT_BASE64.sub(b"", data)
    if len(pure) % 4 == 1:
        pure = pure[:-1]
    return binascii.a2b_base64(pure + b"=" * (-len(pure) % 4))


def decode_quoted_printable(data: bytes) -> bytes:
    """Quoted-printable, also with bare LF, blanks after a soft break, and bytes that are not escapes left alone."""
    return binascii.a2b_qp(_CUT_ESCAPE.sub(b"", _BLANKS_BEFORE_END.sub(b"=", data)))


def _decode_uu(data: bytes) -> bytes:
    out = bytearray()
    for line in data.splitlines():
        if line.startswith(b"begin ") or not line.strip():
            continue
        if line.strip() in (b"end", b"`"):
            break
        try:
            out += binascii.a2b_uu(line)
        except binascii.Error:
            continue
    return bytes(out)
