"""Lengths, factors and shares of CSS (CSS Values 4), near enough to see that nothing is left of a box."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

MAX_TOKENS = 60
PERCENT_PX = 5.0
"""A per cent of a box whose size nobody knows here: that of one 500 px wide."""

_UNITS: Mapping[str, float] = {
    "": 1.0, "px": 1.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "q": 0.945, "em": 16.0,
    "rem": 16.0, "ex": 8.0, "ch": 8.0, "%": PERCENT_PX, "vw": 10.0, "vh": 10.0, "vmin": 10.0, "vmax": 10.0,
}  # fmt: skip
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?"
_SIMPLE = re.compile(rf"\s*({_NUMBER})\s*(%|[a-z]*)")
_TOKEN = re.compile(rf"\s*(?:({_NUMBER})(%|[a-z]*)|(min|max|clamp|calc)?\s*\(|([-+*/,)]))")
_FUNCTIONS: Mapping[str, Callable[[list[float]], float]] = {
    "min": min, "max": max, "clamp": lambda values: max(values[0], min(values[1:3] or values)),
}  # fmt: skip


def number_of(value: str) -> tuple[float, str] | None:
    """A plain number and its unit ("" for none); None for what is no number, or one of an unknown unit."""
    found = _SIMPLE.match(value)
    if found is None or (found.group(2) not in _UNITS and found.group(2)[-2:] not in ("vw", "vh")):
        return None
    return float(found.group(1)), found.group(2)


def pixels(value: str, percent: float = PERCENT_PX) -> float | None:
    """A length in CSS pixels, also of `calc`, `min`, `max` and `clamp`; None for what is no length."""
    plain = number_of(value)
    if plain is not None:
        return plain[0] * (percent if plain[1] == "%" else _UNITS.get(plain[1], 10.0))
    if "(" not in value:
        return None
    try:
        return _sum(_tokens(value, percent), 0)[0]
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def _tokens(value: str, percent: float) -> Iterator[float | str]:
    at = 0
    for _ in range(MAX_TOKENS):
        found = _TOKEN.match(value, at)
        if found is None:
            break
        at = found.end()
        number, unit, function, sign = found.groups()
        if number:
            yield float(number) * (percent if unit == "%" else _UNITS.get(unit, 10.0))
        else:
            yield sign or f"{function or 'calc'}("
    while True:
        yield ")"  # what is left open ends here


def _sum(tokens: Iterator[float | str], depth: int) -> tuple[float, str]:
    """The value of a sum of products, and the comma or bracket that ended it."""
    total, sign = 0.0, 1.0
    while True:
        product, ended = _product(tokens, depth)
        total += sign * product
        if ended in (",", ")"):
            return total, ended
        sign = -1.0 if ended == "-" else 1.0


def _product(tokens: Iterator[float | str], depth: int) -> tuple[float, str]:
    value = _operand(tokens, depth)
    while True:
        sign = next(tokens)
        if isinstance(sign, float):  # `1px -1px` without a blank behind the sign
            value += sign
        elif sign == "*":
            value *= _operand(tokens, depth)
        elif sign == "/":
            value /= _operand(tokens, depth)
        else:
            return value, sign


def _operand(tokens: Iterator[float | str], depth: int) -> float:
    token = next(tokens)
    if isinstance(token, float):
        return token
    if not token.endswith("(") or depth > 8:
        raise ValueError(token)
    values: list[float] = []
    ended = ","
    while ended == ",":
        value, ended = _sum(tokens, depth + 1)
        values.append(value)
    combine = _FUNCTIONS.get(token[:-1])
    return combine(values) if combine else values[0]
