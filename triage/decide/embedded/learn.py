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

from triage.decide.embedded.learned import MOST_SHIFT, LearnedWeights, learnable
from triage.decide.embedded.provider import View
from triage.decide.embedded.residual import Sample, fit_residuals
from triage.domain.category import HIJACK_ID, NONE_ID
from triage.domain.decision import Question
from triage.domain.mail import PreparedMail

NEWEST = 200
"""No more corrections than this are learned from; the newest come last."""

EFFORT = 9 * NEWEST**2
"""Options times corrections squared that one fit may take, about fifteen seconds of a core with leaving out: with many
categories fewer corrections are learned from, but never fewer than make a difference."""

ENOUGH = 25

FEWEST = 3
FOLDS = 10
ARCHIVE_FLOOR = 0.7
PROTECTED_WEIGHT = 2.0
LARGEST_SHARE = 0.5
SMALLEST_SHIFT = 0.02
FIRST_SHIFT = 2.5
SHIFT_PER_PROTECTED = 0.1


class Teacher(StrEnum):
    """What a person did. There is no member for the program's own filing: it is never learned from."""

    RELABELLED = "relabelled"
    MOVED_BACK = "moved_back"
    EXAMPLE = "example"
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
    protected: int
    by_source: Mapping[str, int]
    by_label: Mapping[str, int]
    before: Trial
    after: Trial
    reason: str
    learned: LearnedWeights | None


def fit_residual(
    base: Base, corrections: Sequence[Correction], question: Question, archiving: frozenset[str]
) -> LearnReport:
    """Fit on a person's corrections and keep the fit only if it proved harmless on those left out.

    `archiving` are the options whose mail leaves the inbox. Corrections towards an option the question does not have,
    and such as change nothing, are ignored.
    """
    usable = [c for c in corrections if _teaches(c, question)][-most_corrections(len(question.ids)) :]
    samples = [_sample(base.view(question, c.mail), c, question, archiving) for c in usable]
    weights = _weights([s.target for s in samples], archiving)
    samples = [s.weighed(w) for s, w in zip(samples, weights, strict=True)]
    protected = sum(not s.archivable for s in samples)
    before = _count([s.probabilities for s in samples], samples, archiving)
    learned, after, reason = None, before, "too_few"
    if len(samples) >= FEWEST:
        cap = min(MOST_SHIFT, FIRST_SHIFT + SHIFT_PER_PROTECTED * protected)
        after = _leave_out(samples, [c.group for c in usable], archiving, cap)
        reason = _judge(before, after)
        if reason == "kept":
            learned = _learned(fit_residuals(samples), samples, archiving, cap)
    return LearnReport(
        used=len(usable),
        ignored=len(corrections) - len(usable),
        protected=protected,
        by_source=dict(sorted(Counter(str(c.source) for c in usable).items())),
        by_label=dict(sorted(Counter(c.to_label or "not archived" for c in usable).items())),
        before=before,
        after=after,
        reason=reason,
        learned=learned,
    )


