"""Declarations of CSS: property to value, in the one spelling that the rest of the package asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

MAX_REMEMBERED = 2000

_DECLARATION = re.compile(r"([a-z-][a-z0-9_-]{1,60})\s*:\s*([^;{}]{0,300})")
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|(.))")
_PREFIX = re.compile(r"-(?:webkit|moz|ms|o|khtml)-")
_VARIABLE = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,\s*([^()]*(?:\([^()]*\)[^()]*)*))?\)")
_SAME = {
    "background-color": "background", "background-image": "background", "mask-image": "mask", "inset-inline": "left",
    "inset-inline-start": "left", "inset-inline-end": "right", "inset-block": "top", "inset-block-start": "top",
    "inset-block-end": "bottom", "margin-inline": "margin-left", "margin-inline-start": "margin-left",
    "margin-block": "margin-top", "margin-block-start": "margin-top", "padding-inline": "padding-left",
    "padding-inline-start": "padding-left", "block-size": "height", "inline-size": "width",
    "max-block-size": "max-height", "max-inline-size": "max-width", "overflow-block": "overflow-y",
    "overflow-inline": "overflow-x",
}  # fmt: skip
_SIDES = ("top", "right", "bottom", "left")


def inline(text: str) -> Mapping[str, str]:
    """The declarations of a style attribute; they repeat by the hundred in one mail and from mail to mail."""
    return _remembered(text) if len(text) <= MAX_REMEMBERED else parse_declarations(text)


@lru_cache(maxsize=2048)
def _remembered(text: str) -> Mapping[str, str]:
    return parse_declarations(text)


def parse_declarations(text: str) -> dict[str, str]:
    """Property to value, lower case, without vendors' prefixes, shorthands of sides taken apart."""
    text = text.lower()
    if "/*" in text:
        text = _COMMENT.sub("", text)
    if "\\" in text:
        text = _ESCAPE.sub(_unescaped, text)
    found: dict[str, str] = {}
    for name, value in _DECLARATION.findall(text):
        if name[0] == "-" and name[1] != "-":
            name = _PREFIX.sub("", name, count=1)
        if name in ("margin", "inset", "padding"):
            merge(found, _sides(name, value.strip()))
        else:
            merge(found, {_SAME.get(name, name): value.strip()})
    return found


def _sides(name: str, value: str) -> dict[str, str]:
    """Top, right, bottom and left of a shorthand (CSS Box 4, 4.2)."""
    values = value.split()[:4]
    if not values or "(" in value:
        return {}
    four = (values * 4)[:4] if len(values) < 3 else [*values, values[1]][:4]
    prefix = "" if name == "inset" else f"{name}-"
    return {f"{prefix}{side}": side_value for side, side_value in zip(_SIDES, four, strict=True)}


def _unescaped(found: re.Match[str]) -> str:
    code = int(found.group(1), 16) if found.group(1) else 0
    return chr(code).lower() if 0 < code < 0xD800 else found.group(2) or ""


def merge(into: dict[str, str], declarations: Mapping[str, str]) -> None:
    """Later declarations over earlier ones, unless those are important."""
    for name, value in declarations.items():
        if "!important" in into.get(name, "") and "!important" not in value:
            continue
        if name == "background" and value.startswith(("none", "inherit", "initial")):
            continue
        into[name] = value


def variables(html: str) -> dict[str, str]:
    """Custom properties of a document. One that is set to several values could be any of them: `unknown`."""
    found: dict[str, str] = {}
    for name, value in _DECLARATION.findall(html.lower()):
        if name.startswith("--"):
            value = re.split(r"[\"'<]", value)[0].strip()
            found[name] = value if found.get(name, value) == value else "unknown"
    return found


def resolved(value: str, known: Mapping[str, str]) -> str:
    """A value with its custom properties put in, or what it falls back to (CSS Variables 1, 3)."""
    for _ in range(5):
        if "var(" not in value:
            break
        value = _VARIABLE.sub(lambda m: known.get(m.group(1), m.group(2) or "")[:300], value)[:1000]
    return value
