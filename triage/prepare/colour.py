"""Colours of CSS and old HTML: parsed, and compared as an eye compares them."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Mapping

Colour = tuple[int, int, int]
UNKNOWN: Colour = (-1, -1, -1)
"""A colour that cannot be known here (an image, a gradient, a rule that may or may not apply); equal to none."""
TRANSPARENT: Colour = (-2, -2, -2)
WHITE: Colour = (255, 255, 255)
BLACK: Colour = (0, 0, 0)
LINK: Colour = (0, 0, 238)
MARKED: Colour = (255, 255, 0)

SAME_COLOUR = 8

_NAMES: Mapping[str, Colour] = {
    "white": WHITE, "black": BLACK, "red": (255, 0, 0), "lime": (0, 255, 0), "blue": (0, 0, 255),
    "yellow": (255, 255, 0), "aqua": (0, 255, 255), "cyan": (0, 255, 255), "fuchsia": (255, 0, 255),
    "magenta": (255, 0, 255), "silver": (192, 192, 192), "gray": (128, 128, 128), "grey": (128, 128, 128),
    "maroon": (128, 0, 0), "olive": (128, 128, 0), "green": (0, 128, 0), "purple": (128, 0, 128), "teal": (0, 128, 128),
    "navy": (0, 0, 128), "orange": (255, 165, 0), "whitesmoke": (245, 245, 245), "snow": (255, 250, 250),
    "ivory": (255, 255, 240), "ghostwhite": (248, 248, 255), "floralwhite": (255, 250, 240), "azure": (240, 255, 255),
    "mintcream": (245, 255, 250), "lightgray": (211, 211, 211), "lightgrey": (211, 211, 211),
    "gainsboro": (220, 220, 220), "darkgray": (169, 169, 169), "darkgrey": (169, 169, 169), "transparent": TRANSPARENT,
}  # fmt: skip

_HEX = re.compile(r"#?([0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})")
_FUNCTION = re.compile(r"(rgb|hsl)a?\(\s*([\d.]+%?)(?:deg)?[\s,]+([\d.]+%?)[\s,]+([\d.]+%?)(?:[\s,/]+([\d.]+%?))?")
_COLOUR_WORD = re.compile(r"#[0-9a-f]{3,8}\b|(?:rgb|hsl)a?\([^)]*\)|[a-z][a-z-]*")
_NO_COLOUR = frozenset({
    "inherit", "initial", "unset", "revert", "currentcolor", "auto", "none", "transparent", "repeat", "repeat-x",
    "repeat-y", "no-repeat", "scroll", "fixed", "local", "left", "right", "top", "bottom", "center", "cover", "contain",
    "px", "em", "pt", "important", "border-box", "padding-box", "content-box",
})  # fmt: skip


def text_colour(value: str) -> Colour | None:
    """A colour by a name that is not known here is some colour, not the parent's."""
    if not value:
        return None
    word = _COLOUR_WORD.match(value.strip())
    return parse_colour(value) or (UNKNOWN if word and word.group() not in _NO_COLOUR else None)


def background_colour(value: str) -> Colour | None:
    """A background shorthand: an image, a gradient or a half transparent colour is unknown; None is transparent."""
    if "url(" in value or "gradient" in value:
        return UNKNOWN
    words = _COLOUR_WORD.findall(value)
    for word in words:
        colour = parse_colour(word)
        if colour is not None:
            return None if colour == TRANSPARENT else UNKNOWN if 0.06 <= _alpha(word) < 0.9 else colour
    return None if all(word in _NO_COLOUR for word in words) else UNKNOWN


def _alpha(value: str) -> float:
    """How opaque a colour is, 0 to 1."""
    if found := _FUNCTION.match(value):
        alpha = found.group(5) or "1"
        return _number(alpha.rstrip("%")) / (100 if alpha.endswith("%") else 1)
    digits = value.removeprefix("#")
    if value.startswith("#") and len(digits) in (4, 8):
        return int(digits[3] * 2 if len(digits) == 4 else digits[6:], 16) / 255
    return 1.0


def _number(text: str) -> float:
    whole, _, rest = text.partition(".")
    return float(f"{whole or 0}.{rest.replace('.', '') or 0}")


def parse_colour(value: str) -> Colour | None:
    """A CSS or HTML colour; None for what is no colour, UNKNOWN where it stands for one that cannot be known."""
    value = value.strip().removesuffix("!important").strip()
    if value in _NAMES:
        return _NAMES[value]
    if value == "unknown" or value.startswith(("var(", "color(")):
        return UNKNOWN
    if found := _FUNCTION.match(value):
        if _alpha(value) < 0.06:
            return TRANSPARENT
        return _hsl(*found.groups()[1:4]) if found.group(1) == "hsl" else _rgb(*found.groups()[1:4])
    if found := _HEX.fullmatch(value):
        digits = found.group(1)
        if value.startswith("#") and _alpha(value) < 0.06:
            return TRANSPARENT
        if len(digits) <= 4:
            digits = "".join(d * 2 for d in digits)
        return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)
    return None


def _rgb(red: str, green: str, blue: str) -> Colour:
    levels = [_number(c.rstrip("%")) * (2.55 if c.endswith("%") else 1) for c in (red, green, blue)]
    return min(255, round(levels[0])), min(255, round(levels[1])), min(255, round(levels[2]))


def _hsl(hue: str, saturation: str, lightness: str) -> Colour:
    h, s, l = (_number(c.rstrip("%")) for c in (hue, saturation, lightness))  # noqa: E741
    red, green, blue = colorsys.hls_to_rgb(h / 360 % 1, min(1.0, l / 100), min(1.0, s / 100))
    return round(red * 255), round(green * 255), round(blue * 255)


def same(text: Colour, background: Colour) -> bool:
    """Can nobody tell the text from its background?"""
    if text == TRANSPARENT:
        return True
    if UNKNOWN in (text, background):
        return False
    return max(abs(a - b) for a, b in zip(text, background, strict=True)) <= SAME_COLOUR
