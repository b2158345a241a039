"""How good a provider is on labelled mail: accuracy, coverage, what was wrongly archived, calibration. Pure."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from triage.domain.decision import Answer
from triage.domain.mail import MailSource, PreparedMail
from triage.policy.confidence import confidence
from triage.report.labelled_mail import LabelledMail

BINS = 10
Prepare = Callable[[bytes | MailSource], PreparedMail]
Decide = Callable[[PreparedMail], tuple[Answer | None, bool]]
"""What is measured: a mail to its answer (None if there was none) and whether it would leave the inbox."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One mail's truth beside what was answered. `probabilities` is empty if there was no usable answer."""

    id: str
    truth: str
    probabilities: dict[str, float]
    archived: bool
    ms: float = 0.0
    lang: str = ""
    source: str = ""

    @property
    def choice(self) -> str | None:
        """The most probable option; the first in alphabetical order among equals."""
        if not self.probabilities:
            return None
        return max(sorted(self.probabilities), key=lambda option: self.probabilities[option])

    @property
    def confidence(self) -> float:
        """Ours, recomputed from the probabilities (DESIGN 6)."""
        return confidence(self.probabilities)

    @property
    def right(self) -> bool:
        """Is the most probable option the true one?"""
        return self.choice == self.truth


@dataclass(frozen=True, slots=True)
class Bin:
    """One bar of the reliability plot: mails whose highest probability lies within `low`..`high`."""

    low: float
    high: float
    count: int
    mean_probability: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Figures:
    """Shares are 0..1. `wrongly_archived` counts mail of categories that stay in the inbox, out of `protected`.

    `noise_archived` is the share of mail of archiving categories that left the inbox. `ece` is the expected calibration
    error over ten bins of the highest probability. `unanswered` mails count as wrong and as kept.
    """

    mails: int
    unanswered: int
    accuracy: float
    macro_f1: float
    f1: dict[str, float]
    coverage: float
    accuracy_covered: float
    noise_archived: float
    wrongly_archived: int
    protected: int
    ece: float
    bins: tuple[Bin, ...]
    ms_median: float

    @property
    def wrongly_archived_share(self) -> float:
        """Of the protected mail, 0 if there was none."""
        return self.wrongly_archived / self.protected if self.protected else 0.0


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Figures for all mail, for each true category and for each language."""

    floor: float
    all: Figures
    by_category: dict[str, Figures]
    by_lang: dict[str, Figures]


def judge_all(mails: Iterable[LabelledMail], prepare: Prepare, decide: Decide) -> Iterator[Judged]:
    """Ask for every mail, one after the other. Milliseconds cover the decision, not the preparation."""
    for mail in mails:
        prepared = prepare(mail.raw)
        started = time.perf_counter()
        answer, archived = decide(prepared)
        ms = (time.perf_counter() - started) * 1000
        probabilities = dict(answer.probabilities) if answer else {}
        yield Judged(mail.id, mail.category, probabilities, archived, ms, mail.lang, mail.source)


def evaluate(judged: Sequence[Judged], *, floor: float, archiving: frozenset[str]) -> Evaluation:
    """Figures of a set of judged mails. `archiving` are the categories whose mail is meant to leave the inbox."""
    return Evaluation(
        floor=floor,
        all=figures(judged, floor=floor, archiving=archiving),
        by_category=_grouped(judged, lambda j: j.truth, floor, archiving),
        by_lang=_grouped(judged, lambda j: j.lang or "unknown", floor, archiving),
    )


def figures(judged: Sequence[Judged], *, floor: float, archiving: frozenset[str]) -> Figures:
    """The figures of one set of mails."""
    total = len(judged) or 1
    covered = [j for j in judged if j.probabilities and j.confidence >= floor]
    protected = [j for j in judged if j.truth not in archiving]
    noise = [j for j in judged if j.truth in archiving]
    f1 = _f1(judged)
    bins = reliability(judged)
    answered = sum(b.count for b in bins)
    times = sorted(j.ms for j in judged)
    return Figures(
        mails=len(judged),
        unanswered=sum(not j.probabilities for j in judged),
        accuracy=sum(j.right for j in judged) / total,
        macro_f1=sum(f1.values()) / len(f1) if f1 else 0.0,
        f1=f1,
        coverage=len(covered) / total,
        accuracy_covered=sum(j.right for j in covered) / len(covered) if covered else 0.0,
        noise_archived=sum(j.archived for j in noise) / len(noise) if noise else 0.0,
        wrongly_archived=sum(j.archived for j in protected),
        protected=len(protected),
        ece=sum(b.count * abs(b.mean_probability - b.accuracy) for b in bins) / answered if answered else 0.0,
        bins=bins,
        ms_median=times[len(times) // 2] if times else 0.0,
    )


def reliability(judged: Sequence[Judged]) -> tuple[Bin, ...]:
    """Ten equal bins of the highest probability, empty ones left out."""
    found: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for j in judged:
        if j.probabilities:
            top = max(j.probabilities.values())
            found[min(BINS - 1, int(top * BINS))].append((top, j.right))
    return tuple(
        Bin(
            low=n / BINS,
            high=(n + 1) / BINS,
            count=len(members),
            mean_probability=sum(top for top, _ in members) / len(members),
            accuracy=sum(right for _, right in members) / len(members),
        )
        for n, members in sorted(found.items())
    )


def _f1(judged: Sequence[Judged]) -> dict[str, float]:
    """F1 of each category that occurs in the truth."""
    hits = Counter(j.truth for j in judged if j.right)
    given = Counter(j.choice for j in judged if j.choice is not None)
    true = Counter(j.truth for j in judged)
    return {category: 2 * hits[category] / (given[category] + true[category]) for category in sorted(true)}


def _grouped(
    judged: Sequence[Judged], key: Callable[[Judged], str], floor: float, archiving: frozenset[str]
) -> dict[str, Figures]:
    groups: dict[str, list[Judged]] = defaultdict(list)
    for j in judged:
        groups[key(j)].append(j)
    return {name: figures(members, floor=floor, archiving=archiving) for name, members in sorted(groups.items())}
