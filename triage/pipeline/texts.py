"""The fetch step: only the text parts a model may read, up to their caps; attachments never."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from triage.domain.mail import Head, MailSource, PartBytes
from triage.ports import Mailbox
from triage.prepare import choose_parts, read_message
from triage.prepare.choose import EMPTY
from triage.prepare.headers import Fields

WHOLE_BYTES = 65536
"""How much of a message is fetched whose structure the server could not tell."""
TOP_BYTES = 8192
"""How much of a message that seems to have no sender."""


def fetch_sources(mailbox: Mailbox, heads: Mapping[int, Head]) -> dict[int, MailSource]:
    """The source of each message, in one pipelined fetch. Messages that are gone are absent."""
    chosen = {uid: choose_parts(head.structure) for uid, head in heads.items()}
    wanted = {uid: [(part.path, cap) for part, cap in parts] for uid, parts in chosen.items() if parts}
    texts = mailbox.fetch_texts(wanted) if wanted else {}
    sources: dict[int, MailSource] = {}
    for uid, head in heads.items():
        if structure_unknown(head) or _structure_wrong(head):
            whole = mailbox.fetch_whole(uid, WHOLE_BYTES)
            if whole is not None:
                sources[uid] = read_message(whole)
            continue
        got = texts.get(uid, {})
        parts: list[PartBytes] = [replace(got[part.path], part=part) for part, _ in chosen[uid] if part.path in got]
        sources[uid] = MailSource(_headers(mailbox, head), head.structure, tuple(parts))
    return sources


def _headers(mailbox: Mailbox, head: Head) -> bytes:
    """The fields of a message. Each has a From (RFC 5322, 3.6): one without hides its first line behind a byte order
    mark, which makes it another field to the server."""
    if "from" in Fields(head.headers):
        return head.headers
    top = mailbox.fetch_whole(head.ref.uid, TOP_BYTES)
    found = read_message(top).headers if top else b""
    return found if "from" in Fields(found) else head.headers


def structure_unknown(head: Head) -> bool:
    """Could the server not say how the message is built? The adapter marks that with a part of size -1."""
    return head.structure.size < 0


def _structure_wrong(head: Head) -> bool:
    """Does the server see no header, or nothing but empty text? Then header and body ran into each other, or the
    boundaries are not those the header names; the whole is small, as it has no attachment."""
    leaves = [part for part in head.structure.walk() if not part.children]
    return not head.headers.strip() or all(part.type in ("text", "multipart") and part.size <= EMPTY for part in leaves)
