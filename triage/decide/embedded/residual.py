"""The fit itself: a residual logistic regression in its dual form, in plain Python, for a few hundred samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import mul

STRENGTH = 0.5
"""How strongly the residual is pulled to zero, that is to the shipped weights (L2)."""

STEPS = 60
_LEAST = 1e-6


@dataclass(frozen=True, slots=True)
class Sample:
    """One correction as numbers: features, what the shipped weights said, what the person said, how much it counts."""

    values: Mapping[str, float]
    probabilities: Mapping[str, float]
    target: Mapping[str, float]
    archivable: bool
    vetoed: bool
    weight: float = 1.0

    def weighed(self, weight: float) -> Sample:
        """The same sample with another weight."""
        return replace(self, weight=weight)


def fit_residuals(samples: Sequence[Sample]) -> list[dict[str, float]]:
    """For each sample the multiple (an option each) of its features that the residual weights are the sum of.

    Minimises the weighted cross-entropy of shipped logits plus residual, with `STRENGTH`/2 times the squared length of
    the residual weights, by accelerated gradient steps (Nesterov).
    """
    if not samples:
        return []
    options = list(samples[0].target)
    gram = [[_dot(one.values, other.values) for other in samples] for one in samples]
    offsets = [[math.log(max(s.probabilities[o], _LEAST)) for o in options] for s in samples]
    targets = [[s.target[o] for o in options] for s in samples]
    steepest = max(s.weight * sum(map(abs, row)) for s, row in zip(samples, gram, strict=True))
    rate = 1.0 / (STRENGTH + 0.5 * steepest)
    columns = [[0.0] * len(samples) for _ in options]
    ahead = columns
    for step in range(STEPS):
        scores = [[sum(map(mul, row, column)) for row in gram] for column in ahead]
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
