"""Reading inbox messages: heads of a batch, chosen text parts, a whole message. Always PEEK, nothing is changed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from triage.domain.mail import HEADER_FIELDS, THREAD_FIELDS, Head, MessageRef, Part, PartBytes
from triage.mailbox import sets
from triage.mailbox.answers import Reply, refusal
from triage.mailbox.fetched import Fetched, fetched
from triage.mailbox.session import Session
from triage.mailbox.structure import OPAQUE, part_tree

HEADERS = f"BODY.PEEK[HEADER.FIELDS ({' '.join(HEADER_FIELDS)})]"
THREAD_HEADERS = f"BODY.PEEK[HEADER.FIELDS ({' '.join(THREAD_FIELDS)})]"

_SECTION = re.compile(r"[1-9]\d*(?:\.[1-9]\d*)*")


def flag_items(session: Session) -> str:
    """The data items that say what a message bears: flags, Gmail's labels, MODSEQ where the server has it."""
    items = ["UID", "FLAGS"]
    if session.has_modseq:
        items.append("MODSEQ")
    if "X-GM-EXT-1" in session.capabilities:
        items.append("X-GM-LABELS")
    return " ".join(items)


def thread_item(session: Session) -> str:
    """The data item that names the server's own thread, with a leading space, or ""."""
    if "X-GM-EXT-1" in session.capabilities:
        return " X-GM-THRID"
    return " THREADID" if "OBJECTID" in session.capabilities else ""


def fetch_commands(uids: Iterable[int], items: str) -> list[bytes]:
    """UID FETCH of these items, in as many commands as the length of a line asks for."""
    return [f"UID FETCH {uid_set} ({items})".encode("ascii") for uid_set, _ in sets.chunks(uids)]


def answered(replies: Sequence[Reply], what: str) -> dict[int, Fetched]:
    """The messages of these answers. Raises CommandRefused or MailboxBusy if a command failed.

    NO together with data means that some of the messages went away meanwhile (RFC 2180, 4.1.2): the data counts.
    """
    for reply in replies:
        if not reply.ok and not (reply.status == "NO" and reply.untagged.get("FETCH")):
            raise refusal(reply, what)
    return fetched(replies)


def head_of(session: Session, item: Fetched) -> Head:
    """One message as a Head of the selected mailbox. A structure that cannot be read becomes one opaque part."""
    assert session.selected is not None
    return Head(
        ref=MessageRef(session.selected.mailbox, session.selected.uidvalidity, item.uid),
        headers=item.header,
        structure=OPAQUE if item.structure is None else part_tree(item.structure),
        flags=(item.flags or frozenset()) | item.labels,
        modseq=item.modseq,
        received=item.received,
        size=item.size,
        thread_id=item.thread_id,
    )


def fetch_heads(session: Session, uids: Sequence[int]) -> dict[int, Head]:
    """Headers, structure, flags, date and size of inbox messages in one round trip; gone messages are absent."""
    items = f"{flag_items(session)} INTERNALDATE RFC822.SIZE{thread_item(session)} BODYSTRUCTURE {HEADERS}"
    return _heads(session, uids, items)


def fetch_flags(session: Session, uids: Sequence[int]) -> dict[int, Head]:
    """Flags and MODSEQ of inbox messages; gone messages are absent."""
    return _heads(session, uids, flag_items(session))


def _heads(session: Session, uids: Sequence[int], items: str) -> dict[int, Head]:
    if not uids:
        return {}
    found = answered(session.on_inbox(*fetch_commands(uids, items)), "FETCH")
    wanted = set(uids)
    heads = {
        uid: head_of(session, item) for uid, item in sorted(found.items()) if uid in wanted and item.flags is not None
    }
    remember_ceiling(session, heads)
    return heads


def remember_ceiling(session: Session, heads: Mapping[int, Head]) -> None:
    """Note, for a later UNCHANGEDSINCE, the highest MODSEQ known when each of these heads was read.

    Any change after that moment gets a higher one (RFC 7162, 3.1), so one value guards the whole batch.
    """
    ceiling = max((h.modseq for h in heads.values()), default=0)
    for uid, head in heads.items():
        session.modseq_ceilings[uid, head.modseq] = ceiling


def fetch_texts(session: Session, wanted: Mapping[int, Sequence[tuple[str, int]]]) -> dict[int, dict[str, PartBytes]]:
    """The leading octets of the named sections, one command for each section, all in one round trip.

    One octet more than asked for is fetched: it tells whether the server held more.
    """
    groups: dict[tuple[str, int], list[int]] = {}
    for uid, sections in wanted.items():
        for section, max_bytes in sections:
            if _SECTION.fullmatch(section) and max_bytes > 0:
                groups.setdefault((section, max_bytes), []).append(uid)
    commands = [
        command
        for (section, max_bytes), uids in sorted(groups.items())
        for command in fetch_commands(uids, f"UID BODY.PEEK[{section}]<0.{max_bytes + 1}>")
    ]
    found = answered(session.on_inbox(*commands), "FETCH") if commands else {}
    texts: dict[int, dict[str, PartBytes]] = {}
    for (section, max_bytes), uids in groups.items():
        for uid in uids:
            data = found[uid].section(f"{section}]") if uid in found else None
            if data is not None:
                stub = Part(path=section, type="application", subtype="octet-stream")
                texts.setdefault(uid, {})[section] = PartBytes(stub, data[:max_bytes], len(data) > max_bytes)
    return texts


def fetch_whole(session: Session, uid: int, max_bytes: int) -> bytes | None:
    """The first octets of one inbox message, None if it is gone."""
    replies = session.on_inbox(f"UID FETCH {uid} (UID BODY.PEEK[]<0.{max_bytes}>)".encode("ascii"))
    item = answered(replies, "FETCH").get(uid)
    return item.section("]") if item else None
