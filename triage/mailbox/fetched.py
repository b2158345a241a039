"""FETCH answers as one value a message. One message that cannot be read costs that message a field, never the batch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from imapclient.datetime_util import parse_to_datetime

from triage.mailbox.answers import Reply
from triage.mailbox.atoms import values
from triage.mailbox.names import mailbox_name
from triage.mailbox.session import flag_text

_QUOTED = re.compile(rb'"(?:[^"\\]|\\.)*"')
_UID = re.compile(rb"[( ]UID (\d+)")
_FLAGS = re.compile(rb"[( ]FLAGS \(([^()]*)\)")
_MODSEQ = re.compile(rb"[( ]MODSEQ \((\d+)\)")
_SIZE = re.compile(rb"[( ]RFC822\.SIZE (\d+)")
_LITERAL_OF = re.compile(rb"(BODY\[[^\]]*\](?:<\d+>)?) \{\d+\}$")


@dataclass(frozen=True, slots=True)
class Fetched:
    """The data items of one message. `structure` is BODYSTRUCTURE as nested values, None if it could not be read."""

    uid: int
    flags: frozenset[str] | None = None
    labels: frozenset[str] = frozenset()
    modseq: int = 0
    size: int = 0
    received: datetime | None = None
    thread_id: str = ""
    structure: object = None
    bodies: Mapping[str, bytes] = field(default_factory=dict)

    def section(self, name: str) -> bytes | None:
        """The octets of BODY[name], whatever the server made of quotes and spaces in it; None if it is missing."""
        wanted = f"BODY[{name.upper()}"
        return next((data for key, data in self.bodies.items() if key.upper().startswith(wanted)), None)

    @property
    def header(self) -> bytes:
        return self.section("HEADER") or b""


def fetched(replies: Iterable[Reply]) -> dict[int, Fetched]:
    """All messages of these answers by UID. A line without a UID is matched by its sequence number where another line
    of the same answer names both and nothing was expunged meanwhile; else it is left out."""
    found: dict[int, dict[bytes, object]] = {}
    for reply in replies:
        by_sequence: dict[int, int] = {}
        nameless: list[tuple[int, dict[bytes, object]]] = []
        for parts in _responses(reply.untagged.get("FETCH", ())):
            sequence, items = _items(parts)
            uid = items.get(b"UID")
            if isinstance(uid, int):
                by_sequence[sequence] = uid
                found.setdefault(uid, {}).update(items)
            elif sequence:
                nameless.append((sequence, items))
        if "EXPUNGE" not in reply.untagged:
            for sequence, items in nameless:
                if sequence in by_sequence:
                    found[by_sequence[sequence]].update(items)
    return {uid: _value(uid, items) for uid, items in found.items()}


def _responses(items: Iterable[object]) -> Iterator[list[object]]:
    """imaplib splits a response at each literal and ends it with plain octets."""
    parts: list[object] = []
    for item in items:
        parts.append(item)
        if isinstance(item, bytes):
            yield parts
            parts = []


def _items(parts: list[object]) -> tuple[int, dict[bytes, object]]:
    try:
        match values(parts):
            case (int(sequence), (*told,)) if len(told) % 2 == 0:
                pairs = zip(told[::2], told[1::2], strict=True)
                items: dict[bytes, object] = {w.upper(): value for w, value in pairs if isinstance(w, bytes)}
                if all(isinstance(w, bytes) for w in told[::2]) and isinstance(items.get(b"UID", 0), int):
                    return sequence, items
    except ValueError:
        pass
    return _rescued(parts)


def _rescued(parts: list[object]) -> tuple[int, dict[bytes, object]]:
    """What can be read of a response that does not parse: UID, flags, MODSEQ, size and literals.

    Quoted strings are blanked first: a file name must not pass for a UID.
    """
    items: dict[bytes, object] = {}
    bare = bytearray()
    for part in parts:
        text = part[0] if isinstance(part, tuple) else part
        if not isinstance(text, bytes):
            return 0, {}
        if isinstance(part, tuple) and (match := _LITERAL_OF.search(text)):
            items[match[1]] = part[1]
        bare += _QUOTED.sub(b'""', text)
    uids = {int(m[1]) for m in _UID.finditer(bare)}
    if len(uids) != 1:
        return 0, {}
    items[b"UID"] = uids.pop()
    if match := _FLAGS.search(bare):
        items[b"FLAGS"] = tuple(match[1].split())
    if match := _MODSEQ.search(bare):
        items[b"MODSEQ"] = (int(match[1]),)
    if match := _SIZE.search(bare):
        items[b"RFC822.SIZE"] = int(match[1])
    return 0, items


def _value(uid: int, items: Mapping[bytes, object]) -> Fetched:
    flags = items.get(b"FLAGS")
    labels = items.get(b"X-GM-LABELS")
    modseq = items.get(b"MODSEQ")
    size = items.get(b"RFC822.SIZE")
    received = items.get(b"INTERNALDATE")
    return Fetched(
        uid=uid,
        flags=frozenset(flag_text(f) for f in flags) if isinstance(flags, tuple) else None,
        labels=frozenset(_gmail_label(w) for w in labels) if isinstance(labels, tuple) else frozenset(),
        modseq=modseq[0] if isinstance(modseq, tuple) and modseq and isinstance(modseq[0], int) else 0,
        size=size if isinstance(size, int) else 0,
        received=_moment(received),
        thread_id=_thread_id(items.get(b"X-GM-THRID") or items.get(b"THREADID")),
        structure=items.get(b"BODYSTRUCTURE"),
        bodies={
            key.decode("latin-1"): data if isinstance(data, bytes) else str(data).encode("ascii")
            for key, data in items.items()
            if key.startswith(b"BODY[") and data is not None
        },
    )


def _gmail_label(word: object) -> str:
    return mailbox_name(word) if isinstance(word, bytes) else flag_text(word)


def _moment(date: object) -> datetime | None:
    """INTERNALDATE, aware; None if it is no date."""
    if not isinstance(date, bytes):
        return None
    try:
        moment: datetime = parse_to_datetime(date, normalise=False)
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _thread_id(value: object) -> str:
    """X-GM-THRID is a number, THREADID (RFC 8474) a word in brackets."""
    if isinstance(value, tuple):
        value = value[0] if value else None
    return value.decode("latin-1") if isinstance(value, bytes) else str(value or "")
