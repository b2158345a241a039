"""Lists of phrases by family, and how often each family occurs in a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from triage.decide.embedded.text import fold, words

MAX_WORDS = 6


@dataclass(frozen=True, slots=True)
class Phrases:
    """Phrases of folded words and the families each belongs to."""

    families: Mapping[str, tuple[str, ...]]
    _starts: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_starts", frozenset(phrase.split(" ", 1)[0] for phrase in self.families))

    def count(self, words: Sequence[str]) -> dict[str, int]:
        """How many phrases of each family occur in a sequence of folded words; families without any are absent."""
        families, starts = self.families, self._starts
        counts: dict[str, int] = {}
        last = len(words)
        for start, phrase in enumerate(words):
            if phrase not in starts:
                continue
            for end in range(start + 1, start + 1 + MAX_WORDS):
                for family in families.get(phrase, ()):
                    counts[family] = counts.get(family, 0) + 1
                if end >= last:
                    break
                phrase = f"{phrase} {words[end]}"
        return counts


def phrase_key(phrase: str) -> str:
    """A phrase as texts are read: folded words with one space between, hyphens gone."""
    return " ".join(words(fold(phrase), 2 * MAX_WORDS))


def parse(text: str) -> Phrases:
    """Read `[family]` sections of comma-separated phrases; a phrase may stand in several families.

    Lines that begin with "# " are comments.

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
            raise ValueError(f"line {number}: a phrase before the first [family]")
        for phrase in line.split(","):
            key = phrase_key(phrase)
            if key.count(" ") >= MAX_WORDS:
                raise ValueError(f"line {number}: {key!r} has more than {MAX_WORDS} words")
            if key and family not in found.get(key, ()):
                found[key] = (*found.get(key, ()), family)
    return Phrases(found)
