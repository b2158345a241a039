"""The last line of defence for everything that leaves the program as text: addresses, URLs and known secrets go.

Nothing should reach it that it has to change; what does is made harmless.
"""

from __future__ import annotations

import re
import threading

MAX_CHARS = 4_000
HIDDEN = "[hidden]"

_URL = re.compile(r"\b(?:[a-z][a-z0-9+.-]{1,20}://|mailto:|www\.)[^\s<>\"']*", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:\"[^\"@]{1,64}\"|[^\s@<>()\[\],;:\"]{1,320})@((?:[\w-]{1,63}\.){0,10}[\w-]{1,63})")
_BEARER = re.compile(r"\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_HARMLESS = re.compile(r"[\w-]*")
"""One word: neither URL nor address nor two words of a header fit in it. Most of what is logged is one."""
_SHORTEST_SECRET = 4
_MOST_SECRETS = 500  # tokens that are renewed every hour must not pile up

_lock = threading.Lock()
_concealed: dict[str, None] = {}
_longest_first: tuple[str, ...] = ()


def conceal(secret: str) -> None:
    """Remember a secret, so that `redact` takes it out wherever it turns up. Very short ones are left: they are words.

    The newest 500 are remembered, as long as the process lives, and never shown.
    """
    global _longest_first
    if len(secret) < _SHORTEST_SECRET:
        return
    with _lock:
        _concealed.pop(secret, None)
        _concealed[secret] = None
        if len(_concealed) > _MOST_SECRETS:
            del _concealed[next(iter(_concealed))]
        _longest_first = tuple(sorted(_concealed, key=len, reverse=True))


def redact(text: str) -> str:
    """The text without URLs (`[url]`), without the local part of addresses (`@domain`), without known secrets.

    At most 4,000 characters are kept.
    """
    for secret in _longest_first:
        text = text.replace(secret, HIDDEN)
    if len(text) <= MAX_CHARS and _HARMLESS.fullmatch(text):
        return text
    text = text if len(text) <= MAX_CHARS else text[:MAX_CHARS] + "..."
    text = _URL.sub("[url]", text)
    text = _BEARER.sub(rf"\1 {HIDDEN}", text)
    return _ADDRESS.sub(r"@\1", text) if "@" in text else text
