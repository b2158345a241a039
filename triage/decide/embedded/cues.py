"""Phrases that tell kinds of mail apart in several languages: what a handful of training mails could not teach.

`cues.txt` holds the families. Each family becomes one feature, so a Spanish phrase that no training mail holds still
counts as much as its English sister.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources

MAX_WORDS = 5
RESOURCE = "cues.txt"


def parse(text: str) -> dict[str, tuple[str, ...]]:
    """Read `[family]` sections of comma-separated phrases; a phrase may stand in several families.

    Raises ValueError for a phrase outside any section or of more than `MAX_WORDS` words.
    """
    found: dict[str, tuple[str, ...]] = {}
    family = ""
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("# "):
            continue
        if line.startswith("[") and line.endswith("]"):
            family = line[1:-1]
            continue
        if not family:
            raise ValueError(f"cues line {number}: a phrase before the first [family]")
        for phrase in line.split(","):
            key = " ".join(phrase.split())
            if key.count(" ") >= MAX_WORDS:
                raise ValueError(f"cues line {number}: {key!r} has more than {MAX_WORDS} words")
            if key and family not in found.get(key, ()):
                found[key] = (*found.get(key, ()), family)
    return found


@lru_cache(maxsize=1)
def shipped() -> Mapping[str, tuple[str, ...]]:
    """The families that come with the program: phrase to family names."""
    return parse(resources.files(__package__).joinpath(RESOURCE).read_text(encoding="utf-8"))


def count_cues(words: Sequence[str]) -> dict[str, int]:
    """How many phrases of each family occur in a sequence of folded words; families without any are absent."""
    phrases = shipped()
    starts = _starts()
    counts: dict[str, int] = {}
    last = len(words)
    for start, phrase in enumerate(words):
        if phrase not in starts:
            continue
        for end in range(start + 1, start + 1 + MAX_WORDS):
            for family in phrases.get(phrase, ()):
                counts[family] = counts.get(family, 0) + 1
            if end >= last:
                break
            phrase = f"{phrase} {words[end]}"
    return counts


@lru_cache(maxsize=1)
def _starts() -> frozenset[str]:
    return frozenset(phrase.split(" ", 1)[0] for phrase in shipped())
