"""Style sheets of a mail: rules that hold for every reader, and which of them an element matches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from triage.prepare.declarations import merge, parse_declarations
from triage.prepare.media import holds_everywhere

MAX_SHEET = 256 * 1024
MAX_RULES = 2000
MAX_RULES_OF_A_NAME = 50
MAX_PICKED = 60
MAX_COMPOUNDS = 4
MAX_NESTED = 4
"""Of selectors that a tree must be asked for: how many, how many compounds one may have, how many of a nested list."""

_WANTED = re.compile(
    r"display|visib|opacity|font|color|background|height|width|indent|position|clip|transform|white-sp|filter|zoom"
    r"|mask|scale|translate|rotate|spacing|margin|padding|inset|security|size|\\",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)|<!--|-->", re.DOTALL)
_STRING = re.compile(r"\"[^\"\n]*[{};][^\"\n]*\"|'[^'\n]*[{};][^'\n]*'")
_BRACE = re.compile(r"[{}]")
_NESTED_BRACKETS = r"\((?:[^()]|\([^()]*\))*\)"
_SELECTOR = re.compile(rf"(?:[^,()\[\]\"']|{_NESTED_BRACKETS}|\[[^\[\]]*\])+")
_SIMPLE = re.compile(r"([a-z][a-z0-9]*|\*)?((?:[.#][\w-]+)*)")
_PLAIN_PSEUDO = (
    r":(?:first-child|last-child|only-child|first-of-type|last-of-type|only-of-type|empty|link|any-link|root)(?![\w(-])"
)
_CHEAP = re.compile(
    rf"(?:[\w\s.#>+*-]|\\.|\[[^\[\]]*\]|:(?:not|is|where|matches|any)\([\w\s.#,*\[\]=\"'-]*\)|{_PLAIN_PSEUDO})*"
    r"(?:~[^~:]*)?"
)
"""Selectors that the HTML library answers in time linear in the tree."""
_COSTLY = re.compile(rf"{_CHEAP.pattern}:nth-[\w-]+\([^()]*\){_CHEAP.pattern}")
"""Selectors that take time with the square of an element's children; `:has` and chains of `~` are worse."""
_ATTRIBUTE = re.compile(r"\[[^\[\]]*\]")
_IDS, _CLASSES, _TAGS = re.compile("#"), re.compile(r"\.|\[|(?<!:):(?!:)"), re.compile(r"(?:^|[\s>+~(,])[a-zA-Z]")

Rank = tuple[int, int, int, int]
"""How much a selector outweighs others (Selectors 4, 17), then its place in the sheets."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One selector and what it says; `certain` if the selector is all that is asked of the element."""

    tag: str
    needed: frozenset[str]
    certain: bool
    says: Mapping[str, str]
    rank: Rank


@dataclass(frozen=True, slots=True)
class Picked:
    """A rule whose selector says more than one element tells of itself: who has the tree looks it up."""

    selector: str
    says: Mapping[str, str]
    rank: Rank
    costly: bool


@dataclass(slots=True)
class Sheet:
    """Rules of a document's style elements by what their last compound names."""

    rules: dict[str, list[Rule]] = field(default_factory=dict)
    picked: list[Picked] = field(default_factory=list)
    count: int = 0

    def matching(self, tag: str, names: frozenset[str], picked: tuple[int, ...]) -> dict[str, str]:
        """The declarations for an element, the weightiest last; `names` holds its `.class` and `#id` names."""
        hits: list[tuple[Rank, Mapping[str, str]]] = [(self.picked[n].rank, self.picked[n].says) for n in picked]
        for key in ("*", tag, *names):
            for rule in self.rules.get(key, ()):
                if rule.tag in ("", tag) and rule.needed <= names:
                    hits.append((rule.rank, rule.says if rule.certain else _unknown(rule.says)))
        found: dict[str, str] = {}
        for _, says in sorted(hits, key=lambda hit: hit[0]):
            merge(found, says)
        return found


def _unknown(says: Mapping[str, str]) -> dict[str, str]:
    """What a rule that may or may not hold leaves open."""
    return {name: "unknown" for name in ("color", "background", "font-size") if name in says}


def parse_sheet(css: str, sheet: Sheet) -> None:
    """Add the rules of one style element, also nested ones. What holds only sometimes is left out."""
    plain = _STRING.sub('""', _COMMENT.sub(" ", css[:MAX_SHEET]))
    for prelude, text in islice(_rules(plain), MAX_RULES):
        if _WANTED.search(text):
            _add_rule(sheet, prelude, parse_declarations(text))
        if sheet.count >= MAX_RULES:
            return


def _rules(css: str) -> Iterator[tuple[str, str]]:
    """Selector lists and declarations in order. Inside an at-rule that does not always hold there are none."""
    around: list[str | None] = []  # the selectors that nested ones add to; None where nothing holds
    start = 0
    for brace in _BRACE.finditer(css):
        text = css[start : brace.start()]
        start = brace.end()
        within = around[-1] if around else ""
        said, _, prelude = text.rpartition(";") if brace.group() == "{" else (text, "", "")
        if within and said.strip():
            yield within, said
        if brace.group() == "}":
            if around:
                around.pop()
        elif len(around) < 8:
            around.append(None if within is None else _inside(within, prelude.strip()))
        else:
            return


def _inside(within: str, prelude: str) -> str | None:
    if prelude.startswith("@"):
        return within if holds_everywhere(prelude) else None
    if not within:
        return prelude
    nested = (
        inner.replace("&", outer) if "&" in inner else f"{outer} {inner}"
        for outer in selectors(within, MAX_NESTED)
        for inner in selectors(prelude, MAX_NESTED)
    )
    return ",".join(nested)


def selectors(prelude: str, limit: int = 50) -> list[str]:
    """The selectors of a list; commas inside brackets part nothing."""
    return [s for found in _SELECTOR.findall(prelude[:4000])[:limit] if (s := found.strip())]


def _add_rule(sheet: Sheet, prelude: str, says: Mapping[str, str]) -> None:
    for selector in selectors(prelude):
        rank = _rank(selector, sheet.count)
        parts = selector.replace(">", " ").replace("+", " ").replace("~", " ").split()
        last = _SIMPLE.fullmatch(parts[-1].lower()) if parts else None
        cheap = _CHEAP.fullmatch(selector)
        costly = not cheap and _COSTLY.fullmatch(selector) is not None and selector.count("~") < 2
        if last and len(parts) == 1:
            _add_plain(sheet, last, says, rank, certain=True)
        elif len(sheet.picked) < MAX_PICKED and len(parts) <= MAX_COMPOUNDS and (cheap or costly):
            sheet.picked.append(Picked(selector, says, rank, costly))
            sheet.count += 1
        elif last:
            _add_plain(sheet, last, says, rank, certain=False)


def _rank(selector: str, place: int) -> Rank:
    bare = _ATTRIBUTE.sub("[", selector)
    return len(_IDS.findall(bare)), len(_CLASSES.findall(bare)), len(_TAGS.findall(bare)), place


def _add_plain(sheet: Sheet, compound: re.Match[str], says: Mapping[str, str], rank: Rank, *, certain: bool) -> None:
    tag = compound.group(1) or ""
    needed = frozenset(re.findall(r"[.#][\w-]+", compound.group(2)))
    if not tag and not needed:
        return
    key = min(needed) if needed else tag
    rules = sheet.rules.setdefault(key, [])
    if len(rules) < MAX_RULES_OF_A_NAME:
        rules.append(Rule(tag.strip("*"), needed, certain, says, rank))
        sheet.count += 1
