"""What was learned from one mailbox: small corrections on top of the shipped weights, and how they are applied."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from triage.decide.embedded.features import Features
from triage.domain.category import HIJACK_ID

FORMAT = 1
MOST_SHIFT = 4.0
"""The most (in logits) that learning may move one option of one mail."""

MOST_DOWN = 8.0
"""The most that an option may fall whose mail leaves the inbox: that way lies no harm."""


@dataclass(frozen=True, slots=True)
class LearnedWeights:
    """For each feature seen in corrections, a shift of the logits of some options.

    Options in `archiving` rise by at most `most_up`: the fewer corrections said what must stay, the less is trusted.
    """

    shifts: Mapping[str, Mapping[str, float]]
    archiving: frozenset[str] = field(default=frozenset())
    most_up: float = MOST_SHIFT

    @property
    def digest(self) -> str:
        """Six hex digits that change with the content."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:6]

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
        return shifted(probabilities, {o: self._bounded(o, move - middle) for o, move in moves.items()})

    def _bounded(self, option: str, move: float) -> float:
        if option in self.archiving:
            return max(-MOST_DOWN, min(self.most_up, move))
        return max(-MOST_SHIFT, min(MOST_SHIFT, move))

    def to_json(self) -> str:
        """One JSON object, the same text for the same content."""
        shifts = {name: {o: round(w, 4) for o, w in sorted(row.items())} for name, row in sorted(self.shifts.items())}
        data = {"format": FORMAT, "archiving": sorted(self.archiving), "most_up": self.most_up, "shifts": shifts}
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> LearnedWeights:
        """Read what `to_json` wrote. Raises ValueError if it is something else."""
        try:
            data = json.loads(text)
            known = data["format"] == FORMAT
            shifts = {str(n): {str(o): float(w) for o, w in row.items()} for n, row in data["shifts"].items()}
            archiving, most_up = frozenset(map(str, data["archiving"])), float(data["most_up"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError("These are not learned weights.") from error
        if not known:
            raise ValueError("These learned weights were written by another version; they will be learned again.")
        if not all(math.isfinite(w) for row in shifts.values() for w in row.values()) or not 0 <= most_up <= MOST_SHIFT:
            raise ValueError("Learned weights must be finite and within their bounds.")
        return cls(shifts, archiving, most_up)


def learnable(features: Features) -> dict[str, float]:
    """The features learning works on: the mail's own, except signs of an injection, and who sent it."""
    values = {name: value for name, value in features.values.items() if not name.startswith("#injection")}
    for key, known in (("@", features.sender), ("@@", features.domain), ("@list:", features.list_id)):
        if known:
            values[key + known] = 1.0
    return values


def shifted(probabilities: Mapping[str, float], shift: Mapping[str, float]) -> dict[str, float]:
    """Probabilities with each option's logit moved by its shift; the hijack option never ends lower than before."""
    moved = {option: p * math.exp(shift.get(option, 0.0)) for option, p in probabilities.items()}
    total = math.fsum(moved.values())
    result = {option: m / total for option, m in moved.items()}
    before = probabilities.get(HIJACK_ID, 0.0)
    if result.get(HIJACK_ID, 0.0) < before:
        scale = (1.0 - before) / (1.0 - result[HIJACK_ID])
        result = {option: before if option == HIJACK_ID else p * scale for option, p in result.items()}
    return result
