"""Bodies that are no text: encrypted, calendar, winmail.dat, nothing at all; each named in a word."""

from __future__ import annotations

import re
from dataclasses import dataclass

from triage.domain.mail import Part
from triage.prepare.choose import is_attachment, leaves
from triage.prepare.clean import one_line

_PGP_SECRET = re.compile(r"-----BEGIN PGP MESSAGE-----.*?(?:-----END PGP MESSAGE-----|\Z)", re.DOTALL)
_PGP_SIGNED = re.compile(r"-----BEGIN PGP SIGNED MESSAGE-----\n(?:[A-Z][\w-]+: [^\n]*\n)*")
_PGP_REST = re.compile(
    r"-----BEGIN PGP (?:SIGNATURE|PUBLIC KEY BLOCK)-----.*?(?:-----END PGP (?:SIGNATURE|PUBLIC KEY BLOCK)-----|\Z)",
    re.DOTALL,
)
_BLOB = re.compile(r"(?:^[A-Za-z0-9+/]{60,78}$\n?){4,}(?:^[A-Za-z0-9+/]{1,78}={0,2}$\n?)?", re.MULTILINE)
_UUENCODED = re.compile(r"^begin [0-7]{3} [^\n]{1,200}\n(?:[!-`]{1,62}\n){2,}(?:`?\n?end\b)?", re.MULTILINE)
_ICS_FIELDS = {"SUMMARY": "", "DTSTART": "Start", "DTEND": "End", "LOCATION": "Location", "DESCRIPTION": ""}
_ICS_LINE = re.compile(r"([A-Z-]{3,30})(?:;[^:\n]{0,300})?:(.*)")
_ICS_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d*(Z?))?")
_ENCRYPTED_TYPES = frozenset({"pkcs7-mime", "x-pkcs7-mime", "pgp-encrypted"})


@dataclass(frozen=True, slots=True)
class Facts:
    """What the structure alone says of a message."""

    attachments: tuple[str, ...]  # names, "" for one without
    encrypted: bool
    tnef: bool
    has_html: bool
    html_size: int
    images: int


def facts_of(structure: Part) -> Facts:
    """Attachments, encryption and HTML of a message; parts of attached messages do not count."""
    names: list[str] = []
    encrypted = tnef = False
    html = images = 0
    has_html = False
    for part, around in leaves(structure):
        if any(p.type == "message" for p in around):
            continue
        encrypted |= part.subtype in _ENCRYPTED_TYPES or any(p.subtype == "encrypted" for p in around)
        tnef |= part.subtype in ("ms-tnef", "vnd.ms-tnef") or part.filename.lower() == "winmail.dat"
        if part.mime_type == "text/html" and part.disposition != "attachment":
            has_html, html = True, html + part.size
        images += part.type == "image"
        if is_attachment(part, around):
            names.append(part.filename)
    return Facts(tuple(names), encrypted, tnef, has_html, html, images)


def without_armour(text: str) -> tuple[str, bool]:
    """A text without PGP armour and encoded files; whether something encrypted was in it."""
    encrypted = False
    if "-----BEGIN PGP" in text:
        text, count = _PGP_SECRET.subn("[encrypted message]", text)
        encrypted = count > 0
        text = _PGP_REST.sub("", _PGP_SIGNED.sub("", text))
    if "\nbegin " in text or text.startswith("begin "):
        text = _UUENCODED.sub("[encoded file]\n", text)
    return _BLOB.sub("[encoded data]\n", text), encrypted


def name_of(facts: Facts) -> tuple[str, str]:
    """The word that stands for a body without text, and the warning code that goes with it."""
    if facts.encrypted:
        return "[encrypted or sealed message (S/MIME or PGP)]", "encrypted"
    if facts.tnef:
        return "[Outlook message in winmail.dat, no readable text]", "tnef"
    if facts.attachments:
        names = ", ".join(one_line(name, 80) for name in facts.attachments[:5] if name)
        return f"[no text, attached: {names or len(facts.attachments)}]", "empty"
    return ("[no text, only an image]" if facts.images else "[empty message]"), "empty"


def calendar_text(text: str) -> str:
    """An iCalendar object (RFC 5545) in words: what it asks, subject, time, place, description."""
    method = re.search(r"^METHOD:([A-Z]{3,20})", text, re.MULTILINE)
    said = {"REQUEST": "invitation", "CANCEL": "cancellation", "REPLY": "reply"}.get(method.group(1) if method else "")
    lines = [f"[calendar {said or 'entry'}]"]
    unfolded = re.sub(r"\n[ \t]", "", text[:64_000])
    event = unfolded.partition("BEGIN:VEVENT")[2].partition("BEGIN:VALARM")[0] or unfolded
    seen: set[str] = set()
    for line in event.split("\n"):
        found = _ICS_LINE.match(line)
        if found is None or found.group(1) not in _ICS_FIELDS or found.group(1) in seen:
            continue
        seen.add(found.group(1))
        value = re.sub(r"\\([nN,;\\])", lambda m: {"n": "\n", "N": "\n"}.get(m.group(1), m.group(1)), found.group(2))
        if time := _ICS_TIME.match(value) if found.group(1).startswith("DT") else None:
            year, month, day, hour, minute, zulu = time.groups()
            value = f"{year}-{month}-{day}" + (f" {hour}:{minute}{' UTC' if zulu else ''}" if hour else "")
        label = _ICS_FIELDS[found.group(1)]
        if value.strip():
            lines.append(f"{label}: {value.strip()}" if label else value.strip())
    return "\n".join(lines)
