"""What people made of decisions, turned into pairs that compete and into claims that came true. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from triage.domain.correction import BY_A_PERSON, Correction, CorrectionKind
from triage.domain.record import DecisionRecord

RIVAL = 0.25
"""From this probability on the second option competes with the first."""
BINS = 10


@dataclass(frozen=True, slots=True)
class Pair:
    """Two categories that came first and second with close probabilities, and how often; `first` led more often."""

    first: str
    second: str
    count: int
    mean_first: float
    mean_second: float


def competing_pairs(distributions: Iterable[Mapping[str, float]]) -> tuple[Pair, ...]:
    """The pairs that compete among these probabilities, the most frequent first."""
    counts: Counter[frozenset[str]] = Counter()
    led: Counter[str] = Counter()
    sums: dict[frozenset[str], Counter[str]] = {}
    for probabilities in distributions:
        best = sorted(probabilities.items(), key=lambda item: (-item[1], item[0]))[:2]
        if len(best) < 2 or best[1][1] < RIVAL:
            continue
        pair = frozenset(name for name, _ in best)
        counts[pair] += 1
        led[best[0][0]] += 1
        weights = sums.setdefault(pair, Counter())
        for name, p in best:
            weights[name] += p  # type: ignore[assignment]  # a Counter sums floats as well
    return tuple(_pair(pair, count, sums[pair], led) for pair, count in counts.most_common())


def _pair(names: frozenset[str], count: int, weights: Mapping[str, float], led: Mapping[str, int]) -> Pair:
    first, second = sorted(names, key=lambda name: (-weights[name], -led[name], name))
    return Pair(first, second, count, weights[first] / count, weights[second] / count)


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Reviewed answers whose best probability fell into one bin: how many, what they claimed, what share was right."""

    count: int
    claimed: float
    right: float


def calibration(reviewed: Sequence[tuple[Correction, DecisionRecord]]) -> tuple[CalibrationBin, ...]:
    """In tenths of the best probability. A decision is right if a person read it and let it stand, wrong if somebody
    changed it; the last word about each counts."""
    latest: dict[str, tuple[Correction, DecisionRecord]] = {}
    for correction, decision in reviewed:  # newest first
        if correction.kind is CorrectionKind.CONFIRMED or correction.kind in BY_A_PERSON:
            latest.setdefault(decision.id, (correction, decision))
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for correction, decision in latest.values():
        if decision.probabilities:
            best = max(decision.probabilities.values())
            bins[min(BINS - 1, int(best * BINS))].append((best, correction.kind is CorrectionKind.CONFIRMED))
    return tuple(_bin(each) for each in bins if each)


def _bin(answers: Sequence[tuple[float, bool]]) -> CalibrationBin:
    count = len(answers)
    return CalibrationBin(count, sum(p for p, _ in answers) / count, sum(right for _, right in answers) / count)


def calibration_error(bins: Sequence[CalibrationBin]) -> float | None:
    """The expected calibration error: the mean distance between claim and truth; None without a review."""
    total = sum(each.count for each in bins)
    return sum(each.count * abs(each.claimed - each.right) for each in bins) / total if total else None
