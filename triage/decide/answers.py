"""Is an answer usable? Pure checks of what a server sent, repaired only where the meaning is certain."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from triage.domain.decision import Question

SUM_TOLERANCE = 0.025
"""How far from 1 the probabilities may sum and still be a rounding error (servers send 0.98 and 1.02)."""

ROUNDED_SUM_TOLERANCE = 0.1
"""The most that rounding to two decimals is granted, however many options there are."""

NAME_LENGTH = 120


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why an answer cannot be used: a code, and a sentence that repeats no text of the server or the mail."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Distribution:
    """Checked probabilities: every option of the question, non-negative, summing to 1. `choice` is the argmax."""

    choice: str
    probabilities: Mapping[str, float]
    repaired: tuple[str, ...] = ()


def check_distribution(
    question: Question, choice: object, probabilities: object, *, tolerance: float = SUM_TOLERANCE
) -> Distribution | Unusable:
    """Check a server's `choice` and `probabilities` (a mapping, or option-probability pairs) against the question.

    Certain repairs: a sum off by a rounding error is renormalised, an option left out while the rest sums to 1 is 0,
    a choice that was not named is the argmax. Everything else is unusable. A choice of None counts as not named.
    """
    pairs = _pairs(probabilities)
    if isinstance(pairs, Unusable):
        return pairs
    found = _numbers(question, pairs)
    if isinstance(found, Unusable):
        return found
    repaired = []
    total = math.fsum(found.values())
    allowed = max(tolerance, _rounding_tolerance(found.values(), len(question.options)))
    if abs(total - 1) > allowed:
        return Unusable("sum", f"The probabilities sum to {total:.3f}, not 1.")
    if len(found) < len(question.options):
        if abs(total - 1) > tolerance:
            return Unusable("missing_option", "Options are missing and the rest does not sum to 1.")
        repaired.append("missing_option_zero")
    if abs(total - 1) > 1e-6:
        repaired.append("renormalised")
    full = {option: found.get(option, 0.0) / total for option in question.ids}
    best = max(full.values())
    if choice is None:
        repaired.append("choice_from_probabilities")
        choice = next(option for option in question.ids if full[option] == best)
    if not isinstance(choice, str):
        return Unusable("choice_type", "The choice is not a text.")
    if choice not in full:
        return Unusable("unknown_choice", "The choice is none of the options of the question.")
    if full[choice] < best - 1e-9:
        return Unusable("not_argmax", "The choice is not the most probable option: the answer contradicts itself.")
    return Distribution(choice, full, tuple(repaired))


def parse_json(data: bytes) -> object:
    """Parse a response body strictly: UTF-8, one JSON value, no key twice in one object.

    Raises NotJson on anything else, on numbers too long to read and on nesting too deep; DuplicateKey on a repeated
    key. NaN and Infinity are read as the floats they name, so that the checks can name them.
    """
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_unique)
    except DuplicateKey:
        raise
    except (ValueError, RecursionError) as error:
        raise NotJson(type(error).__name__) from None


class NotJson(ValueError):
    """A body that is not one JSON value."""


class DuplicateKey(NotJson):
    """One JSON object names a key twice: readers would disagree on what it says."""


def mapping(value: object) -> Mapping[str, object]:
    """The value if it is a JSON object, else an empty one: for walking into answers of any shape."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> Sequence[object]:
    """The value if it is a JSON array, else an empty one."""
    return value if isinstance(value, list) else ()


def count(value: object) -> int | None:
    """A token count as servers send it (also as 12.0); None if it is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value <= 10_000_000 or value != int(value):
        return None
    return int(value)


def usage(data: object) -> tuple[int | None, int | None]:
    """Input and output tokens that a response says it took, under either of the two names in use."""
    told = mapping(mapping(data).get("usage"))
    return (
        count(told.get("input_tokens", told.get("prompt_tokens"))),
        count(told.get("output_tokens", told.get("completion_tokens"))),
    )


def fraction(value: object) -> float | None:
    """A number within 0..1, e.g. a provider's own confidence; None if it is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 else None


def model_name(value: object, configured: str) -> str:
    """The model as served, made safe for a record: printable, bounded; the configured name if none was told."""
    if not isinstance(value, str):
        return configured
    name = "".join(c for c in value[:NAME_LENGTH] if c.isprintable()).strip()
    return name or configured


def _pairs(probabilities: object) -> list[tuple[object, object]] | Unusable:
    if isinstance(probabilities, Mapping):
        return list(probabilities.items())
    if isinstance(probabilities, list) and all(isinstance(p, tuple) and len(p) == 2 for p in probabilities):
        return probabilities
    return Unusable("no_probabilities", "The answer holds no probabilities: a bare word is not a probability.")


def _numbers(question: Question, pairs: list[tuple[object, object]]) -> dict[str, float] | Unusable:
    wanted = set(question.ids)
    found: dict[str, float] = {}
    for option, value in pairs:
        if not isinstance(option, str) or option not in wanted:
            return Unusable("unknown_option", "The answer names an option that was not in the question.")
        if option in found:
            return Unusable("duplicate_option", "The answer gives one option two probabilities.")
        if isinstance(value, bool) or not isinstance(value, int | float):
            return Unusable("not_a_number", "A probability is not a number.")
        if not 0 <= value <= 1 + SUM_TOLERANCE:
            return Unusable("out_of_range", "A probability is negative, above 1 or not finite.")
        found[option] = float(value)
    if not found:
        return Unusable("no_probabilities", "The answer holds no probabilities: a bare word is not a probability.")
    return found


def _rounding_tolerance(values: Iterable[float], options: int) -> float:
    """What rounding to two decimals can add up to over all options, 0 if the values are not so rounded."""
    if any(abs(v * 100 - round(v * 100)) > 1e-4 for v in values):
        return 0.0
    return min(ROUNDED_SUM_TOLERANCE, 0.005 * options)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise DuplicateKey("an object names a key twice")
    return result
