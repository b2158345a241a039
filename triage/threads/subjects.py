"""What a subject may say about a thread: never that two mails belong together, only that they do not."""

from __future__ import annotations

import re

from triage.threads.encoded_words import decode_words

MAX_SUBJECT_CHARS = 500
_MIN_SHARED_CHARS = 4

_PREFIX = re.compile(r"^(?:\[[^\]\[]{0,60}\]\s*)*([^\W\d_]{1,10})\s?(?:\[\d{1,3}\]|\(\d{1,3}\)|\^\d{1,3})?\s?[:：]\s*")
_TAGS = re.compile(r"^(?:\[[^\]\[]{0,60}\]\s*)+")
_FORWARD = frozenset({
    "fw", "fwd", "wg", "tr", "rv", "reenv", "enc", "i", "inoltro", "vb", "vl", "pd", "ilt", "doorst", "пересл",
    "转发", "轉寄", "轉發", "転送", "전달",
})  # fmt: skip
_MAX_PREFIXES = 8


def clean_subject(value: str) -> str:
    """A subject decoded, on one line, at most `MAX_SUBJECT_CHARS` characters, case folded."""
    folded = " ".join(decode_words(value[: 4 * MAX_SUBJECT_CHARS]).split())[:MAX_SUBJECT_CHARS].casefold()
    return folded.replace("i\u0307", "i")  # what casefold makes of the Turkish capital I


def is_forward(subject: str) -> bool:
    """Does the outermost prefix of a clean subject say, in one of a dozen languages, that the mail is a forward?"""
    match = _PREFIX.match(subject)
    return match is not None and match[1] in _FORWARD


def are_related(one: str, other: str) -> bool:
    """Could two clean subjects belong to one exchange? True also where one of them is empty.

    Reply prefixes and [tags] do not count; a subject that grew or shrank ("(was: ...)", a cut) still belongs.
    """
    short, long = sorted((_base(one), _base(other)), key=len)
    return not short or short == long or (len(short) >= _MIN_SHARED_CHARS and short in long)


def _base(subject: str) -> str:
    for _ in range(_MAX_PREFIXES):
        match = _PREFIX.match(subject)
        if match is None:
            break
        subject = subject[match.end() :]
    return _TAGS.sub("", subject).strip()
