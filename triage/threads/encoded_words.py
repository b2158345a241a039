"""Encoded words (RFC 2047) in fields where software wrongly or rightly put them."""

from __future__ import annotations

import binascii
import re

# RFC 2047 allows 75 characters; the bound keeps codecs with quadratic cost (punycode) cheap.
_WORD = re.compile(r"=\?([A-Za-z0-9_.:-]{1,40})(?:\*[A-Za-z0-9-]{0,20})?\?([bBqQ])\?([^?\s]{0,1000})\?=")
_BETWEEN = re.compile(r"(\?=)\s+(?==\?[A-Za-z0-9_.:*-]{1,60}\?[bBqQ]\?)")


def decode_words(text: str) -> str:
    """`text` with its encoded words decoded; what cannot be decoded stays as it is. Never raises.

    White space between two encoded words belongs to neither (RFC 2047, 6.2).
    """
    if "=?" not in text:
        return text
    return _WORD.sub(_decoded, _BETWEEN.sub(r"\1", text))


def _decoded(match: re.Match[str]) -> str:
    charset, encoding, payload = match[1], match[2].upper(), match[3]
    try:
        raw = payload.encode("ascii")
        data = (
            binascii.a2b_base64(raw + b"=" * (-len(raw) % 4)) if encoding == "B" else binascii.a2b_qp(raw, header=True)
        )
        # Lone surrogates (utf-16, utf-7, "surrogateescape" aliases) would break every later encode.
        return data.decode(charset, "replace").encode("utf-8", "replace").decode("utf-8")
    except (ValueError, LookupError):
        return match[0]
