"""The policy's regular expressions, run under a time limit: a hostile subject must not stop the tool.

Callers never supply a pattern. Python cannot interrupt a match, so one that may be slow runs in a helper process that
can be ended; one that plainly cannot be (no repeat inside a repeat, at most one open-ended repeat) runs here.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import lru_cache
from typing import Any

LIMIT_S = 1.0
MOST_MATCHES = 20
MAX_TEXT = 20_000

_HELPER = (
    "import json,re,sys\n"
    "p,t,g,n=json.load(sys.stdin)\n"
    "out=[]\n"
    "for m in re.finditer(p,t):\n"
    " out.append(m.group(g))\n"
    " if len(out)>=n: break\n"
    "json.dump(out,sys.stdout)\n"
)


class TooSlowError(Exception):
    """A pattern took longer than its limit on this text."""


def pattern_problem(pattern: str) -> str | None:
    """What is wrong with a pattern, worded to follow its place; None if it can be used."""
    try:
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return "is no regular expression that Python can read"
    if compiled.match(""):
        return "would match an empty text, and so every text"
    return None


def found(pattern: str, text: str, group: int | str = 0, limit_s: float = LIMIT_S) -> tuple[str, ...]:
    """The first matches of `group`, at most 20. Raises TooSlowError."""
    text = text[:MAX_TEXT]
    if is_plain(pattern):
        values = []
        for match in re.finditer(pattern, text):
            values.append(match.group(group) or "")
            if len(values) == MOST_MATCHES:
                break
        return tuple(values)
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter on our own text
            [sys.executable, "-I", "-S", "-c", _HELPER],
            input=json.dumps([pattern, text, group, MOST_MATCHES]),
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=True,
        )
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        raise TooSlowError from None
    return tuple(value or "" for value in json.loads(done.stdout))


@lru_cache(maxsize=256)
def is_plain(pattern: str) -> bool:
    """Is the time of a match surely proportional to the text, or nearly?"""
    import re._parser as parser  # type: ignore[import-not-found]  # the only description of a pattern there is

    open_ended = 0

    def walk(items: Any, inside: bool) -> bool:
        nonlocal open_ended
        for op, argument in items:
            name = str(op)
            if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
                _, most, body = argument
                if most > 64:
                    open_ended += 1
                    if inside or open_ended > 1:
                        return False
                elif inside and most > 1 and len(body) > 1:
                    return False
                if not walk(body, inside or most > 1):
                    return False
            elif name == "SUBPATTERN":
                if not walk(argument[-1], inside):
                    return False
            elif name == "BRANCH":
                if inside or not all(walk(branch, inside) for branch in argument[1]):
                    return False
            elif name in ("ASSERT", "ASSERT_NOT"):
                if not walk(argument[1], inside):
                    return False
            elif name not in ("LITERAL", "NOT_LITERAL", "IN", "ANY", "AT", "CATEGORY", "RANGE"):
                return False
        return True

    return walk(parser.parse(pattern), False)
