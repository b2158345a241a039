"""pydantic's findings in an operator's words: place, what is wrong, what to write instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from triage.config.problems import Problem, nearest
from triage.config.yamltree import Loc, Tree, spell

_MOST_KNOWN_SHOWN = 12


def explain(error: ValidationError, model: type[BaseModel], tree: Tree) -> list[Problem]:
    """Every finding as a problem at its line. No value is repeated except single words that are not secrets."""
    return [_explain(details, model, tree) for details in error.errors(include_url=False)]


def _explain(details: ErrorDetails, root: type[BaseModel], tree: Tree) -> Problem:
    loc, model = _place(details["loc"], root)
    kind, ctx = details["type"], details.get("ctx", {})
    if kind == "problem_around":
        return Problem(tree.line(loc[:-1]), f"{spell(loc[:-1])} {details['msg']}")
    if kind == "union_tag_not_found":
        return Problem(tree.line(loc), f"{spell(loc)} has no provider: add a line such as provider: embedded")
    if kind == "missing":
        about = model.model_fields[str(loc[-1])].description if model else None
        return Problem(tree.line(loc), f"{spell(loc)} is missing: {about}" if about else f"{spell(loc)} is missing")
    if kind == "extra_forbidden":
        return Problem(tree.line(loc), f"{spell(loc)} is not a key here; {_known_instead(str(loc[-1]), model, root)}")
    if kind == "union_tag_invalid":
        loc = (*loc, "provider")
    return Problem(tree.line(loc), f"{spell(loc)} {_said(kind, ctx, details)}")


def _said(kind: str, ctx: dict[str, Any], details: ErrorDetails) -> str:
    got = details["input"]
    if kind.startswith("problem"):
        return details["msg"]
    if kind in _SIZES:
        return _SIZES[kind].format(**ctx)
    if kind in {"literal_error", "union_tag_invalid"}:
        words = re.findall(r"'([^']+)'", str(ctx.get("expected", ctx.get("expected_tags", ""))))
        wrong = got if kind == "literal_error" else ctx.get("tag")
        return f"must be one of {', '.join(words)}{_not(wrong)}{_meant(wrong, words)}"
    if kind in _BOUNDS:
        return _BOUNDS[kind].format(**ctx) + _not(got)
    what = _KINDS.get(kind, "cannot be used: " + details["msg"])
    if kind == "string_type" and isinstance(got, dict):
        return f"{what}; put it in quotes, as it holds a colon"
    if kind == "string_type" and isinstance(got, bool | int | float | date):
        return f"{what}{_not(got)}; put it in quotes"
    if (
        kind in {"int_type", "float_type", "bool_type"}
        and isinstance(got, str)
        and re.fullmatch(r"[\d.]+|true|false", got)
    ):
        return f"{what}, not text; remove the quotes"
    return what + (_not(got) if kind.endswith(("_type", "_from_float")) else "")


_KINDS = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "list_type": "must be a list (lines that begin with -)",
    "dict_type": "must be a block of keys",
    "model_type": "must be a block of keys",
    "model_attributes_type": "must be a block of keys",
    "string_too_short": "is empty",
    "string_pattern_mismatch": "holds characters that cannot be used here (letters, digits, . _ - can)",
    "finite_number": "must be a number",
}
_BOUNDS = {
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
}
_SIZES = {
    "string_too_long": "must be at most {max_length} characters long",
    "too_short": "must hold at least {min_length}",
    "too_long": "must hold at most {max_length}",
}


def _not(got: object) -> str:
    """ ", not ..." for what was found; text is repeated only where it is a single short word."""
    match got:
        case None:
            return ", but is empty"
        case bool():
            return f", not {str(got).lower()}"
        case int() | float():
            return f", not the number {got}"
        case date():
            return f", not the day {got}"
        case str() if re.fullmatch(r"[\w.+-]{1,24}", got):
            return f", not {got}"
        case str():
            return ", not this text"
        case list():
            return ", not a list"
        case _:
            return ", not a block of keys"


def _meant(wrong: object, known: Sequence[str]) -> str:
    found = nearest(wrong, known) if isinstance(wrong, str) else None
    return f"; did you mean {found}?" if found else ""


def _known_instead(key: str, model: type[BaseModel] | None, root: type[BaseModel]) -> str:
    known = list(model.model_fields) if model else []
    found = nearest(key, known)
    if found:
        return f"did you mean {found}?"
    elsewhere = next((place for name, place in _all_keys(root, "") if name == key), None)
    if elsewhere:
        return f"did you mean {elsewhere}?"
    more = ", ..." if len(known) > _MOST_KNOWN_SHOWN else ""
    return f"known are {', '.join(known[:_MOST_KNOWN_SHOWN])}{more}"


def _all_keys(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str]]:
    for name, info in model.model_fields.items():
        yield name, prefix + name
        for inner in _models_in(info.annotation):
            many = "[]" if "list" in str(info.annotation) else ""
            yield from _all_keys(inner, f"{prefix}{name}{many}.")


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for each in get_args(annotation) for model in _models_in(each)]


def _place(raw: tuple[int | str, ...], root: type[BaseModel]) -> tuple[Loc, type[BaseModel] | None]:
    """The place without pydantic's union tags, and the model that the last key belongs (or does not belong) to."""
    loc: list[int | str] = []
    model: type[BaseModel] | None = root
    inside: list[type[BaseModel]] = []
    named = False  # the next step is a name of the operator's own, not a key
    for i, step in enumerate(raw):
        tagged = next((m for m in inside if len(inside) > 1 and step in _tags(m)), None)
        if tagged is not None:
            model, inside = tagged, []
            continue
        loc.append(step)
        if isinstance(step, int) or named:
            named = False
            continue
        if i == len(raw) - 1:
            break
        field = model.model_fields.get(step) if model else None
        inside = _models_in(field.annotation) if field else []
        named = field is not None and get_origin(field.annotation) is dict
        model = inside[0] if inside else None
    return tuple(loc), model


def _tags(model: type[BaseModel]) -> tuple[object, ...]:
    field = model.model_fields.get("provider")
    return get_args(field.annotation) if field else ()
