"""One body of a message from its bytes to its words: the better of its plain text and its HTML."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from triage.domain.mail import Part, PartBytes
from triage.prepare.charset import codec_of, decode
from triage.prepare.choose import Body
from triage.prepare.clean import tidy, visible
from triage.prepare.html import Rendered, render
from triage.prepare.links import remove_links
from triage.prepare.plain import has_entities, looks_like_html, unflow
from triage.prepare.quotes import trim
from triage.prepare.special import calendar_text, without_armour
from triage.prepare.transfer import decode_transfer
from triage.prepare.wide import WIDE

MAX_ENCODED = 256 * 1024
"""No more octets of one part are looked at, however many are handed in."""

STUB_CHARS = 400
SHARE_THAT_AGREES = 0.5
UNSEEN_WORDS = 4
"""A plain text with so many words that the whole HTML lacks has room for an instruction that no person reads."""

MAX_CONTROLS = 0.05
"""Share of control characters in a text; random bytes have twice as many."""

_CONTROLS = bytes((*range(1, 9), *range(14, 27), *range(28, 32)))
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE)
_XML_CHARSET = re.compile(rb"\A\s*<\?xml[^>]{0,100}encoding\s*=\s*[\"']([\w.:-]{2,40})", re.IGNORECASE)
_STUB = re.compile(
    r"browser|html|(?:view|read|see) (?:it|this|the|full|complete)[^.\n]{0,60}(?:online|web|click|link)"
    r"|navegador|im Browser|navigateur|naviga?dor|браузер",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True, slots=True)
class Words:
    """The text of one body and what was found and removed on the way; `bare` as in quotes.Trimmed."""

    text: str = ""
    links: tuple[str, ...] = ()
    all_links: tuple[str, ...] = ()
    hidden_chars: int = 0
    html_chars: int = 0
    images: int = 0
    quoted_lines: int = 0
    bare: bool = False
    warnings: frozenset[str] = field(default_factory=frozenset)


def read_body(body: Body, texts: Mapping[str, PartBytes], subject: str) -> Words:
    """The words of one body. A part that was not fetched is as good as missing."""
    plain_bytes = texts.get(body.plain.path) if body.plain else None
    html_bytes = texts.get(body.html.path) if body.html else None
    warnings: set[str] = set()
    smuggled = html_chars = 0
    plain = html = Words()
    if body.plain and plain_bytes:
        text, count = _text_of(body.plain, plain_bytes, warnings)
        smuggled += count
        if body.kind == "calendar":
            warnings.add("calendar")
            plain = _words(tidy(calendar_text(text)), subject)
        elif looks_like_html(text):
            html_chars += len(text)
            plain = _from_html(render(text), subject)
        else:
            if has_entities(text) and "<" not in text:
                text = visible(render(text).text)[0]
            plain = _words(unflow(text, body.plain.params), subject)
    if body.html and html_bytes:
        text, count = _text_of(body.html, html_bytes, warnings)
        smuggled += count
        html_chars += len(text)
        html = _from_html(render(text), subject)
    chosen, differ = _better(plain, html, cut=bool(html_bytes and html_bytes.cut))
    if differ:
        warnings.add("parts_differ")
    return Words(
        text=chosen.text,
        links=chosen.links,
        all_links=html.links or plain.links,
        hidden_chars=smuggled + plain.hidden_chars + html.hidden_chars,
        html_chars=html_chars,
        images=plain.images + html.images,
        quoted_lines=chosen.quoted_lines,
        bare=chosen.bare,
        warnings=frozenset(warnings) | chosen.warnings,
    )


def _text_of(part: Part, fetched: PartBytes, warnings: set[str]) -> tuple[str, int]:
    data = decode_transfer(fetched.data[:MAX_ENCODED], part.encoding)
    label = part.params.get("charset", "")
    if _is_binary(data[:4096]) and not data.startswith(_WIDE_MARKS) and codec_of(label) not in WIDE:
        warnings.add("bad_charset")
        return "", 0
    if codec_of(label) is None and (found := _META_CHARSET.search(data, 0, 4096) or _XML_CHARSET.match(data)):
        label = found.group(1).decode("ascii")
        label = "utf-8" if label.lower().startswith("utf-16") else label  # a document that could be read so far is none
    text, doubtful = decode(data, label)
    if doubtful:
        warnings.add("bad_charset")
    return visible(text)


def _is_binary(sample: bytes) -> bool:
    """Is this a file that only claims to be text? NUL and ESC are no sign: UTF-16 and ISO-2022 have them."""
    return len(sample) - len(sample.translate(None, _CONTROLS)) > MAX_CONTROLS * max(len(sample), 100)


def _from_html(rendered: Rendered, subject: str) -> Words:
    text, smuggled = visible(rendered.text)
    words = _words(text, subject)
    return Words(
        text=words.text,
        links=(*rendered.links, *words.links),
        hidden_chars=rendered.hidden_chars + smuggled,
        images=rendered.images,
        quoted_lines=words.quoted_lines,
        bare=words.bare,
        warnings=words.warnings,
    )


def _words(text: str, subject: str) -> Words:
    """History, armour and links out of a text that is otherwise ready."""
    trimmed = trim(text, subject)
    bare, encrypted = without_armour(trimmed.text)
    unlinked = remove_links(bare)
    warnings = frozenset({"encrypted"}) if encrypted else frozenset()
    return Words(
        tidy(unlinked.text), unlinked.links, quoted_lines=trimmed.quoted_lines, bare=trimmed.bare, warnings=warnings
    )


def _better(plain: Words, html: Words, *, cut: bool) -> tuple[Words, bool]:
    """The text to read, and whether the two parts say different things (then the HTML, which people see, counts)."""
    if not html.text:
        return (plain, False) if plain.text or not html.links else (html, False)
    if not plain.text:
        return html, False
    short = len(plain.text) < STUB_CHARS and len(plain.text) * 2 < len(html.text)
    if short and (_STUB.search(plain.text) or len(plain.text) * 4 < len(html.text)):
        return html, False
    said = set(_WORD.findall(plain.text.casefold()))
    shown = set(_WORD.findall(html.text.casefold()))
    if said and not cut and len(said & shown) < SHARE_THAT_AGREES * len(said):
        return html, True
    if not cut and len(said - shown) >= UNSEEN_WORDS:
        return html, False
    return (html, False) if len(plain.text) * 3 < len(html.text) else (plain, False)
