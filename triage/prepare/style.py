"""As much CSS as it takes to see whether a text shows: declarations, colours, and rules with plain selectors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

Colour = tuple[int, int, int]
UNKNOWN: Colour = (-1, -1, -1)
"""A colour that cannot be known here (an image, a gradient, a rule that may or may not apply); equal to none."""
TRANSPARENT: Colour = (-2, -2, -2)
WHITE: Colour = (255, 255, 255)
BLACK: Colour = (0, 0, 0)
LINK: Colour = (0, 0, 238)
MARKED: Colour = (255, 255, 0)

MAX_SHEET = 256 * 1024
MAX_RULES = 2000
MAX_RULES_OF_A_NAME = 50
OFF_SCREEN_PX = -400.0
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

_DECLARATION = re.compile(r"([a-z-]{2,40})\s*:\s*([^;{}]{0,300})")
_WANTED = re.compile(
    r"display|visib|opacity|font|color|background|height|width|indent|position|clip|transform|white-sp"
)
_CSS_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.DOTALL)
_LENGTH = re.compile(r"([+-]?\d*\.?\d+)\s*(px|pt|em|rem|ex|%|vh|vw|cm|mm|in|pc)?")
_HEX = re.compile(r"#?([0-9a-f]{8}|[0-9a-f]{6}|[0-9a-f]{3,4})")
_RGB = re.compile(r"rgba?\(\s*(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\d{1,3})(?:[\s,/]+([\d.]+%?))?")
_COLOUR_WORD = re.compile(r"#[0-9a-f]{3,8}\b|rgba?\([^)]*\)|[a-z]+")
_SIMPLE = re.compile(r"([a-z][a-z0-9]*|\*)?((?:[.#][\w-]+)*)")
_HIDING = frozenset(
    {
        "display",
        "opacity",
        "transform",
        "overflow",
        "overflow-y",
        "text-indent",
        "margin-left",
        "margin-top",
        "position",
    }
)
_RELATIVE = frozenset({"em", "rem", "%", "ex"})


@dataclass(frozen=True, slots=True)
class Effect:
    """What an element's own style says of its text. None: nothing said, the parent's holds."""

    gone: bool = False
    visible: bool | None = None
    shrunk: bool | None = None
    colour: Colour | None = None
    background: Colour | None = None
    pre: bool | None = None


NO_EFFECT = Effect()


@dataclass(slots=True)
class Sheet:
    """Rules of a document's style elements by what their last compound names, in order."""

    rules: dict[str, list[tuple[str, frozenset[str], bool, Mapping[str, str]]]] = field(default_factory=dict)
    count: int = 0

    def matching(self, tag: str, names: frozenset[str]) -> Mapping[str, str]:
        """The declarations that a plain rule gives an element; `names` holds its `.class` and `#id` names."""
        found: dict[str, str] = {}
        for key in (tag, *sorted(names)):
            for rule_tag, needed, certain, declarations in self.rules.get(key, ()):
                if rule_tag not in ("", tag) or not needed <= names:
                    continue
                if certain:
                    _merge(found, declarations)
                else:
                    found.update({p: "unknown" for p in ("color", "background", "font-size") if p in declarations})
        return found


def parse_sheet(css: str, sheet: Sheet) -> None:
    """Add the rules of one style element. Rules inside an at-rule hold only sometimes and are left out."""
    css = _CSS_COMMENT.sub(" ", css[:MAX_SHEET]).lower()
    depth, start, prelude = 0, 0, ""
    conditional = 0
    for found in re.finditer(r"[{}]", css):
        if found.group() == "{":
            if depth == 0:
                prelude = css[start : found.start()].rpartition(";")[2].strip()
                conditional = 1 if prelude.startswith("@") else 0
            depth += 1
        else:
            depth = max(0, depth - 1)
            if depth == 0 and not conditional:
                _add_rule(sheet, prelude, css[start : found.start()])
        if depth == 0 or not conditional:
            start = found.end()
        if sheet.count >= MAX_RULES:
            return


def _add_rule(sheet: Sheet, prelude: str, text: str) -> None:
    if not prelude or not _WANTED.search(text):
        return
    declarations = parse_declarations(text)
    for selector in prelude.split(",", 50)[:50]:
        parts = selector.replace(">", " ").replace("+", " ").replace("~", " ").split()
        found = _SIMPLE.fullmatch(parts[-1]) if parts else None
        if found is None:
            continue
        tag = found.group(1) or ""
        needed = frozenset(re.findall(r"[.#][\w-]+", found.group(2)))
        if tag == "*" and not needed:
            continue
        tag = tag.strip("*")
        key = min(needed) if needed else tag
        rules = sheet.rules.setdefault(key, [])
        if len(rules) < MAX_RULES_OF_A_NAME:
            rules.append((tag, needed, len(parts) == 1, declarations))
            sheet.count += 1


@lru_cache(maxsize=2048)
def _inline(text: str) -> Mapping[str, str]:
    """Style attributes repeat by the hundred in one mail and from mail to mail."""
    return parse_declarations(text.lower())


def parse_declarations(text: str) -> dict[str, str]:
    """Property to value, lower case; `background-color` counts as `background`; an important value says so."""
    found: dict[str, str] = {}
    for name, value in _DECLARATION.findall(text):
        name = "background" if name in ("background-color", "background-image") else name
        _merge(found, {name: value.strip()})
    return found


def _merge(into: dict[str, str], declarations: Mapping[str, str]) -> None:
    for name, value in declarations.items():
        if "!important" in into.get(name, "") and "!important" not in value:
            continue
        if name == "background" and value.startswith(("none", "inherit", "initial")):
            continue
        into[name] = value


