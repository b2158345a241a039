"""As much CSS as it takes to see whether a text shows: declarations, colours, and rules with plain selectors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from triage.prepare.colour import Colour, background_colour, text_colour

MAX_SHEET = 256 * 1024
MAX_RULES = 2000
MAX_RULES_OF_A_NAME = 50
MAX_PICKED = 60
MAX_COMPOUNDS = 4
"""Of selectors that a tree must be asked for: how many, and how many compounds one may have."""

OFF_SCREEN_PX = -400.0

_DECLARATION = re.compile(r"([a-z-]{2,40})\s*:\s*([^;{}]{0,300})")
_WANTED = re.compile(
    r"display|visib|opacity|font|color|background|height|width|indent|position|clip|transform|white-sp|filter|zoom"
)
_CSS_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.DOTALL)
_CSS_ESCAPE = re.compile(r"\\(?:([0-9a-f]{1,6})\s?|(.))")
_ALWAYS = re.compile(r"@media\s+(?:(?:only\s+)?(?:screen|all)\s*,?\s*)+\Z|@layer\b")
_LENGTH = re.compile(r"(?:calc\(\s*)?([+-]?\d*\.?\d+)\s*(px|pt|em|rem|ex|%|vh|vw|cm|mm|in|pc)?")
_FONT_SIZE = re.compile(r"(?<![\w#.-])(?:\d*\.?\d+(?:px|pt|em|rem|%)|0(?:\.0+)?(?=[\s/]))")
_TRANSLATE = re.compile(r"translate(?:x|y|3d)?\(\s*([^,)]+)(?:,\s*([^,)]+))?")
_NO_AREA = re.compile(r"rect\((?:0000|1111)|inset\((?:50|100)%|(?:circle|ellipse)\(0|polygon\([0 ]*\)")
_CHEAP = re.compile(r"(?:[\w\s.#>+*-]|\[[^\[\]]*\]|:not\([\w.#-]*\)|:(?:first-child|link|root)(?![\w(-]))*(?:~[^~:]*)?")
"""Selectors that a library answers in time linear in the tree; `:has`, `:nth-child` and chains of `~` are not."""
_SIMPLE = re.compile(r"([a-z][a-z0-9]*|\*)?((?:[.#][\w-]+)*)")
_HIDING = frozenset({
    "display", "content-visibility", "opacity", "filter", "zoom", "transform", "overflow", "overflow-y", "overflow-x",
    "text-indent", "margin-left", "margin-top", "position", "clip-path",
})  # fmt: skip
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
    """Rules of a document's style elements by what their last compound names, in order.

    `picked` are the rules whose selectors say more than one element tells of itself: who has the tree looks them up.
    """

    rules: dict[str, list[tuple[str, frozenset[str], bool, Mapping[str, str]]]] = field(default_factory=dict)
    picked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)
    count: int = 0

    def matching(self, tag: str, names: frozenset[str]) -> dict[str, str]:
        """The declarations that a plain rule gives an element; `names` holds its `.class` and `#id` names."""
        found: dict[str, str] = {}
        for key in (tag, *sorted(names)):
            for rule_tag, needed, certain, declarations in self.rules.get(key, ()):
                if rule_tag not in ("", tag) or not needed <= names:
                    continue
                if certain:
                    merge(found, declarations)
                else:
                    found.update({p: "unknown" for p in ("color", "background", "font-size") if p in declarations})
        return found


def parse_sheet(css: str, sheet: Sheet) -> None:
    """Add the rules of one style element. Rules inside an at-rule that holds only sometimes are left out."""
    css = _CSS_COMMENT.sub(" ", css[:MAX_SHEET]).lower()
    start = skipped = 0
    prelude = ""
    for brace in re.finditer(r"[{}]", css):
        if skipped:
            skipped += 1 if brace.group() == "{" else -1
        elif brace.group() == "{":
            text = css[start : brace.start()].rpartition(";")[2].strip()
            if prelude or (text.startswith("@") and not _ALWAYS.match(text)):
                skipped = 1
            elif not text.startswith("@"):
                prelude = text
        else:
            _add_rule(sheet, prelude, css[start : brace.start()])
            prelude = ""
        start = brace.end()
        if sheet.count >= MAX_RULES:
            return


def _add_rule(sheet: Sheet, prelude: str, text: str) -> None:
    if not prelude or not _WANTED.search(text):
        return
    declarations = parse_declarations(text)
    for selector in prelude.split(",", 50)[:50]:
        parts = selector.replace(">", " ").replace("+", " ").replace("~", " ").split()
        last = _SIMPLE.fullmatch(parts[-1]) if parts else None
        if last and len(parts) == 1:
            _add_plain(sheet, last, declarations, certain=True)
        elif len(sheet.picked) < MAX_PICKED and len(parts) <= MAX_COMPOUNDS and _CHEAP.fullmatch(selector):
            sheet.picked.append((selector.strip(), declarations))
            sheet.count += 1
        elif last:
            _add_plain(sheet, last, declarations, certain=False)


def _add_plain(sheet: Sheet, compound: re.Match[str], declarations: Mapping[str, str], *, certain: bool) -> None:
    tag = compound.group(1) or ""
    needed = frozenset(re.findall(r"[.#][\w-]+", compound.group(2)))
    if tag == "*" and not needed:
        return
    tag = tag.strip("*")
    rules = sheet.rules.setdefault(min(needed) if needed else tag, [])
    if len(rules) < MAX_RULES_OF_A_NAME:
        rules.append((tag, needed, certain, declarations))
        sheet.count += 1


@lru_cache(maxsize=2048)
def _inline(text: str) -> Mapping[str, str]:
    """Style attributes repeat by the hundred in one mail and from mail to mail."""
    return parse_declarations(text.lower())


def parse_declarations(text: str) -> dict[str, str]:
    """Property to value, lower case; `background-color` counts as `background`; an important value says so."""
    if "/*" in text:
        text = _CSS_COMMENT.sub("", text)
    if "\\" in text:
        text = _CSS_ESCAPE.sub(_unescaped, text)
    found: dict[str, str] = {}
    for name, value in _DECLARATION.findall(text):
        name = "background" if name in ("background-color", "background-image") else name
        merge(found, {name: value.strip()})
    return found


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
    merge(said, sheet_says)
    if inline:
        merge(said, _inline(inline[:2000]))
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
        colour=text_colour(said.get("-webkit-text-fill-color") or said.get("color", "")),
        background=background_colour(said["background"]) if "background" in said else None,
        pre=None if not white_space else white_space.startswith(("pre", "break-spaces")),
    )


def _is_gone(said: Mapping[str, str]) -> bool:
    if said.get("display", "").startswith("none") or said.get("content-visibility", "").startswith("hidden"):
        return True
    if any(_below(said.get(p, ""), 0.06) for p in ("opacity", "zoom")):
        return True
    faded = said.get("filter", "").partition("opacity(")[2]
    if _below(faded, 0.06) or _NO_AREA.match(_packed(said.get("clip-path", ""))):
        return True
    if _moved_away(said.get("transform", "")):
        return True
    if any(said.get(p, "").startswith(("hidden", "clip")) for p in ("overflow", "overflow-y", "overflow-x")) and any(
        _below(said.get(p, ""), 1.5, of_parent="width" in p) for p in ("height", "max-height", "width", "max-width")
    ):
        return True
    if any(_px(said.get(p, "")) < OFF_SCREEN_PX for p in ("text-indent", "margin-left", "margin-top")):
        return True
    if not said.get("position", "").startswith(("absolute", "fixed", "relative")):
        return False
    off = any(_px(said.get(p, "")) < OFF_SCREEN_PX for p in ("left", "top", "right", "bottom"))
    return off or _NO_AREA.match(_packed(said.get("clip", ""))) is not None


def _packed(shape: str) -> str:
    return re.sub(r"[\s,]+|px", "", shape)


def _moved_away(transform: str) -> bool:
    if transform.startswith(("scale(0)", "scale(0,", "scalex(0)", "scaley(0)")):
        return True
    found = _TRANSLATE.search(transform)
    return found is not None and any(_px(part or "") < OFF_SCREEN_PX for part in found.groups())


def _shrunk(said: Mapping[str, str]) -> bool | None:
    size = said.get("font-size", "")
    if not size and (font := said.get("font", "")):
        found = _FONT_SIZE.search(font)
        size = found.group() if found else ""
    found = _LENGTH.match(size)
    if found is None:
        return False if size and not size.startswith(("inherit", "unset")) else None
    number, unit = abs(float(found.group(1))), found.group(2) or "px"
    if unit in _RELATIVE:
        small = number < (8 if unit == "%" else 0.08)
        # relative to a parent of size nought it is nought; only rem is free of the parent
        return True if small else False if unit == "rem" else None
    if not found.group(2) and 1 < number < 2:
        return None  # a factor without its unit: no length at all
    return number <= 2.0


def _below(value: str, limit: float, *, of_parent: bool = False) -> bool:
    """Is this length or factor next to nothing? A percentage counts as one only `of_parent`, and if it is nought."""
    found = _LENGTH.match(value)
    if found is None or found.group(2) in ("em", "rem", "in", "cm"):
        return False
    number = abs(float(found.group(1)))
    if found.group(2) == "%" and limit > 1:
        return of_parent and number == 0
    return number < (limit * 100 if found.group(2) == "%" else limit)


def _px(value: str) -> float:
    found = _LENGTH.match(value)
    if found is None:
        return 0.0
    scale = {"em": 16.0, "rem": 16.0, "%": 5.0, "in": 96.0, "vw": 10.0, "vh": 10.0, "cm": 38.0}
    return float(found.group(1)) * scale.get(found.group(2) or "px", 1.0)
