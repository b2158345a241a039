"""What was learned from one mailbox: small corrections on top of the shipped weights, and how they are applied."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from triage.decide.embedded.features import Features
from triage.domain.category import HIJACK_ID

FORMAT = 1
MOST_SHIFT = 4.0
"""The most (in logits) that learning may move one option of one mail."""


@dataclass(frozen=True, slots=True)
class LearnedWeights:
    """For each feature seen in corrections, a shift of the logits of some options."""

    shifts: Mapping[str, Mapping[str, float]]

    @property
    def digest(self) -> str:
        """Six hex digits that change with the content."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:6]

    def apply(self, features: Features, probabilities: Mapping[str, float]) -> dict[str, float]:
        """The probabilities after learning, over the same options. The hijack option never loses by it."""
        shift = dict.fromkeys(probabilities, 0.0)
        for name, value in learnable(features).items():
            for option, weight in self.shifts.get(name, {}).items():
                if option in shift:
                    shift[option] += value * weight
        return shifted(probabilities, shift)

    def to_json(self) -> str:
        """One JSON object, the same text for the same content."""
        shifts = {name: {o: round(w, 4) for o, w in sorted(row.items())} for name, row in sorted(self.shifts.items())}
        return json.dumps({"format": FORMAT, "shifts": shifts}, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> LearnedWeights:
        """Read what `to_json` wrote. Raises ValueError if it is something else."""
        try:
            data = json.loads(text)
            if data["format"] != FORMAT:
                raise ValueError("written by another version")
            shifts = {str(n): {str(o): float(w) for o, w in row.items()} for n, row in data["shifts"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"These are not learned weights of this version: {error}.") from error
        if not all(math.isfinite(w) for row in shifts.values() for w in row.values()):
            raise ValueError("Learned weights must be finite numbers.")
        return cls(shifts)


def learnable(features: Features) -> dict[str, float]:
    """The features learning works on: the mail's own, and who sent it."""
    values = {name: value for name, value in features.values.items() if not name.startswith("#injection")}
    for key, known in (("@", features.sender), ("@@", features.domain), ("@list:", features.list_id)):
        if known:
            values[key + known] = 1.0
    return values


def shifted(probabilities: Mapping[str, float], shift: Mapping[str, float]) -> dict[str, float]:
    """Probabilities with each option's logit moved by its shift (bounded); the hijack option never ends lower."""
    moved = {
        option: p * math.exp(max(-MOST_SHIFT, min(MOST_SHIFT, shift.get(option, 0.0))))
        for option, p in probabilities.items()
    }
    total = math.fsum(moved.values())
    result = {option: m / total for option, m in moved.items()}
    before = probabilities.get(HIJACK_ID)
    if before is not None and result[HIJACK_ID] < before:
        rest = 1.0 - result[HIJACK_ID]
        result = {o: before if o == HIJACK_ID else (p / rest * (1.0 - before) if rest else 0.0) for o, p in result.items()}
    return result
