"""Learning from one mailbox: what people moved or relabelled, as a small residual on top of the shipped weights.

Pure: corrections in, report out. It learns from people only, never from its own filing; it never makes a hijack attempt
less likely; and a fit that would archive more of the mail a person wanted to keep is dropped.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from triage.decide.embedded.learned import LearnedWeights, learnable, trusted
from triage.decide.embedded.provider import View
from triage.decide.embedded.residual import LEAST, Lesson, Sample
from triage.domain.category import HIJACK_ID, NONE_ID
from triage.domain.decision import Question
from triage.domain.mail import PreparedMail

NEWEST = 150
"""No more corrections than this are learned from; the newest come last."""

MOST_HELD = 60
"""Nor is more mail held to that people read and left as it was."""

MOST_EXAMPLES = 40

EFFORT = 9 * (NEWEST + MOST_HELD) ** 2
"""Options times mails squared that one fit may take, about ten seconds of a core with leaving out: with many categories
fewer corrections are learned from, but never fewer than make a difference."""

ENOUGH = 25
"""About so many corrections make a difference that people notice."""

FEWEST = 3
FOLDS = 10
ARCHIVE_FLOOR = 0.7
PROTECTED_WEIGHT = 2.0
LARGEST_SHARE = 0.5
HELD_WEIGHT = 0.25
EXAMPLE_WEIGHT = 0.5
SMALLEST_SHIFT = 0.02
LEAST_TRUST = 0.6
"""What the shipped weights' logits are multiplied by once there are `ENOUGH` corrections: on kinds of mail they never
saw they are surer than they are right. With fewer corrections it is nearer to 1."""


class Teacher(StrEnum):
    """What a person did. There is no member for the program's own filing: it is never learned from."""

    RELABELLED = "relabelled"
    LABELLED = "labelled"
    MOVED_BACK = "moved_back"
    JUNK = "junk"


@dataclass(frozen=True, slots=True)
class Correction:
    """One thing a person did: the mail's label before and after.

    `to_label` "" with `MOVED_BACK` says only that the mail should not have been archived. `group` names what belongs
    together (a thread, a sender), so that leaving one out is honest.
    """

    mail: PreparedMail
    from_label: str
    to_label: str
    source: Teacher
    group: str = ""


@dataclass(frozen=True, slots=True)
class Held:
    """Mail that a person read and left as it was filed. Its label teaches nothing: it only asks that what is learned
    from corrections leaves the shipped weights' word on such mail as it is."""

    mail: PreparedMail
    group: str = ""


class Base(Protocol):
    """What the shipped weights alone say of a mail."""

    def view(self, question: Question, mail: PreparedMail) -> View: ...


@dataclass(frozen=True, slots=True)
class Trial:
    """Leave-one-out over the corrections: how many were right, how many to be kept would have been archived."""

    right: int
    wrongly_archived: int


@dataclass(frozen=True, slots=True)
class LearnReport:
    """What was learned and why it was kept or dropped.

    `reason` is one of: kept, too_few, archives_more, no_better. `learned` is None unless kept. `before` and `after`
    compare the shipped weights with the fit on corrections it had not seen.
    """

    used: int
    ignored: int
    held: int
    protected: int
    by_source: Mapping[str, int]
    by_label: Mapping[str, int]
    before: Trial
    after: Trial
    reason: str
    learned: LearnedWeights | None


@dataclass(frozen=True, slots=True)
class _Judged:
    """What a correction says of a trial: the options that are right, and whether its mail may leave the inbox."""

    shipped: Mapping[str, float]
    right: frozenset[str]
    archivable: bool
    vetoed: bool
    group: str


def fit_residual(
    base: Base,
    corrections: Sequence[Correction],
    question: Question,
    archiving: frozenset[str],
    held: Sequence[Held] = (),
    tried: Trial | None = None,
) -> LearnReport:
    """Fit on a person's corrections and keep the fit only if it proved harmless on those left out.

    `archiving` are the options whose mail leaves the inbox. Corrections towards an option the question does not have,
    and such as change nothing, are ignored. `tried` is the outcome of an earlier trial on the very same corrections.
    """
    held = held[-MOST_HELD:]
    usable = [c for c in corrections if teaches(c, question)][-most_corrections(len(question.ids), len(held)) :]
    views = [base.view(question, c.mail) for c in usable]
    trust = 1.0 - (1.0 - LEAST_TRUST) * min(1.0, len(usable) / ENOUGH)
    targets = [_target(c, view, question, archiving) for c, view in zip(usable, views, strict=True)]
    samples = [
        Sample(learnable(view.features), trusted(view.probabilities, trust), target, weight)
        for view, target, weight in zip(views, targets, _weights(targets, archiving), strict=True)
    ]
    judged = [
        _Judged(
            view.probabilities,
            frozenset(option for option, share in target.items() if share > 0),
            c.to_label in archiving,
            bool(view.vetoes),
            c.group or f"#{n}",
        )
        for n, (c, view, target) in enumerate(zip(usable, views, targets, strict=True))
    ]
    before = _count([j.shipped for j in judged], judged, archiving)
    learned, after, reason = None, before, "too_few"
    if len(samples) >= FEWEST:
        examples = _examples(base, question, trust)
        lesson = Lesson([*samples, *examples, *_holding(base, held, question, trust)])
        groups = [j.group for j in judged] + [""] * len(examples) + [h.group for h in held]
        after = tried or _leave_out(lesson, judged, groups, archiving, trust)
        reason = _judge(before, after)
        if reason == "kept":
            learned = _learned(lesson, range(len(lesson.samples)), archiving, trust)
    return LearnReport(
        used=len(usable),
        ignored=len(corrections) - len(usable),
        held=len(held),
        protected=sum(not j.archivable for j in judged),
        by_source=dict(sorted(Counter(str(c.source) for c in usable).items())),
        by_label=dict(sorted(Counter(c.to_label or "not archived" for c in usable).items())),
        before=before,
        after=after,
        reason=reason,
        learned=learned,
    )