def most_corrections(options: int) -> int:
    """How many corrections one fit learns from, so that it ends in seconds whatever the number of options."""
    return max(ENOUGH, min(NEWEST, math.isqrt(EFFORT // options)))


def describe(report: LearnReport) -> str:
    """The report for a person: what was learned, and why it is in use or not."""
    if report.reason == "too_few":
        return (
            f"Nothing learned yet: {report.used} corrections, {FEWEST} are the least, about 25 make a difference.\n"
            "Change a label, or move archived mail back to the inbox, and it learns from that."
        )
    sources = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in report.by_source.items())
    labels = ", ".join(f"{name} {count}" for name, count in report.by_label.items())
    lines = [
        f"{report.used} corrections ({sources}); towards {labels}.",
        f"Tried on corrections it had not seen: right {report.before.right} before, {report.after.right} after, "
        f"of {report.used}; wrongly archived {report.before.wrongly_archived} before, "
        f"{report.after.wrongly_archived} after, of {report.protected} that were to stay.",
        _VERDICTS[report.reason],
    ]
    if report.ignored:
        lines.insert(1, f"{report.ignored} more were left out: no change, a category that is gone, or too old.")
    return "\n".join(lines)


_VERDICTS = {
    "kept": "In use.",
    "archives_more": "Not in use: it would have archived more mail that people wanted to keep.",
    "no_better": "Not in use: it was not right more often than without.",
}


def _teaches(correction: Correction, question: Question) -> bool:
    if correction.source is Teacher.MOVED_BACK and not correction.to_label:
        return True
    return correction.to_label in question.ids and correction.from_label != correction.to_label


def _sample(view: View, correction: Correction, question: Question, archiving: frozenset[str]) -> Sample:
    """`target` is the share of each option in what the person said: one option, or any that stays in the inbox."""
    if correction.to_label:
        target = {option: float(option == correction.to_label) for option in question.ids}
    else:
        kept = {o: p for o, p in view.probabilities.items() if o not in archiving and o != HIJACK_ID}
        total = sum(kept.values())
        target = {o: kept[o] / total if o in kept and total else 0.0 for o in question.ids}
        if not total:
            target = {o: float(o == (NONE_ID if NONE_ID in target else question.ids[0])) for o in question.ids}
    return Sample(
        values=learnable(view.features),
        probabilities=dict(view.probabilities),
        target=target,
        archivable=correction.to_label in archiving,
        vetoed=bool(view.vetoes),
    )


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


def _leave_out(samples: Sequence[Sample], groups: Sequence[str], archiving: frozenset[str], cap: float) -> Trial:
    """Judge each correction by a fit without its group; many corrections are left out several groups at a time."""
    names = [group or f"#{n}" for n, group in enumerate(groups)]
    order = {name: n for n, name in enumerate(dict.fromkeys(names))}
    parts = min(len(order), FOLDS if len(samples) > 3 * FOLDS else len(order))
    judged: list[Mapping[str, float]] = [{} for _ in samples]
    for part in range(parts):
        out = [n for n, name in enumerate(names) if order[name] % parts == part]
        rest = [s for n, s in enumerate(samples) if n not in set(out)]
        learned = _learned(fit_residuals(rest), rest, archiving, cap) if rest else None
        for n in out:
            judged[n] = (
                learned.shift(samples[n].values, samples[n].probabilities) if learned else samples[n].probabilities
            )
    return _count(judged, samples, archiving)


def _count(judged: Iterable[Mapping[str, float]], samples: Sequence[Sample], archiving: frozenset[str]) -> Trial:
    right = wrong = 0
    for probabilities, sample in zip(judged, samples, strict=True):
        choice = max(sorted(probabilities), key=lambda o: probabilities[o])
        sure = _confidence(probabilities)
        right += sample.target[choice] > 0
        wrong += choice in archiving and sure >= ARCHIVE_FLOOR and not sample.vetoed and not sample.archivable
    return Trial(right, wrong)


def _confidence(probabilities: Mapping[str, float]) -> float:
    n = len(probabilities)
    return (max(probabilities.values()) - 1 / n) / (1 - 1 / n) if n > 1 else 0.0


def _judge(before: Trial, after: Trial) -> str:
    if after.wrongly_archived > before.wrongly_archived:
        return "archives_more"
    return "kept" if after.right > before.right else "no_better"


def _learned(
    duals: Sequence[Mapping[str, float]], samples: Sequence[Sample], archiving: frozenset[str], cap: float
) -> LearnedWeights:
    """The residual as weights of features; what hardly moves anything is left out."""
    shifts: dict[str, dict[str, float]] = {}
    for dual, sample in zip(duals, samples, strict=True):
        for name, value in sample.values.items():
            row = shifts.setdefault(name, {})
            for option, weight in dual.items():
                row[option] = row.get(option, 0.0) + weight * value
    kept = {name: row for name, row in shifts.items() if max(abs(weight) for weight in row.values()) >= SMALLEST_SHIFT}
    return LearnedWeights(kept, archiving, cap)
