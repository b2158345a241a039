"""Confidence, computed here from the probabilities, the same way for every provider."""

from __future__ import annotations

from collections.abc import Mapping


def confidence(probabilities: Mapping[str, float]) -> float:
    """(max p - 1/n) / (1 - 1/n) over the n options of the question, within 0..1 (DESIGN 6).

    0 means no better than a guess, 1 means certain. A single option carries no information: 0.
    """
    n = len(probabilities)
    if n < 2:
        return 0.0
    return min(1.0, max(0.0, (max(probabilities.values()) - 1 / n) / (1 - 1 / n)))


def runner_up(probabilities: Mapping[str, float]) -> tuple[str, float] | None:
    """The second most probable option and its probability, None if there is none."""
    ranked = sorted(probabilities.items(), key=lambda item: (-item[1], item[0]))
    return ranked[1] if len(ranked) > 1 else None
