"""As much CSS as it takes to see whether a text shows: what one element's style does to its text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from triage.prepare.colour import Colour, background_colour, text_colour
from triage.prepare.declarations import inline, merge, resolved
from triage.prepare.gone import is_gone, opacity_of
from triage.prepare.length import number_of, pixels

MEDIUM_PX = 16.0
"""The font size where nobody says another."""

_RELATIVE: Mapping[str, float] = {"em": 1.0, "%": 0.01, "ex": 0.5, "ch": 0.5}
_SIZE_WORDS: Mapping[str, tuple[float, float]] = {
    "smaller": (0.83, 0.0), "larger": (1.2, 0.0), "xx-small": (0.0, 9.0), "x-small": (0.0, 10.0),
    "small": (0.0, 13.0), "medium": (0.0, MEDIUM_PX), "large": (0.0, 18.0), "x-large": (0.0, 24.0),
    "xx-large": (0.0, 32.0), "initial": (0.0, MEDIUM_PX), "unknown": (0.0, MEDIUM_PX),
}  # fmt: skip
_FONT_SIZE = re.compile(r"(?<![\w#.-])(?:\d*\.?\d+(?:px|pt|em|rem|%)|0(?:\.0+)?(?=[\s/]))")


@dataclass(frozen=True, slots=True)
class Effect:
    """What an element's own style says of its text. None: nothing said, the parent's holds.

    `size` is the font size as a factor of the parent's and pixels on top of it.
    """

    gone: bool = False
    visible: bool | None = None
    size: tuple[float, float] | None = None
    opacity: float = 1.0
    colour: Colour | None = None
    background: Colour | None = None
    pre: bool | None = None


NO_EFFECT = Effect()


def effect_of(
    sheet_says: Mapping[str, str],
    own: str,
    attributes: Mapping[str, str | None],
    tag: str,
    variables: Mapping[str, str],
) -> Effect:
    """An element's effect from the rules that match it, its style attribute and its old-fashioned attributes."""
    said: dict[str, str] = {}
    if attributes.get("bgcolor"):
        said["background"] = str(attributes["bgcolor"]).lower()
    if attributes.get("background"):
        said["background"] = "unknown"
    colour = attributes.get("text" if tag == "body" else "color") if tag in ("font", "body", "basefont") else None
    if colour:
        said["color"] = colour.lower()
    merge(said, sheet_says)
    if own:
        merge(said, inline(own))
    if tag == "a" and attributes.get("href") and "color" not in said:
        said["color"] = "#0000ee"
    if tag == "mark" and "background" not in said:
        said["background"] = "#ffff00"
    unopened = tag == "dialog" and "open" not in attributes
    if ("hidden" in attributes or unopened) and "display" not in said:
        return Effect(gone=True)
    if any("var(" in value for value in said.values()):
        said = {name: resolved(value, variables) for name, value in said.items()}
    return _effect(said) if said else NO_EFFECT


def _effect(said: Mapping[str, str]) -> Effect:
    visibility = said.get("visibility", "")
    white_space = said.get("white-space", "")
    return Effect(
        gone=is_gone(said),
        visible=None if not visibility else not visibility.startswith(("hidden", "collapse")),
        size=_size(said),
        opacity=opacity_of(said),
        colour=text_colour(said.get("text-fill-color") or said.get("color", "")),
        background=background_colour(said["background"]) if "background" in said else None,
        pre=None if not white_space else white_space.startswith(("pre", "break-spaces")),
    )


def _size(said: Mapping[str, str]) -> tuple[float, float] | None:
    size = said.get("font-size", "")
    if not size and (font := said.get("font", "")):
        found = _FONT_SIZE.search(font)
        size = found.group() if found else ""
    plain = number_of(size)
    if plain is None:
        absolute = pixels(size) if "(" in size else None
        word = size.partition("!")[0].strip()
        return _SIZE_WORDS.get(word) if absolute is None else (0.0, max(0.0, absolute))
    number, unit = abs(plain[0]), plain[1]
    if unit in _RELATIVE:
        return number * _RELATIVE[unit], 0.0
    if not unit and 1 < number < 2:
        return None  # a factor without its unit: no length at all
    return 0.0, pixels(f"{number:f}{unit}") or 0.0
