"""What was learned from one mailbox: small corrections on top of the shipped weights, and how they are applied."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from triage.decide.embedded.features import Features
from triage.domain.category import HIJACK_ID

MOST_SHIFT = 2.5
"""The most (in logits) that learning may move an option whose mail stays in the inbox, of one mail."""

MOST_UP = 4.0
MOST_DOWN = 8.0
"""The most that an option may rise or fall whose mail leaves the inbox: falling does no harm."""

BUILD_FACTOR = 2.0
"""How much more than to the shipped weights a mail's build says to learning: it is what tells kinds of mail apart
that share their words."""


@dataclass(frozen=True, slots=True)
class LearnedWeights:
    """For each feature seen in corrections, a shift of the logits of some options.

    `archiving` are the options whose mail leaves the inbox. `trust` (0..1) multiplies the shipped weights' logits: the
    oftener they had to be corrected, the less they are believed.
    """

    shifts: Mapping[str, Mapping[str, float]]
    archiving: frozenset[str] = field(default=frozenset())
    trust: float = 1.0

    @property
    def digest(self) -> str:
        """Six hex digits that change with the content."""
        shifts = {name: {o: round(w, 4) for o, w in sorted(row.items())} for name, row in sorted(self.shifts.items())}
        content = json.dumps([sorted(self.archiving), self.trust, shifts])
        return hashlib.sha256(content.encode()).hexdigest()[:6]

    def apply(self, features: Features, probabilities: Mapping[str, float]) -> dict[str, float]:
        """The probabilities after learning, over the same options. The hijack option never loses by it."""
        return self.shift(learnable(features), probabilities)

    def shift(self, values: Mapping[str, float], probabilities: Mapping[str, float]) -> dict[str, float]:
        """As `apply`, of the features learning works on."""
        moves = dict.fromkeys(probabilities, 0.0)
        for name, value in values.items():
            for option, weight in self.shifts.get(name, {}).items():
                if option in moves:
                    moves[option] += value * weight
        middle = sum(moves.values()) / (len(moves) or 1)
        bounded = {option: self._bounded(option, move - middle) for option, move in moves.items()}
        return never_less_hijack(moved(trusted(probabilities, self.trust), bounded), probabilities)

    def _bounded(self, option: str, move: float) -> float:
        lowest, highest = (-MOST_DOWN, MOST_UP) if option in self.archiving else (-MOST_SHIFT, MOST_SHIFT)
        return max(lowest, min(highest, move))


def learnable(features: Features) -> dict[str, float]:
    """The features learning works on: the mail's own, except signs of an injection, and who sent it."""
    values = {
        name: value * BUILD_FACTOR if name.startswith("#") else value
        for name, value in features.values.items()
        if not name.startswith("#injection")
    }
    for key, known in (("@", features.sender), ("@@", features.domain), ("@list:", features.list_id)):
        if known:
            values[key + known] = 1.0
    return values


def trusted(probabilities: Mapping[str, float], trust: float) -> dict[str, float]:
    """The probabilities with their logits multiplied by `trust`."""
    powers = {option: p**trust for option, p in probabilities.items()}
    total = math.fsum(powers.values())
    return {option: power / total for option, power in powers.items()}


def moved(probabilities: Mapping[str, float], shift: Mapping[str, float]) -> dict[str, float]:
    """Probabilities with each option's logit moved by its shift."""
    masses = {option: p * math.exp(shift.get(option, 0.0)) for option, p in probabilities.items()}
    total = math.fsum(masses.values())
    return {option: mass / total for option, mass in masses.items()}


def never_less_hijack(after: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    """The probabilities `after`, but with the hijack option no lower than `before`."""
    least, result = before.get(HIJACK_ID, 0.0), dict(after)
    if result.get(HIJACK_ID, 0.0) < least:
        scale = (1.0 - least) / (1.0 - result[HIJACK_ID])
        result = {option: least if option == HIJACK_ID else p * scale for option, p in result.items()}
    return result
