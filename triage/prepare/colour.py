"""Colours of CSS and old HTML: parsed, and compared as an eye compares them."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Callable, Mapping

from triage.prepare.colour_names import NAMED

Colour = tuple[int, int, int]
UNKNOWN: Colour = (-1, -1, -1)
"""A colour that cannot be known here (an image, a gradient, a rule that may or may not apply); equal to none."""
TRANSPARENT: Colour = (-2, -2, -2)
CURRENT: Colour = (-3, -3, -3)
"""`currentcolor` as a background: whatever colour the text has."""
WHITE: Colour = (255, 255, 255)
BLACK: Colour = (0, 0, 0)
LINK: Colour = (0, 0, 238)
MARKED: Colour = (255, 255, 0)

SAME_COLOUR = 16
"""Levels of 256 that text must differ by to be read; #f0f0f0 on white is a contrast of 1.14 (WCAG asks for 4.5)."""

FAINT = 0.1
"""Opacity below which nobody reads black on white any more."""

_HEX = re.compile(r"#?([0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})")
_LEVEL = r"(-?[\d.]+%?|none)"
_FUNCTION = re.compile(
    r"(rgb|hsl|hwb|oklab|oklch|lab|lch|color)a?\(\s*(?:srgb(?:-linear)?\s|display-p3\s)?\s*"
    rf"{_LEVEL}(?:deg|turn|g?rad)?[\s,]+{_LEVEL}[\s,]+{_LEVEL}(?:deg|turn|g?rad)?(?:[\s,/]+([\d.]+%?))?"
)
_MIX = re.compile(r"color-mix\(in [a-z0-9 -]+,\s*([#\w]+)(?:\s+([\d.]+)%)?\s*,\s*([#\w]+)(?:\s+([\d.]+)%)?\s*\)")
_COLOUR_WORD = re.compile(r"#[0-9a-f]{3,8}\b|[a-z][a-z-]*(?:\([^()]*\))?")
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
    if "currentcolor" in words:
        return CURRENT
    for word in words:
        colour = parse_colour(word)
        if colour is not None:
            return None if colour == TRANSPARENT else UNKNOWN if FAINT <= _alpha(word) < 0.9 else colour
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
    if text == "none":
        return 0.0
    whole, _, rest = text.partition(".")
    return float(f"{whole if whole.strip('-') else 0}.{rest.replace('.', '') or 0}")


def parse_colour(value: str) -> Colour | None:
    """A CSS or HTML colour; None for what is no colour, UNKNOWN where it stands for one that cannot be known."""
    value = value.strip().removesuffix("!important").strip()
    if value.startswith("light-dark("):
        value = value[11:].partition(",")[0].strip()
    if value in NAMED:
        return NAMED[value]
    if value == "transparent":
        return TRANSPARENT
    if value == "unknown" or value.startswith("var("):
        return UNKNOWN
    if found := _FUNCTION.match(value):
        return TRANSPARENT if _alpha(value) < FAINT else _SPACES[found.group(1)](*found.groups()[1:4])
    if found := _HEX.fullmatch(value):
        digits = found.group(1)
        if value.startswith("#") and _alpha(value) < FAINT:
            return TRANSPARENT
        if len(digits) <= 4:
            digits = "".join(d * 2 for d in digits)
        return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)
    return _mixed(found) if (found := _MIX.match(value)) else None


def _mixed(found: re.Match[str]) -> Colour:
    one, other = parse_colour(found.group(1)), parse_colour(found.group(3))
    if not one or not other or min(*one, *other) < 0:
        return UNKNOWN
    share = float(found.group(2)) / 100 if found.group(2) else 1 - float(found.group(4) or 50) / 100
    red, green, blue = (round(a * share + b * (1 - share)) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _bytes(red: float, green: float, blue: float) -> Colour:
    """Levels from 0 to 1 as a Colour."""
    red, green, blue = (min(255, max(0, round(level * 255))) for level in (red, green, blue))
    return int(red), int(green), int(blue)


def _share(level: str, whole: float = 1.0) -> float:
    """A level as a share of `whole`, which 100 % stand for."""
    return _number(level.rstrip("%")) / (100 if level.endswith("%") else whole)


def _rgb(red: str, green: str, blue: str) -> Colour:
    return _bytes(_share(red, 255), _share(green, 255), _share(blue, 255))


def _color(red: str, green: str, blue: str) -> Colour:
    return _bytes(_share(red), _share(green), _share(blue))


def _hsl(hue: str, saturation: str, lightness: str) -> Colour:
    light, strength = min(1.0, _share(lightness, 100)), min(1.0, _share(saturation, 100))
    return _bytes(*colorsys.hls_to_rgb(_number(hue.rstrip("%")) / 360 % 1, light, strength))


def _hwb(hue: str, whiteness: str, blackness: str) -> Colour:
    white, black = _share(whiteness, 100), _share(blackness, 100)
    if white + black >= 1:
        return _bytes(*(white / (white + black),) * 3)
    pure = colorsys.hls_to_rgb(_number(hue.rstrip("%")) / 360 % 1, 0.5, 1.0)
    red, green, blue = (level * (1 - white - black) + white for level in pure)
    return _bytes(red, green, blue)


def _lab(lightness: str, *chroma: str) -> Colour:
    light = _share(lightness, 100)
    luminance = ((light * 100 + 16) / 116) ** 3 if light > 0.08 else light * 100 / 903.3
    return _grey(light, luminance, strength=max(abs(_share(c, 125)) for c in chroma))


def _oklab(lightness: str, *chroma: str) -> Colour:
    light = _share(lightness)
    return _grey(light, light**3, strength=max(abs(_share(c, 0.4)) for c in chroma))


def _grey(light: float, luminance: float, *, strength: float) -> Colour:
    """The spaces of CSS Color 4, 8 and 9, for what has hardly a hue; a real colour of theirs is not worked out."""
    if strength > 0.05 and 0.02 < light < 0.98:
        return UNKNOWN
    level = 1.055 * min(1.0, max(0.0031308, luminance)) ** (1 / 2.4) - 0.055
    return _bytes(level, level, level)


_SPACES: Mapping[str, Callable[[str, str, str], Colour]] = {
    "rgb": _rgb, "color": _color, "hsl": _hsl, "hwb": _hwb, "lab": _lab, "oklab": _oklab,
    "lch": lambda light, chroma, _: _lab(light, chroma),
    "oklch": lambda light, chroma, _: _oklab(light, chroma),
}  # fmt: skip


def same(text: Colour, background: Colour) -> bool:
    """Can nobody tell the text from its background?"""
    if text == TRANSPARENT:
        return True
    if UNKNOWN in (text, background):
        return False
    return max(abs(a - b) for a, b in zip(text, background, strict=True)) <= SAME_COLOUR
