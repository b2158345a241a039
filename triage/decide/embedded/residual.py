"""The fit itself: a residual logistic regression in its dual form, in plain Python, for a few hundred samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import mul

STRENGTH = 0.5
"""How strongly the residual is pulled to zero, that is to the shipped weights (L2)."""

STEPS = 60
LEAST = 1e-6
"""No probability counts as smaller than this."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One mail as numbers: features, the probabilities a fit starts from, those it is to reach, how much it counts."""

    values: Mapping[str, float]
    start: Mapping[str, float]
    target: Mapping[str, float]
    weight: float = 1.0

    def weighed(self, weight: float) -> Sample:
        """The same sample with another weight."""
        return replace(self, weight=weight)


class Lesson:
    """Samples and how alike each two of them are, computed once for all fits on parts of them."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.samples = tuple(samples)
        self._alike: list[list[float]] = []
        for n, one in enumerate(self.samples):
            self._alike.append([_dot(one.values, other.values) for other in self.samples[: n + 1]])

    def fit(self, members: Sequence[int]) -> list[dict[str, float]]:
        """For each of these samples the multiple (an option each) of its features that the residual weights are the
        sum of.

        Minimises the weighted cross-entropy of starting logits plus residual, with `STRENGTH`/2 times the squared
        length of the residual weights, by accelerated gradient steps (Nesterov).
        """
        if not members:
            return []
        samples = [self.samples[n] for n in members]
        alike = [[self._alike[max(n, m)][min(n, m)] for m in members] for n in members]
        options = list(samples[0].target)
        offsets = [[math.log(max(s.start[o], LEAST)) for o in options] for s in samples]
        targets = [[s.target[o] for o in options] for s in samples]
        steepest = max(s.weight * sum(map(abs, row)) for s, row in zip(samples, alike, strict=True))
        rate = 1.0 / (STRENGTH + 0.5 * steepest)
        columns = [[0.0] * len(samples) for _ in options]
        ahead = columns
        for step in range(STEPS):
            scores = [[sum(map(mul, row, column)) for row in alike] for column in ahead]
            moved = [list(column) for column in ahead]
            for n, sample in enumerate(samples):
                given = _softmax([offset + scores[k][n] for k, offset in enumerate(offsets[n])])
                for k, column in enumerate(ahead):
                    slope = STRENGTH * column[n] + sample.weight * (given[k] - targets[n][k])
                    moved[k][n] = column[n] - rate * slope
            momentum = step / (step + 3.0)
            ahead = [
                [new + momentum * (new - old) for new, old in zip(now, before, strict=True)]
                for now, before in zip(moved, columns, strict=True)
            ]
            columns = moved
        return [{o: columns[k][n] for k, o in enumerate(options)} for n in range(len(samples))]


def _dot(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    small, large = (one, other) if len(one) <= len(other) else (other, one)
    return sum(value * large[name] for name, value in small.items() if name in large)


def _softmax(logits: Sequence[float]) -> list[float]:
    top = max(logits)
    powers = [math.exp(z - top) for z in logits]
    total = sum(powers)
    return [p / total for p in powers]