def most_corrections(options: int, held: int = 0) -> int:
    """How many corrections one fit learns from, so that it ends in seconds whatever the number of options."""
    return max(ENOUGH, min(NEWEST, math.isqrt(EFFORT // options) - held))


def teaches(correction: Correction, question: Question) -> bool:
    """Does it say anything that the question can express?"""
    if correction.source is Teacher.MOVED_BACK and not correction.to_label:
        return True
    return correction.to_label in question.ids and correction.from_label != correction.to_label


def _target(c: Correction, view: View, question: Question, archiving: frozenset[str]) -> dict[str, float]:
    """The share of each option in what the person said: one option, or any that stays in the inbox."""
    if c.to_label:
        return {option: float(option == c.to_label) for option in question.ids}
    kept = {o: max(p, LEAST) for o, p in view.probabilities.items() if o not in archiving and o != HIJACK_ID}
    if not kept:
        return {o: float(o == (NONE_ID if NONE_ID in question.ids else question.ids[0])) for o in question.ids}
    total = sum(kept.values())
    return {o: kept.get(o, 0.0) / total for o in question.ids}


def _holding(base: Base, held: Sequence[Held], question: Question, trust: float) -> list[Sample]:
    """Read mail as samples whose aim is what the shipped weights say: by themselves they teach nothing new."""
    views = [base.view(question, h.mail) for h in held]
    return [
        Sample(learnable(v.features), trusted(v.probabilities, trust), dict(v.probabilities), HELD_WEIGHT)
        for v in views
    ]


def _examples(base: Base, question: Question, trust: float) -> list[Sample]:
    """The categories' examples, a line each: they help corrections along, and nothing is judged by them."""
    found = []
    for option in question.options:
        target = {other: float(other == option.id) for other in question.ids}
        for text in option.examples:
            view = base.view(question, PreparedMail("", "", "", text))
            found.append(Sample(_words(view), trusted(view.probabilities, trust), target, EXAMPLE_WEIGHT))
    return found[:MOST_EXAMPLES]


def _words(view: View) -> dict[str, float]:
    """Of a line without sender or headers only its words say anything, not what it lacks."""
    return {name: value for name, value in learnable(view.features).items() if not name.startswith("#")}


def _weights(targets: Sequence[Mapping[str, float]], archiving: frozenset[str]) -> list[float]:
    """Corrections are no fair sample of a mailbox: what must stay counts double, and no option pulls with more than
    half of all weight."""
    options = [max(target, key=lambda o: target[o]) for target in targets]
    weights = [1.0 if option in archiving else PROTECTED_WEIGHT for option in options]
    total = sum(weights)
    for option in set(options):
        share = sum(w for o, w in zip(options, weights, strict=True) if o == option) / total
        if share > LARGEST_SHARE:
            weights = [w * LARGEST_SHARE / share if o == option else w for o, w in zip(options, weights, strict=True)]
    return weights


def _leave_out(
    lesson: Lesson, judged: Sequence[_Judged], groups: Sequence[str], archiving: frozenset[str], trust: float
) -> Trial:
    """Judge each correction by a fit without its group, several groups left out at a time. `groups` are those of all
    the lesson's samples, the judged ones first."""
    order = {name: n for n, name in enumerate(dict.fromkeys(j.group for j in judged))}
    parts = min(len(order), FOLDS)
    found: list[Mapping[str, float]] = [{} for _ in judged]
    for part in range(parts):
        out = {n for n, group in enumerate(groups) if group in order and order[group] % parts == part}
        rest = [n for n in range(len(groups)) if n not in out]
        taught = any(n < len(judged) for n in rest)
        learned = _learned(lesson, rest, archiving, trust) if taught else None
        for n in (n for n in out if n < len(judged)):
            shipped = judged[n].shipped
            found[n] = learned.shift(lesson.samples[n].values, shipped) if learned else shipped
    return _count(found, judged, archiving)


def _count(found: Iterable[Mapping[str, float]], judged: Sequence[_Judged], archiving: frozenset[str]) -> Trial:
    right = wrong = 0
    for probabilities, one in zip(found, judged, strict=True):
        choice = max(sorted(probabilities), key=lambda o: probabilities[o])
        right += choice in one.right
        archived = choice in archiving and _confidence(probabilities) >= ARCHIVE_FLOOR and not one.vetoed
        wrong += archived and not one.archivable
    return Trial(right, wrong)


def _confidence(probabilities: Mapping[str, float]) -> float:
    n = len(probabilities)
    return (max(probabilities.values()) - 1 / n) / (1 - 1 / n) if n > 1 else 0.0


def _judge(before: Trial, after: Trial) -> str:
    if after.wrongly_archived > before.wrongly_archived:
        return "archives_more"
    return "kept" if after.right > before.right else "no_better"


def _learned(lesson: Lesson, members: Sequence[int], archiving: frozenset[str], trust: float) -> LearnedWeights:
    """The residual as weights of features; what hardly moves anything is left out."""
    shifts: dict[str, dict[str, float]] = {}
    for dual, member in zip(lesson.fit(members), members, strict=True):
        for name, value in lesson.samples[member].values.items():
            row = shifts.setdefault(name, {})
            for option, weight in dual.items():
                row[option] = row.get(option, 0.0) + weight * value
    kept = {name: row for name, row in shifts.items() if max(abs(weight) for weight in row.values()) >= SMALLEST_SHIFT}
    return LearnedWeights(kept, archiving, trust)
