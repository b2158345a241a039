"""From eight anchors to the operator's own options: one pool of odds, in which nothing unconfigured is forgotten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from triage.decide.embedded.weights import ANCHORS
from triage.domain.category import NONE_ID

_OWN_SHARE = 0.5  # of an anchor several options stand for, the weight of the one that bears its very name ...
_OTHER_SHARE = 0.1  # ... and of any other, before their wording is compared


def pool(
    anchor_probabilities: Sequence[float],
    ids: Sequence[str],
    anchors: Mapping[str, str | None],
    affinities: Mapping[str, float],
    unknown: float = 0.0,
) -> dict[str, float]:
    """Probabilities over `ids`, summing to 1.

    An option that stands for an anchor takes the anchor's mass; options of one anchor share it by their affinity. Any
    other option enters the pool with its affinity's odds. The mass of anchors nobody configured, and the share
    `unknown` (0..1) of everything, is nobody's: it goes to none-of-these where that is offered, else evenly to all
    options, which lowers the confidence (max p - 1/n)/(1 - 1/n) by exactly that mass and never favours an option.
    """
    mass = dict.fromkeys(ids, 0.0)
    nobody = 0.0
    for anchor, probability in zip(ANCHORS, anchor_probabilities, strict=True):
        claims = {i: _claim(i, anchor, affinities) for i in ids if anchors.get(i) == anchor}
        total = sum(claims.values())
        if not claims:
            nobody += probability
        for option, claim in claims.items():
            mass[option] += probability * claim / total
    for option in ids:
        if option != NONE_ID and anchors.get(option) is None:
            mass[option] = _odds(affinities.get(option, 0.0))
    whole = sum(mass.values()) + nobody
    mass = {option: m / whole * (1.0 - unknown) for option, m in mass.items()}
    nobody = nobody / whole * (1.0 - unknown) + unknown
    if NONE_ID in mass:
        mass[NONE_ID] += nobody
    else:
        mass = {option: m + nobody / len(mass) for option, m in mass.items()}
    total = sum(mass.values())
    return {option: m / total for option, m in mass.items()}


def _odds(probability: float) -> float:
    return probability / (1.0 - probability)


def _claim(option: str, anchor: str, affinities: Mapping[str, float]) -> float:
    return (_OWN_SHARE if option == anchor else _OTHER_SHARE) + _odds(affinities.get(option, 0.0))