def effect_of(sheet_says: Mapping[str, str], inline: str, attributes: Mapping[str, str | None], tag: str) -> Effect:
    """An element's effect from the rules that match it, its style attribute and its old-fashioned attributes."""
    said: dict[str, str] = {}
    if attributes.get("bgcolor"):
        said["background"] = str(attributes["bgcolor"]).lower()
    if attributes.get("background"):
        said["background"] = "unknown"
    colour = attributes.get("text" if tag == "body" else "color") if tag in ("font", "body", "basefont") else None
    if colour:
        said["color"] = colour.lower()
    _merge(said, sheet_says)
    if inline:
        _merge(said, _inline(inline[:2000]))
    if tag == "a" and attributes.get("href") and "color" not in said:
        said["color"] = "#0000ee"
    if tag == "mark" and "background" not in said:
        said["background"] = "#ffff00"
    if "hidden" in attributes and "display" not in said:
        return Effect(gone=True)
    return _effect(said) if said else NO_EFFECT


def _effect(said: Mapping[str, str]) -> Effect:
    visibility = said.get("visibility", "")
    white_space = said.get("white-space", "")
    return Effect(
        gone=not _HIDING.isdisjoint(said) and _is_gone(said),
        visible=None if not visibility else not visibility.startswith(("hidden", "collapse")),
        shrunk=_shrunk(said),
        colour=_text_colour(said.get("color", "")),
        background=_background(said["background"]) if "background" in said else None,
        pre=None if not white_space else white_space.startswith(("pre", "break-spaces")),
    )


def _is_gone(said: Mapping[str, str]) -> bool:
    if said.get("display", "").startswith("none") or _below(said.get("opacity", ""), 0.06):
        return True
    if said.get("transform", "").startswith(("scale(0)", "scale(0,", "scalex(0)", "scaley(0)")):
        return True
    if said.get("overflow", said.get("overflow-y", "")).startswith(("hidden", "clip")) and any(
        _below(said.get(p, ""), 1.5) for p in ("height", "max-height", "width", "max-width")
    ):
        return True
    if any(_px(said.get(p, "")) < OFF_SCREEN_PX for p in ("text-indent", "margin-left", "margin-top")):
        return True
    if not said.get("position", "").startswith(("absolute", "fixed", "relative")):
        return False
    off = any(_px(said.get(p, "")) < OFF_SCREEN_PX for p in ("left", "top", "right", "bottom"))
    clip = re.sub(r"[\s,]+|px", "", said.get("clip", "") + said.get("clip-path", ""))
    return off or clip.startswith(("rect(0000", "rect(1111", "inset(50%", "inset(100%"))


def _shrunk(said: Mapping[str, str]) -> bool | None:
    size = said.get("font-size", "")
    if not size and (font := said.get("font", "")):
        found = re.search(r"(?<![\w#.-])\d*\.?\d+(?:px|pt|em|rem|%)", font)
        size = found.group() if found else ""
    found = _LENGTH.match(size)
    if found is None:
        return False if size and not size.startswith(("inherit", "unset")) else None
    number, unit = abs(float(found.group(1))), found.group(2) or "px"
    if unit in _RELATIVE:
        small = number < (8 if unit == "%" else 0.08)
        # relative to a parent of size nought it is nought; only rem is free of the parent
        return True if small else False if unit == "rem" else None
    return number <= 2.0


def _below(value: str, limit: float) -> bool:
    found = _LENGTH.match(value)
    return found is not None and abs(float(found.group(1))) < limit and found.group(2) not in ("em", "rem", "in", "cm")


def _px(value: str) -> float:
    found = _LENGTH.match(value)
    if found is None:
        return 0.0
    scale = {"em": 16.0, "rem": 16.0, "%": 5.0, "in": 96.0, "vw": 10.0, "vh": 10.0, "cm": 38.0}
    return float(found.group(1)) * scale.get(found.group(2) or "px", 1.0)


def _text_colour(value: str) -> Colour | None:
    return parse_colour(value) if value else None


def _background(value: str) -> Colour | None:
    """A background shorthand: an image or gradient is unknown, no colour at all is transparent."""
    if "url(" in value or "gradient" in value:
        return UNKNOWN
    for word in _COLOUR_WORD.findall(value):
        colour = parse_colour(word)
        if colour is not None:
            return None if colour == TRANSPARENT else colour
    return UNKNOWN if value == "unknown" else None


def parse_colour(value: str) -> Colour | None:
    """A CSS or HTML colour; None for what is no colour, UNKNOWN where it stands for one that cannot be known."""
    value = value.strip().removesuffix("!important").strip()
    if value in _NAMES:
        return _NAMES[value]
    if value == "unknown" or value.startswith(("var(", "hsl", "color(")):
        return UNKNOWN
    if found := _RGB.match(value):
        alpha = found.group(4)
        if alpha and float(re.sub(r"[^\d.]|\.(?=.*\.)", "", alpha) or 0) / (100 if "%" in alpha else 1) < 0.06:
            return TRANSPARENT
        red, green, blue = (min(255, int(c)) for c in found.groups()[:3])
        return red, green, blue
    if found := _HEX.fullmatch(value):
        digits = found.group(1)
        if len(digits) <= 4:
            digits = "".join(d * 2 for d in digits)
        if len(digits) == 8 and int(digits[6:], 16) < 16:
            return TRANSPARENT
        return int(digits[:2], 16), int(digits[2:4], 16), int(digits[4:6], 16)
    return None


def same(text: Colour, background: Colour) -> bool:
    """Can nobody tell the text from its background?"""
    if text == TRANSPARENT:
        return True
    if UNKNOWN in (text, background):
        return False
    return max(abs(a - b) for a, b in zip(text, background, strict=True)) <= SAME_COLOUR
