"""Which parts of a message are its text, and how much of each is worth fetching, from the structure alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from triage.domain.mail import Part

MAX_PARTS = 300
MAX_DEPTH = 40
MAX_BODIES = 4
MAX_NUMBER = 2**31

PLAIN_CAP = 32 * 1024
HTML_CAP = 64 * 1024
BESIDE_CAP = 24 * 1024
"""Octets of text; an encoded part may have as many more as base64 with its line ends adds. An HTML that stands beside a
plain text which is more than a stub need only show whether it says more."""

EMPTY = 5
TINY = 256
STUB = 512
STUB_RATIO = 16
SMALL_HTML = 8 * 1024

_PLAIN = frozenset({"plain", "markdown", "x-markdown", "enriched", "richtext", "x-plain"})
_HTML = frozenset({"html", "x-html"})


@dataclass(frozen=True, slots=True)
class Body:
    """One body of a message: a text, the same as HTML, or both; `kind` is own, calendar or attached."""

    plain: Part | None = None
    html: Part | None = None
    kind: str = "own"

    @property
    def size(self) -> int:
        return sum(p.size for p in (self.plain, self.html) if p is not None)


def leaves(structure: Part) -> Iterator[tuple[Part, tuple[Part, ...]]]:
    """Every leaf and attached message with the parts around it, in order; bounded, however absurd the structure."""
    stack: list[tuple[Part, tuple[Part, ...]]] = [(structure, ())]
    for _ in range(MAX_PARTS):
        if not stack:
            return
        part, around = stack.pop()
        if part.children and len(around) < MAX_DEPTH:
            if part.type == "message":
                yield part, around
            stack.extend((child, (*around, part)) for child in reversed(part.children[:MAX_PARTS]))
        else:
            yield part, around


def bodies(structure: Part) -> tuple[Body, ...]:
    """The bodies of a message in order of reading; calendar and attached messages only where nothing else speaks."""
    own: list[Body] = []
    named: list[Body] = []
    attached: list[Body] = []
    calendar: list[Body] = []
    alternatives: dict[tuple[int, int], int] = {}
    for part, around in leaves(structure):
        if part.type != "text":
            continue
        inside = any(p.type == "message" for p in around)
        if not inside and part.subtype == "calendar":
            calendar.append(Body(plain=part, kind="calendar"))
        if _is_file(part, around) or _is_aside(part, around):
            continue
        wrapper = around[-1].encoding if around and around[-1].type == "message" else ""
        if wrapper.startswith(("base64", "quoted")) and part.encoding in ("7bit", "8bit"):
            part = replace(
                part, encoding=wrapper
            )  # against RFC 2046, 5.2.1: the attached message as a whole is encoded
        html = part.subtype in _HTML
        if not html and part.subtype not in _PLAIN:
            continue
        target = attached if inside else named if part.filename and around else own
        body = Body(html=part) if html else Body(plain=part)
        if inside:
            body = Body(body.plain, body.html, "attached")
        group = next((id(p) for p in reversed(around) if p.subtype == "alternative"), 0)
        place = alternatives.get((group, id(target)), -1) if group else -1
        if place < 0:
            alternatives[group, id(target)] = len(target)
            target.append(body)
        else:
            before = target[place]
            target[place] = Body(_fuller(before.plain, body.plain), body.html or before.html, before.kind)
    found = own or named
    speaks = sum(b.size for b in found)
    if speaks < TINY:
        found = [*found, *calendar[:1], *attached[:1]]
    return tuple(found[:MAX_BODIES])


def _fuller(one: Part | None, other: Part | None) -> Part | None:
    """The first of two alternatives that has anything in it."""
    return other if one is None or (other is not None and one.size < EMPTY <= other.size) else one


def choose_parts(structure: Part) -> tuple[tuple[Part, int], ...]:
    """The text parts to fetch, and how many of their encoded octets at most. Attachments are never among them.

    The HTML beside a plain text is fetched where it may say more: no real text beside it, a text far too small for
    it, or an HTML small enough to look into for hidden text.
    """
    chosen: list[tuple[Part, int]] = []
    for body in bodies(structure):
        plain, html = body.plain, body.html
        if plain is not None:
            chosen.append((plain, _cap(plain, PLAIN_CAP)))
        if html is not None and (plain is None or _html_may_say_more(plain, html)):
            chosen.append((html, _cap(html, HTML_CAP if plain is None or plain.size < STUB else BESIDE_CAP)))
    return tuple(chosen)


def _html_may_say_more(plain: Part, html: Part) -> bool:
    return plain.size < TINY or plain.size * STUB_RATIO < html.size or html.size <= SMALL_HTML


def _cap(part: Part, octets: int) -> int:
    whole = octets * 37 // 27 if part.encoding.startswith("base64") else octets
    return min(whole, part.size) if 0 < part.size < MAX_NUMBER else whole


def is_attachment(part: Part, around: tuple[Part, ...]) -> bool:
    """Does a reader see this leaf as a file?"""
    if part.type == "text" and part.subtype in _PLAIN | _HTML | {"calendar"} and not part.filename:
        return part.disposition == "attachment" and bool(around)
    if part.mime_type in ("application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"):
        return False
    return not (part.type == "image" and part.disposition != "attachment" and _in_related(around))


def _is_file(part: Part, around: tuple[Part, ...]) -> bool:
    """A text that was attached; the only part of a message is its text, whatever it says of itself."""
    in_alternative = bool(around) and around[-1].subtype == "alternative"
    return part.disposition == "attachment" and bool(around) and not (in_alternative and not part.filename)


def _is_aside(part: Part, around: tuple[Part, ...]) -> bool:
    """A text that is no body: behind the first part of a signed message or a report, or within an encrypted one."""
    for n, parent in enumerate(around):
        child = around[n + 1] if n + 1 < len(around) else part
        first = bool(parent.children) and parent.children[0] is child
        if parent.subtype == "encrypted" or (parent.subtype in ("signed", "report") and not first):
            return True
    return False


def _in_related(around: tuple[Part, ...]) -> bool:
    return any(p.subtype == "related" for p in around)
