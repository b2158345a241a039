"""Is anything of a box left to see? Transparent, without area, moved away or shrunk: what its own declarations say."""

from __future__ import annotations

import re
from collections.abc import Mapping

from triage.prepare.colour import FAINT, TRANSPARENT, parse_colour
from triage.prepare.length import number_of, pixels

OFF_SCREEN_PX = -400.0
FAR_PX = 3000.0
"""Nobody scrolls that far to the right or down to find a text."""
SMALLEST_SCALE = 0.05
TIGHT_PX = -8.0
BLURRED_PX = 15.0

_HIDING = frozenset({
    "display", "content-visibility", "filter", "zoom", "transform", "overflow", "overflow-y", "overflow-x", "scale",
    "rotate", "translate", "text-indent", "margin-left", "margin-top", "padding-left", "padding-top", "position",
    "clip-path", "letter-spacing", "mask", "text-security",
})  # fmt: skip
_DRAWN = frozenset({"filter", "mask", "zoom", "transform", "scale", "rotate", "translate", "clip-path"})
_NO_AREA = re.compile(r"rect\((?:0000|1111)|inset\((?:50|100)%|(?:circle|ellipse)\(0|polygon\([0%]*\)|path\(['\"]?\)")
_FUNCTION = re.compile(r"([a-z0-9]+)\(([^()]*)\)")
_COLOURS = re.compile(r"transparent|#[0-9a-f]{3,8}|rgba?\([^()]*\)|[a-z]+(?![\w(-])")
_DIRECTION = re.compile(r"to|top|left|right|bottom|linear|radial|none")
_SIDES = ("left", "top", "right", "bottom")


def is_gone(said: Mapping[str, str]) -> bool:
    """Nothing of the box and of what is in it can be seen, whatever its parents and children say."""
    if _HIDING.isdisjoint(said):
        return False
    if said.get("display", "").startswith("none") or said.get("content-visibility", "").startswith("hidden"):
        return True
    if said.get("text-security", "").startswith(("disc", "circle", "square")):
        return True
    if not _DRAWN.isdisjoint(said) and (_filtered(said.get("filter", "")) or _masked(said) or _transformed(said)):
        return True
    return _clipped(said) or _moved_away(said)


def opacity_of(said: Mapping[str, str]) -> float:
    """How much of the box shows, 0 to 1."""
    return min(1.0, _factor(said.get("opacity", ""), 1.0))


def _factor(value: str, missing: float) -> float:
    found = number_of(value)
    if found is None:
        factor = pixels(value, percent=0.01) if "(" in value else None
        return missing if factor is None else max(0.0, factor)
    return max(0.0, found[0] / 100 if found[1] == "%" else found[0])


def _filtered(value: str) -> bool:
    for name, inside in _FUNCTION.findall(value[:300]):
        if name == "opacity" and _factor(inside, 1.0) < FAINT:
            return True
        if name == "alpha" and _factor(inside.partition("=")[2], 100.0) < FAINT * 100:
            return True
        if name == "blur" and (pixels(inside) or 0.0) >= BLURRED_PX:
            return True
    return False


def _masked(said: Mapping[str, str]) -> bool:
    """Cut to nothing, or behind a mask of nothing but transparent stops."""
    if "clip-path" in said and _NO_AREA.match(_packed(said["clip-path"])):
        return True
    mask = said.get("mask", "")
    if "gradient(" not in mask or "url(" in mask:
        return False
    inside = mask.partition("gradient(")[2]
    stops = [word for word in _COLOURS.findall(inside) if not _DIRECTION.fullmatch(word)]
    return bool(stops) and all(parse_colour(stop) == TRANSPARENT for stop in stops)


def _packed(shape: str) -> str:
    return re.sub(r"[\s,]+|px", "", shape)


