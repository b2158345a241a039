"""Words that speak to a machine and not to the reader: is there a prompt injection in this mail?

Detection is a bonus, not the defence: no text of a mail can do more than move its own label. A finding only ever keeps
a mail in the inbox. Two neighbouring sentences are judged together, by their words and by which roles of
`injection.txt` stand side by side in them (whom it speaks to, what it orders), so that the rest of a long mail cannot
drown them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import pairwise

from triage.decide.embedded import text as t
from triage.decide.embedded.phrases import Phrases, parse

SCAN_CHARS = 12_000
SENTENCE_WORDS = 50
WORD_VALUE = 0.5
SUSPICIOUS = -0.5
"""From this logit on a mail counts as bearing signs of an injection: two clean mails in a hundred do."""

_SENTENCE_END = re.compile(r"(?<=[.!?:;])[\s\"'»”)\]]+(?=\S)|\n+")
_SPACED = re.compile(r"\b(?:[^\W\d_] {1,2}){5,}[^\W\d_]\b")
_MARKS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, flags))
    for name, flags, pattern in (
        (
            "role_tag",
            re.I,
            r"\[/?(?:system|sistema|inst|assistant|user|tool_?\w*)\b[^\]\n]{0,60}\]|<\|[^|>\n]{0,30}\|>",
        ),
        (
            "markup_tag",
            re.I,
            r"</?(?:system|assistant|user|instructions?|tool_?\w*|prompt|email)\b[^>\n]{0,80}>|<!--",
        ),
        (
            "speaker",
            re.I,
            r"(?:^|[\n\"*.] ?)(?:system|sistema|assistant|asistente|override|priority task)\b[^.:\n]{0,24}:",
        ),
        ("heading", re.M, r"^\s*#{2,}|\*{3,}|\b[A-Z]{4,} [A-Z]{4,}\b"),
        (
            "assignment",
            re.I,
            r"\b(?:category|categor[ií]a|confidence|confianza|priority|label|role|folder)\"?\s*[=:]\s*[\"']?\w",
        ),
        ("function", 0, r"\b[a-z]+_[a-z_]+\b|\b[a-z_]{3,}\([^)\n]{0,60}\)|\{\s*\""),
        ("in_quotes", 0, r"[\"“«„][^\"”»“\n]{15,}[\"”»“]"),
        ("encoded", re.I, r"\b[A-Za-z0-9+/]{28,}={0,2}(?![\w/])|\bbase ?64\b"),
        ("target", re.I, r"[\w.+-]+@[\w-]+\.[\w.]+|https?://|\[link"),
    )
)


@dataclass(frozen=True, slots=True)
class Finding:
    """How much a mail looks like an injection (logit of its worst window), and the roles found in that window."""

    logit: float
    roles: tuple[str, ...] = ()

    @property
    def suspicious(self) -> bool:
        """Is this enough to keep the mail in the inbox?"""
        return self.logit >= SUSPICIOUS


@dataclass(frozen=True, slots=True)
class Finder:
    """A logistic regression over `window_features`."""

    weights: Mapping[str, float]
    bias: float

    def find(self, subject: str, body: str) -> Finding:
        """The worst window of a mail."""
        worst = self.bias
        roles: tuple[str, ...] = ()
        for names in windows(subject, body):
            logit = self.logit(window_features(names))
            if logit > worst:
                worst, roles = logit, tuple(sorted(names.roles))
        return Finding(worst, roles)

    def logit(self, values: Mapping[str, float]) -> float:
        """The logit of one window's features."""
        weights = self.weights
        return self.bias + sum(weights.get(name, 0.0) * value for name, value in values.items())


@dataclass(frozen=True, slots=True)
class Window:
    """One sentence, or two neighbours: its words, word pairs and marks as features, and its roles."""

    roles: frozenset[str]
    details: frozenset[str]


def windows(subject: str, body: str) -> Iterator[Window]:
    """Each two neighbouring sentences in which at least two roles meet."""
    text = _despaced(f"{subject}\n{body}"[:SCAN_CHARS])
    sentences = [_read(s) for s in _SENTENCE_END.split(text) if s.strip()]
    if len(sentences) == 1:
        sentences.append(Window(frozenset(), frozenset()))
    for first, second in pairwise(sentences):
        roles = first.roles | second.roles
        if len(roles) > 1:
            yield Window(roles, first.details | second.details)


def window_features(window: Window) -> dict[str, float]:
    """Named features of one window: words, marks, roles, pairs of roles and marks, how many roles."""
    values = dict.fromkeys(window.details, WORD_VALUE)
    found = sorted(window.roles) + sorted(name for name in window.details if name.startswith("mark:"))
    values.update(dict.fromkeys(found, 1.0))
    values.update((f"{one}&{other}", 1.0) for i, one in enumerate(found) for other in found[i + 1 :])
    values[f"roles:{min(7, len(window.roles))}"] = 1.0
    return values


@lru_cache(maxsize=1)
def lexicon() -> Phrases:
    """The roles that come with the program."""
    return parse(resources.files(__package__).joinpath("injection.txt").read_text(encoding="utf-8"))


def _read(sentence: str) -> Window:
    # Where an order points to is a mark; the words of an address or a link say nothing of who is spoken to.
    words = t.words(t.fold(t.without_links(sentence)), SENTENCE_WORDS)
    roles = frozenset(lexicon().count(words))
    details = {f"w:{word}" for word in words}
    details.update(f"w:{first} {second}" for first, second in pairwise(words))
    details.update(f"mark:{name}" for name, pattern in _MARKS if pattern.search(sentence))
    return Window(roles, frozenset(details))


def _despaced(text: str) -> str:
    """Letters set apart ("i g n o r e") brought together again; two spaces keep words apart."""
    return _SPACED.sub(lambda found: re.sub(r"(?<=\S) (?=\S)", "", found.group()), text)
