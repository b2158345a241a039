"""Links written with characters that only look like those of a link: full width, mathematical, other dots and slashes.

Programs read `。`, `．` and `｡` as the dots of a host name (UTS 46, 4.2) and fold styled letters; people read `[.]` and
`∕` so.
"""

from __future__ import annotations

import re
from unicodedata import normalize

from triage.prepare.domains import LETTER, TLD

_DOTS = r"[\u3002\uff0e\uff61\u2024\ufe52]|\[\.\]|\(\.\)|\{\.\}|\[dot\]|\(dot\)"
_SLASHES = "\uff0f\u2044\u2215\u29f8\u2571\u3033"
_COLONS = "\uff1a\u2236\ua789\ufe55\u02d0\u0589\ufe13"
_STYLED = "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff\u24b6-\u24e9\u2460-\u2468"

_BRACKETED = ("[.]", "(.)", "{.}", "[dot]", "(dot)", "[DOT]", "(DOT)")
_ODD = re.compile(f"[{_STYLED}{_SLASHES}{_COLONS}\u3002\uff0e\uff61\u2024\ufe52]")
_WORD = re.compile(r"\S+")
_RUN = re.compile(rf"[{_STYLED}][{_STYLED}\uff0d\uff3f\uff05\uff06\uff1d\uff1f\uff03\uff20]*")
_SEPARATOR = re.compile(rf"[.:/{_SLASHES}{_COLONS}]|{_DOTS}", re.IGNORECASE)
_DOT = re.compile(rf"(?:{_DOTS})", re.IGNORECASE)
_SLASH = re.compile(f"[{_SLASHES}]")
_PATH = rf"[/{_SLASHES}][a-zA-Z0-9_~%.=&?#+/{_SLASHES}-]*"
_LINK = re.compile(
    rf"(?<![{LETTER}_@./-])(?:([a-zA-Z][a-zA-Z0-9+-]{{1,19}})[:{_COLONS}][/{_SLASHES}]{{1,3}}"
    rf"([\w-]{{1,63}}(?:(?i:\.|{_DOTS})[\w-]{{1,63}}){{0,6}})({_PATH})?"
    rf"|([{LETTER}][{LETTER}-]{{0,62}}(?:(?i:\.|{_DOTS})[{LETTER}-]{{1,63}}){{1,6}})({_PATH})?)"
)
_ENDS_AS_HOST = re.compile(rf"[^.]*\Z|.*\.{TLD}\Z|\d{1, 3}(?:\.\d{1, 3}){3}\Z", re.DOTALL)


def plain_links(text: str) -> str:
    """`text` with the links among its lookalikes spelt as links are; all other text as it was."""
    if (text.isascii() or not _ODD.search(text)) and not any(dot in text for dot in _BRACKETED):
        return text
    return _LINK.sub(_spelt, _WORD.sub(_unstyled, text))


def _unstyled(found: re.Match[str]) -> str:
    word = found.group()
    return _RUN.sub(_folded, word) if _SEPARATOR.search(word) else word


def _folded(found: re.Match[str]) -> str:
    return normalize("NFKC", found.group())


def _spelt(found: re.Match[str]) -> str:
    scheme, schemed, schemed_path, bare, bare_path = found.groups()
    host = _DOT.sub(".", schemed or bare)
    path = _SLASH.sub("/", schemed_path or bare_path or "")
    if not _ENDS_AS_HOST.fullmatch(host) and not (scheme and path):
        return found.group()  # `https://a.example。Then`: a sentence ends here
    if scheme:
        return f"{scheme}://{host}{path}"
    return f"{host}{path}" if path or host[:4].lower() == "www." else found.group()
