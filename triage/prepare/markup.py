"""Markup bounded and mended before the HTML library sees it.

The library builds the tree a browser would build. Three kinds of markup make that explode: deep nesting and thousands
of attributes on one tag (time grows with the square), and unclosed formatting elements, which every later block opens
anew (64 KB became 12 million nodes). so they are bounded here first.
"""

from __future__ import annotations

import re

MAX_DEPTH = 200
MAX_FORMATTING = 16
MAX_ATTRIBUTES = 200
LONG_TAG = 2000

_FORMATTING = frozenset({
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
})  # fmt: skip
_NO_DEPTH = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
    "p", "li", "td", "th", "tr", "dt", "dd", "option", "tbody", "thead", "tfoot", "html", "head", "body",
})  # fmt: skip
_TAG_NAME = re.compile(r"<(/?[a-zA-Z][^\s/>]*)")
_LONG_TAG = re.compile(r"""<[a-zA-Z][^\s/>]*+(?:[^"'>]++|"[^"]*+"|'[^']*+')*""")
_RAW_TEXT_END = re.compile(r"</head|<body|\n\s{0,80}\n|\Z", re.IGNORECASE)
_RAW_TEXT = ("style", "script", "title", "textarea", "noscript", "xmp")


def bounded(html: str) -> str:
    """Markup that shows the same text and that any parser builds in linear time and space."""
    return _flatten(_thin(html))


def mend(html: str) -> str:
    """Close what swallowed everything behind it: an element of raw text or a comment without an end."""
    for tag in _RAW_TEXT:
        lower = html.lower()
        start = lower.find(f"<{tag}", lower.rfind(f"</{tag}") + 1)
        if start >= 0 and len(lower) == len(html):
            end = _RAW_TEXT_END.search(html, start)
            html = html[:start] + html[end.start() if end else len(html) :]
    start = html.rfind("<!--")
    return html[:start] + html[start + 4 :] if start >= 0 and "-->" not in html[start:] else html


def _flatten(html: str) -> str:
    """Start tags beyond a sane depth become `<br`, which holds nothing: their text stays, their style is lost."""
    names = _TAG_NAME.findall(html)
    if len(names) < MAX_FORMATTING:
        return html
    opened: dict[str, int] = {}
    depth = formatting = 0
    excess: set[int] = set()
    for n, raw in enumerate(names):
        name = raw.lower()
        if name[0] == "/":
            name = name[1:]
            if opened.get(name):
                opened[name] -= 1
                depth -= 1
                formatting -= name in _FORMATTING
        elif name not in _NO_DEPTH:
            if depth >= MAX_DEPTH or (formatting >= MAX_FORMATTING and name in _FORMATTING):
                excess.add(n)
                continue
            opened[name] = opened.get(name, 0) + 1
            depth += 1
            formatting += name in _FORMATTING
    if not excess:
        return html
    order = iter(range(len(names)))
    return _TAG_NAME.sub(lambda m: "<wbr" if next(order) in excess else m.group(), html)


def _thin(html: str) -> str:
    """Take the attributes off a tag that has hundreds of them."""
    if all(len(stretch) < LONG_TAG for stretch in html.split("<")):
        return html
    return _LONG_TAG.sub(
        lambda m: (
            m.group(0)
            if len(m.group(0)) < LONG_TAG or len(m.group(0).replace("/", " ").split()) <= MAX_ATTRIBUTES
            else m.group(0).split(None, 1)[0]
        ),
        html,
    )
