"""Patterns that mean the same on every Python this program runs on."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined]

import triage

SINGLE = {_constants.LITERAL, _constants.NOT_LITERAL, _constants.IN, _constants.ANY}


def patterns() -> Iterator[tuple[str, re.Pattern[str] | re.Pattern[bytes]]]:
    for module in pkgutil.walk_packages(triage.__path__, "triage."):
        if "migrations" in module.name or module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, re.Pattern):
                yield f"{module.name}.{name}", value


def nested(item: object) -> Iterator[object]:
    if isinstance(item, tuple | list | _parser.SubPattern):
        for n in range(len(item)):
            yield item[n]
            yield from nested(item[n])


def repeats_a_group_possessively(pattern: re.Pattern[str] | re.Pattern[bytes]) -> bool:
    for item in nested(_parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)):
        match item:
            case (_constants.POSSESSIVE_REPEAT, (_, _, body)) if len(body) > 1 or body[0][0] not in SINGLE:
                return True
            case (_constants.ATOMIC_GROUP, _):
                return True
    return False


def test_the_look_at_patterns_sees_what_it_looks_for() -> None:
    assert repeats_a_group_possessively(re.compile(r"a(?:b|c+)*+d"))
    assert repeats_a_group_possessively(re.compile(r"(?>ab*)"))
    assert not repeats_a_group_possessively(re.compile(r"[ab]*+(?:c++|d)*\Z"))


def test_only_single_characters_are_repeated_possessively() -> None:
    """Python before 3.11.5, which Debian 12 has, misses matches of a possessive group that may backtrack (CPython
    gh-106052): every encoded word in a header stayed encoded."""
    found = dict(patterns())
    assert len(found) > 50
    assert [name for name, pattern in found.items() if repeats_a_group_possessively(pattern)] == []
