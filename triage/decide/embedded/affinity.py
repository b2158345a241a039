"""How well a mail fits a category nobody trained for, by the words of its criteria and examples.

A modest lexical likeness: it recognises topics ("circuit maintenance", "court notices"), not functions ("asks for a
decision"). What it does not recognise stays unclassified.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from triage.decide.embedded import text as t
from triage.decide.embedded.sender import sender_parts
from triage.domain.decision import Option
from triage.domain.mail import PreparedMail

MOST = 0.85
"""No likeness of words is surer than this: a category known by its wording alone rarely archives."""

_STEM = 6
_COMMON = 1.5  # rarer than this a word must be to say anything
_UNKNOWN = 7.0  # the rarity of a word no training mail held
_BODY_WORDS = 160
_HEAD_WORDS = 60

_BIAS = -3.8
_WEIGHTS = {
    "criteria_subject": 4.2,
    "criteria_body": 7.0,
    "example_subject": 4.8,
    "example_head": 5.0,
    "example_pairs": 1.6,
    "sender": 2.0,
    "list": 0.8,
}


@dataclass(frozen=True, slots=True)
class Wording:
    """What a category says of itself: weighed stems of its criteria, of each example, and the examples' word pairs."""

    criteria: Mapping[str, float]
    examples: tuple[Mapping[str, float], ...]
    pairs: frozenset[tuple[str, str]]
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Likeness:
    """The mail's side of the comparison, made once a mail for all categories."""

    subject: Mapping[str, float]
    head: Mapping[str, float]
    body: Mapping[str, float]
    pairs: frozenset[tuple[str, str]]
    sender: frozenset[str]
    list_id: frozenset[str]


def read_option(option: Option, rarity: Mapping[str, float]) -> Wording:
    """What an option's id, criteria and examples say, by words that are rare enough to say anything."""
    criteria = _words(f"{option.id.replace('-', ' ')} {option.criteria}")
    examples = [_words(example) for example in option.examples]
    every = [*criteria, *(word for example in examples for word in example)]
    return Wording(
        criteria=_weigh(criteria, rarity),
        examples=tuple(_weigh(example, rarity) for example in examples),
        pairs=frozenset(pair for example in examples for pair in _pairs(example, rarity)),
        names=frozenset(word for word in every if len(word) > 3 and rarity.get(word, _UNKNOWN) > _COMMON + 1),
    )


def read_mail(mail: PreparedMail, rarity: Mapping[str, float]) -> Likeness:
    """The mail's words as `affinity` compares them."""
    own, _ = t.own_lines(mail.body)
    subject = _words(mail.subject)
    body = t.words(t.fold(t.without_links(own[:2400])), _BODY_WORDS)
    name, local, domain = sender_parts(mail.sender)
    return Likeness(
        subject=_weigh(subject, rarity),
        head=_weigh([*subject, *body[:_HEAD_WORDS]], rarity),
        body=_weigh(body, rarity),
        pairs=frozenset([*_pairs(subject, rarity), *_pairs(body, rarity)]),
        sender=frozenset(_names(f"{name} {local} {domain}")),
        list_id=frozenset(_names(mail.signals.headers.get("list-id", ""))),
    )


def likeness_features(wording: Wording, mail: Likeness) -> dict[str, float]:
    """The seven numbers, each within 0..1, that `affinity` weighs."""
    return {
        "criteria_subject": _covered(mail.subject, wording.criteria),
        "criteria_body": _cosine(mail.body, wording.criteria),
        "example_subject": max((_cosine(mail.subject, e) for e in wording.examples), default=0.0),
        "example_head": max((_cosine(mail.head, e) for e in wording.examples), default=0.0),
        "example_pairs": min(1.0, len(wording.pairs & mail.pairs) / 3),
        "sender": 1.0 if wording.names & mail.sender else 0.0,
        "list": 1.0 if wording.names & mail.list_id else 0.0,
    }


def affinity(wording: Wording, mail: Likeness) -> float:
    """How likely the mail is one of the category, 0..`MOST`."""
    found = likeness_features(wording, mail)
    z = _BIAS + sum(_WEIGHTS[name] * value for name, value in found.items())
    return min(MOST, 1.0 / (1.0 + math.exp(-z)))


def _words(text: str) -> list[str]:
    return t.words(t.fold(t.without_links(text)), 400)


def _names(text: str) -> Iterable[str]:
    return (word for word in re.split(r"[^a-z0-9]+", t.fold(text)) if len(word) > 3)


def _weigh(words: Sequence[str], rarity: Mapping[str, float]) -> dict[str, float]:
    """Stems and how much each says; common words, numbers and single letters say nothing."""
    found: dict[str, float] = {}
    for word in words:
        rare = rarity.get(word, _UNKNOWN)
        if rare > _COMMON and len(word) > 2 and word[0] != "0":
            found[word[:_STEM]] = max(found.get(word[:_STEM], 0.0), rare)
    return found


def _pairs(words: Sequence[str], rarity: Mapping[str, float]) -> Iterable[tuple[str, str]]:
    for first, second in pairwise(words):
        if min(rarity.get(first, _UNKNOWN), rarity.get(second, _UNKNOWN)) > _COMMON and first[0] != "0" != second[0]:
            yield first[:_STEM], second[:_STEM]


def _covered(part: Mapping[str, float], whole: Mapping[str, float]) -> float:
    total = sum(part.values())
    return sum(weight for stem, weight in part.items() if stem in whole) / total if total else 0.0


def _cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    if not one or not other:
        return 0.0
    small, large = (one, other) if len(one) <= len(other) else (other, one)
    shared = sum(weight * large[stem] for stem, weight in small.items() if stem in large)
    if not shared:
        return 0.0
    return shared / math.sqrt(sum(w * w for w in one.values()) * sum(w * w for w in other.values()))
