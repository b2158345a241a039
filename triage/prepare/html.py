"""HTML to the text that a person sees. The only file that imports the HTML library, which parses as browsers do."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from triage.prepare.colour import BLACK, CURRENT, FAINT, WHITE, Colour, same
from triage.prepare.declarations import variables
from triage.prepare.markup import bounded, mend
from triage.prepare.media import everywhere
from triage.prepare.sheet import Sheet, parse_sheet
from triage.prepare.style import MEDIUM_PX, NO_EFFECT, Effect, effect_of

MAX_CHARS = 100_000
MAX_NODES = 150_000
MAX_LINKS = 2_000
MAX_PICKS = 120_000
"""Nodes times selectors that the tree is searched for."""
MAX_COSTLY_PICKS = 10_000_000
"""The same for selectors that take time with the square of the nodes."""
SMALLEST_PX = 2.0
"""A font of this size is a row of dots."""

_BLOCK = frozenset({
    "address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd", "details", "dialog", "dir",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hr", "legend", "li", "main", "menu", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody",
    "tfoot", "thead", "tr", "ul",
})  # fmt: skip
_UNSEEN = frozenset({
    "head", "script", "style", "template", "noscript", "title", "iframe", "object", "embed", "audio", "video",
    "canvas", "svg", "math", "select", "datalist", "noframes", "noembed", "meta", "link", "base", "rp",
})  # fmt: skip
_CELLS = frozenset(("td", "th"))
_QUOTE_CLASSES = re.compile(
    r"\b(?:gmail_attr|yahoo_quoted|protonmail_quote|tutanota_quote|moz-email-headers-table|zmail_extra|quotelevel)"
)
_SIGNATURE = re.compile(r"\b(?:gmail_signature|moz-signature|protonmail_signature_block-user)\b")
_SPACES = re.compile(r"[ \t\r\n\f]+")
_PADDING = re.compile("[\\s\u00ad\u034f\u115f\u1160\u200b-\u200f\u2060\u2800\ufeff]+")
_PROSE_COMMENT = re.compile(r"\s*+(?!\[if|\[endif|<!)[^<>{}]{40,}+\Z")
_MARKUP = re.compile(r"<[a-zA-Z!/]")


@dataclass(frozen=True, slots=True)
class Rendered:
    """The visible text of an HTML body, quoted blocks prefixed with `> `, and what else was found in it."""

    text: str = ""
    hidden_chars: int = 0
    links: tuple[str, ...] = ()
    images: int = 0


@dataclass(frozen=True, slots=True)
class _State:
    hidden: bool = False
    visible: bool = True
    font_px: float = MEDIUM_PX
    opacity: float = 1.0
    colour: Colour = BLACK
    background: Colour = WHITE
    pre: bool = False
    quoted: bool = False
    shown: bool = True


@dataclass(frozen=True, slots=True)
class _Styles:
    """What styles a document has, and what they were found to do: elements repeat."""

    sheet: Sheet
    picked: Mapping[int, tuple[int, ...]]
    variables: Mapping[str, str]
    effects: dict[tuple[object, ...], Effect] = field(default_factory=dict)


@dataclass(slots=True)
class _Page:
    """What a walk gathers."""

    lines: list[str] = field(default_factory=list)
    line: list[str] = field(default_factory=list)
    quoted: bool = False
    hidden: int = 0
    links: list[str] = field(default_factory=list)
    images: int = 0

    def put(self, text: str, quoted: bool) -> None:
        if quoted != self.quoted:
            self.end_line()
            self.quoted = quoted
        self.line.append(text)

    def end_line(self) -> None:
        if self.line:
            text = "".join(self.line)
            self.lines.append(f"> {text}" if self.quoted and text.strip() else text)
            self.line.clear()

    def text(self) -> str:
        self.end_line()
        return "\n".join(self.lines)


def render(html: str) -> Rendered:
    """Visible text of an HTML document or fragment of any quality. Time is linear in its length; never raises."""
    html = html[:MAX_CHARS]
    if not _MARKUP.search(html):
        return Rendered(_entities(html))
    rendered = _render(html)
    if rendered.text.strip() or rendered.images:
        return rendered
    mended = mend(html)
    return _render(mended) if mended != html else rendered


def hrefs(html: str) -> tuple[str, ...]:
    """Where the links of an HTML text lead, whole and in order; for whoever must take a link, not read a mail."""
    tree = LexborHTMLParser(bounded(html[:MAX_CHARS]))
    targets = (node.attributes.get("href") for node in tree.css("a[href], area[href]")[:MAX_LINKS])
    return tuple(target for target in targets if target)


def _entities(text: str) -> str:
    """A text that only claims to be HTML keeps its lines."""
    node = LexborHTMLParser("<pre>\n" + text).css_first("pre") if "&" in text else None
    return (node.text(deep=False) if node else text) or ""


def _render(html: str) -> Rendered:
    tree = LexborHTMLParser(bounded(html))
    sheet = Sheet()
    for node in tree.tags("style")[:50]:
        if everywhere(node.attributes.get("media") or ""):
            parse_sheet(node.text(deep=True) or "", sheet)
    page = _Page()
    first = tree.root
    while first is not None and first.prev is not None:
        first = first.prev  # comments may stand before the document
    styles = _Styles(sheet, _picked(tree, sheet, html.count("<") or 1), variables(html) if "var(" in html else {})
    _walk(first, styles, page)
    return Rendered(page.text(), page.hidden, tuple(page.links), page.images)


def _picked(tree: LexborHTMLParser, sheet: Sheet, tags: int) -> dict[int, tuple[int, ...]]:
    """Which rules of `sheet.picked` hold for which nodes. A selector that the library cannot read holds for none."""
    picked: dict[int, tuple[int, ...]] = {}
    costly = MAX_COSTLY_PICKS // tags**2
    for n, rule in enumerate(sheet.picked[: MAX_PICKS // tags]):
        costly -= rule.costly
        if rule.costly and costly < 0:
            continue
        try:
            nodes = tree.css(rule.selector)
        except SelectolaxError:
            continue
        for node in nodes:
            picked[node.mem_id] = (*picked.get(node.mem_id, ()), n)
    return picked


def _walk(node: LexborNode | None, styles: _Styles, page: _Page) -> None:
    """Every node once, in order, without recursion."""
    stack: list[tuple[LexborNode, str, _State]] = []
    state = _State()
    for _ in range(MAX_NODES):
        if node is None:
            break
        tag = node.tag or ""
        child: LexborNode | None = None
        inner = state
        if tag == "-text":
            _put_text(node.text_content or "", state, page)
        elif tag == "-comment" or tag == "_comment" or tag == "-em_comment":
            comment = node.comment_content or ""
            if _PROSE_COMMENT.match(comment):
                page.hidden += len(_PADDING.sub("", comment))
        elif tag not in _UNSEEN:
            inner = _enter(node, tag, state, styles, page)
            child = node.child
            if child is None:
                _leave(tag, page)
        if child is not None:
            stack.append((node, tag, state))
            node, state = child, inner
            continue
        following = node.next
        while following is None and stack:
            parent, parent_tag, outer = stack.pop()
            _leave(parent_tag, page)
            state = outer
            following = parent.next
        node = following


def _put_text(text: str, state: _State, page: _Page) -> None:
    if not state.shown:
        page.hidden += len(_PADDING.sub("", text))
        return
    if state.pre:
        first, *rest = text.replace("\r\n", "\n").split("\n")
        page.put(first, state.quoted)
        for line in rest:
            page.end_line()
            page.put(line, state.quoted)
        return
    words = text.split()
    if words:
        before, after = " " if text[0].isspace() else "", " " if text[-1].isspace() else ""
        page.put(f"{before}{' '.join(words)}{after}", state.quoted)
    elif page.line:
        page.put(" ", page.quoted)


def _enter(node: LexborNode, tag: str, state: _State, styles: _Styles, page: _Page) -> _State:
    attributes = node.attributes
    if tag in _BLOCK:
        page.end_line()
    elif tag in _CELLS and page.line:
        page.put(" ", page.quoted)
    if tag == "li" and state.shown:
        page.put("- ", state.quoted)
    if not attributes and not styles.sheet.count and tag not in ("pre", "textarea", "listing", "mark", "dialog"):
        return state
    class_ = attributes.get("class") or ""
    picked = styles.picked.get(node.mem_id, ()) if styles.picked else ()
    key = (tag, attributes.get("style"), class_, attributes.get("id"), attributes.get("bgcolor"),
           attributes.get("color"), attributes.get("text"), attributes.get("background"),
           "hidden" in attributes, "open" in attributes, "href" if attributes.get("href") else None,
           picked)  # fmt: skip
    effect = styles.effects.get(key)
    if effect is None:
        effect = styles.effects[key] = _effect(tag, class_, attributes, styles, picked)
    quoted = state.quoted or _starts_quote(tag, class_, attributes)
    pre = True if tag in ("pre", "textarea", "listing") and effect.pre is None else effect.pre
    inner = state
    if effect is not NO_EFFECT or quoted != state.quoted or pre is not None:
        inner = _next(state, effect, quoted, pre)
    if tag == "img":
        _image(attributes, inner, page)
    elif tag in ("a", "area") and attributes.get("href"):
        page.links.append((attributes["href"] or "")[:300])
    elif tag == "input" and (attributes.get("type") or "").lower() in ("submit", "button") and inner.shown:
        page.put(attributes.get("value") or "", inner.quoted)
    if class_ and inner.shown and _SIGNATURE.search(class_):
        page.end_line()
        page.put("-- ", inner.quoted)
        page.end_line()
    return inner


def _next(state: _State, effect: Effect, quoted: bool, pre: bool | None) -> _State:
    hidden = state.hidden or effect.gone
    visible = state.visible if effect.visible is None else effect.visible
    factor, more = effect.size or (1.0, 0.0)
    font_px = state.font_px * factor + more
    opacity = state.opacity * effect.opacity
    colour = state.colour if effect.colour is None else effect.colour
    background = state.background if effect.background is None else effect.background
    background = colour if background == CURRENT else background
    readable = font_px > SMALLEST_PX and opacity >= FAINT and not same(colour, background)
    shown = not hidden and visible and readable
    pre = state.pre if pre is None else pre
    return _State(hidden, visible, font_px, opacity, colour, background, pre, quoted, shown)


def _effect(
    tag: str, class_: str, attributes: Mapping[str, str | None], styles: _Styles, picked: tuple[int, ...]
) -> Effect:
    rules: dict[str, str] = {}
    if styles.sheet.count:
        names = {f".{c}" for c in class_.lower().split()[:20]}
        if attributes.get("id"):
            names.add(f"#{str(attributes['id']).lower()}")
        rules = styles.sheet.matching(tag, frozenset(names), picked)
    return effect_of(rules, attributes.get("style") or "", attributes, tag, styles.variables)


def _starts_quote(tag: str, class_: str, attributes: Mapping[str, str | None]) -> bool:
    """Old text as mail programs mark it; a bare blockquote is the author's own."""
    if tag == "blockquote" and ((attributes.get("type") or "").lower() == "cite" or attributes.get("cite")):
        return True
    if tag == "blockquote" and "gmail_quote" in class_:
        return True  # the div of that name also holds what was written between the quotes
    return bool(class_) and _QUOTE_CLASSES.search(class_) is not None


def _image(attributes: Mapping[str, str | None], state: _State, page: _Page) -> None:
    page.images += 1
    alt = (attributes.get("alt") or "").strip()
    dot = any((attributes.get(side) or "").strip().rstrip("px") in ("0", "1") for side in ("width", "height"))
    if alt and state.shown and not dot:
        page.put(f" {_SPACES.sub(' ', alt[:300])} ", state.quoted)


def _leave(tag: str, page: _Page) -> None:
    if tag in _BLOCK:
        page.end_line()
        if tag in ("p", "h1", "h2", "h3", "table", "ul", "ol"):
            page.lines.append("")
    elif tag in _CELLS and page.line:
        page.put(" ", page.quoted)