def _transformed(said: Mapping[str, str]) -> bool:
    scale = said.get("scale", "").split()[:2]
    if _factor(said.get("zoom", ""), 1.0) < SMALLEST_SCALE or any(_factor(s, 1.0) < SMALLEST_SCALE for s in scale):
        return True
    if any(_off(part) for part in said.get("translate", "").split()[:2]):
        return True
    turned = re.sub(r"([xyz])\s+(.*)", r"rotate\1(\2)", said.get("rotate", ""))
    functions = _FUNCTION.findall(f"{said.get('transform', '')} {turned}"[:600])
    return any(_function_hides(name, [part.strip() for part in inside.split(",")]) for name, inside in functions)


def _function_hides(name: str, values: list[str]) -> bool:
    if name.startswith("scale") and name != "scalez":
        return any(abs(v) < SMALLEST_SCALE for value in values[:2] if (v := _signed(value)) is not None)
    if name.startswith("translate") and name != "translatez":
        return any(_off(value) for value in values[:2])
    if name == "matrix" and len(values) == 6:
        a, b, c, d, x, y = (_signed(value) or 0.0 for value in values)
        return abs(a * d - b * c) < SMALLEST_SCALE**2 or min(x, y) < OFF_SCREEN_PX or max(x, y) > FAR_PX
    if name in ("rotatex", "rotatey"):
        return _edge_on(values[0])
    return False


def _signed(value: str) -> float | None:
    found = number_of(value)
    return None if found is None else found[0] / 100 if found[1] == "%" else found[0]


def _edge_on(angle: str) -> bool:
    found = re.match(r"\s*([+-]?[\d.]+)\s*(deg|turn|grad|rad)", angle)
    if found is None or found.group(1).count(".") > 1 or not found.group(1).strip("+-."):
        return False
    degrees = float(found.group(1)) * {"deg": 1, "turn": 360, "grad": 0.9, "rad": 57.29578}[found.group(2)]
    return abs(degrees % 180 - 90) < 3


def _clipped(said: Mapping[str, str]) -> bool:
    """Cut off by `overflow`: no height, no width, or the text pushed out of the box."""
    if not any(said.get(p, "").startswith(("hidden", "clip")) for p in ("overflow", "overflow-y", "overflow-x")):
        return False
    if any(_is_nought(said.get(p, ""), of_parent="width" in p) for p in ("height", "max-height", "width", "max-width")):
        return True
    line = number_of(said.get("line-height", ""))
    if line is not None and line[1] in ("", "px", "em", "%") and "height" not in said and line[0] < 0.1:
        return True
    return (pixels(said.get("text-indent", "")) or 0.0) >= -OFF_SCREEN_PX


def _is_nought(value: str, *, of_parent: bool) -> bool:
    """Is this length next to nothing? A percentage counts only `of_parent`, and if it is nought."""
    found = number_of(value)
    if found is not None and found[1] in ("em", "rem", "in", "cm"):
        return found[0] == 0
    if found is not None and found[1] == "%":
        return of_parent and found[0] == 0
    size = pixels(value)
    return size is not None and abs(size) < 1.5


def _moved_away(said: Mapping[str, str]) -> bool:
    if any(_off(said.get(p, "")) for p in ("text-indent", "margin-left", "margin-top")):
        return True
    if any(_off(said.get(p, "")) for p in ("padding-left", "padding-top")):
        return True
    if "letter-spacing" in said and (pixels(said["letter-spacing"]) or 0.0) <= TIGHT_PX:
        return True
    if not said.get("position", "").startswith(("absolute", "fixed", "relative", "sticky")):
        return False
    return any(_off(said.get(side, "")) for side in _SIDES) or _NO_AREA.match(_packed(said.get("clip", ""))) is not None


def _off(value: str) -> bool:
    if len(value) < 5 and not value.endswith("in"):
        return False  # nearly every margin there is
    shift = pixels(value) or 0.0
    return shift < OFF_SCREEN_PX or shift > FAR_PX
