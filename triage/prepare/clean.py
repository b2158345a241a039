"""Characters that no person sees, and white space, put in order."""

from __future__ import annotations

import re

_JOINED = "\u0590-\u0dff\u1000-\u109f\u1780-\u18af\u2600-\u27bf\ufb50-\ufdff\ufe0f\ufe70-\ufefc\U0001f000-\U0001faff"
"""Scripts in which a joiner shapes a word, and emoji, which it ties together; elsewhere joiners are padding."""

_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f]+")
_UNSEEN = (
    "\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_ANY_UNSEEN = re.compile(f"[{_UNSEEN}\u200c\u200d\ufe0e\ufe0f]")
_INVISIBLE = re.compile(
    f"[{_UNSEEN}]+"
    "|(?<=[\ufe0e\ufe0f])[\ufe0e\ufe0f]+"
    f"|(?<![{_JOINED}])[\u200c\u200d]+|[\u200c\u200d]+(?![{_JOINED}])|(?<=[\u200c\u200d])[\u200c\u200d]+"
)
_SMUGGLED = re.compile("[\U000e0000-\U000e0fff\u202d\u202e\u2061-\u2064\ufe00-\ufe0d]")
_OVERRIDDEN = re.compile("\u202e([^\n\u202c]*)")
"""Shown from right to left whatever it is: people read another text than the one that is stored."""
_FLAG = re.compile("\U0001f3f4[\U000e0061-\U000e007a]{1,6}\U000e007f")
_LINE_END = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_BLANK = "[ \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]"
_BLANKS = re.compile(f"{_BLANK}{{2,}}|[\t\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]")
_GAP = re.compile("\n{3,}")
_UNKNOWN = re.compile("\ufffd+")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def visible(text: str) -> tuple[str, int]:
    """`text` without invisible characters, and how many of those could have carried a message.

    Soft hyphens, joiners and the like that pad a preheader are removed and not counted; tag characters, variation
    selectors and direction overrides are removed and counted, and so is what is overridden. Line ends become LF.
    """
    text = _LINE_END.sub("\n", text.replace("\r\n", "\n"))
    if text.isascii():
        return _CONTROLS.sub("", text), 0
    if not _ANY_UNSEEN.search(text):
        return text, 0
    text = _FLAG.sub("\U0001f3f4", text)  # the flags of England, Scotland and Wales are spelt in tag characters
    overridden = sum(map(len, _OVERRIDDEN.findall(text))) if "\u202e" in text else 0
    return _INVISIBLE.sub("", text), len(_SMUGGLED.findall(text)) + overridden


def tidy(text: str) -> str:
    """One blank for any run of blanks, no blanks at line edges, at most one empty line between lines."""
    text = _BLANKS.sub(" ", text).replace(" \n", "\n").replace("\n ", "\n")
    text = _GAP.sub("\n\n", text).strip()
    return text if text.isascii() else _UNKNOWN.sub("\ufffd", text)


def one_line(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` characters, for a header field."""
    text = text[: limit * 8]
    if not (text.isascii() and text.isprintable()):
        text = _UNKNOWN.sub("\ufffd", _CONTROL.sub(" ", visible(text)[0]))
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"
