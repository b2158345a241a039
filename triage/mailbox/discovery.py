"""Where things are: prefix and delimiter (RFC 2342), archive and sent by special use (RFC 6154), else by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from triage.mailbox.answers import Reply
from triage.mailbox.atoms import Value, values
from triage.mailbox.names import mailbox_argument, mailbox_name
from triage.mailbox.session import Session
from triage.mailbox.settings import ConnectionSettings

_UNUSABLE = {"\\noselect", "\\nonexistent"}
_SENT_NAMES = ("Sent", "Sent Items", "Sent Messages")
ARCHIVE_NAME = "Archive"


@dataclass(frozen=True, slots=True)
class Listed:
    """One mailbox of a LIST answer; attributes in lower case, as servers differ."""

    name: str
    delimiter: str
    attributes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Layout:
    """Prefix and delimiter of the personal namespace, and the mailboxes the program needs."""

    prefix: str
    delimiter: str
    archive: str | None
    archive_to_create: str
    sent: str | None


def discovery_commands(session: Session, settings: ConnectionSettings) -> tuple[bytes, ...]:
    """What to ask, all in one round trip: answers go to `layout`."""
    asked = [b"NAMESPACE"] if "NAMESPACE" in session.capabilities else []
    if {"SPECIAL-USE", "LIST-EXTENDED"} <= session.capabilities:
        # A few lines even where there are ten thousand mailboxes.
        wanted = ARCHIVE_NAME if settings.archive == "auto" else settings.archive
        asked += [b'LIST (SPECIAL-USE) "" "*"', b'LIST "" ' + mailbox_argument(wanted), b'LIST "" "Sent"']
    else:
        asked += [b'LIST "" "*"']
    return tuple(asked)


def layout(session: Session, settings: ConnectionSettings, replies: Sequence[Reply]) -> Layout:
    """Read the answers to `discovery_commands`; one more round trip if the archive may hide behind a prefix."""
    found = [mailbox for reply in replies for mailbox in listed(reply)]
    prefix, delimiter = _namespace(replies) or _guessed_namespace(found)
    wanted = ARCHIVE_NAME if settings.archive == "auto" else settings.archive
    to_create = wanted if wanted.startswith(prefix) else prefix + wanted
    archive = _archive(session, settings, found, to_create)
    if archive is None and to_create != wanted:
        more = listed(session.run(b'LIST "" ' + mailbox_argument(to_create))[0])
        archive = _named(more, [to_create])
    sent = _special(found, "\\sent") or _named(found, [p + n for n in _SENT_NAMES for p in (prefix, "")])
    return Layout(prefix, delimiter, archive, to_create, sent)


def listed(reply: Reply) -> list[Listed]:
    """The usable mailboxes of a LIST answer. Lines that cannot be read are left out."""
    found = []
    for parsed in _parsed(reply, "LIST"):
        match parsed:
            case (tuple(words), delimiter, name, *_) if name is not None:
                attributes = frozenset(str(w, "latin-1").lower() for w in words if isinstance(w, bytes))
                if not attributes & _UNUSABLE:
                    separator = str(delimiter, "latin-1") if isinstance(delimiter, bytes) else ""
                    found.append(Listed(_name(name), separator, attributes))
    return found


def message_counts(replies: Iterable[Reply]) -> dict[str, int]:
    """Messages by mailbox, from STATUS answers; which answer told of which mailbox does not matter."""
    counts: dict[str, int] = {}
    for reply in replies:
        for parsed in _parsed(reply, "STATUS"):
            match parsed:
                case (name, (*items,)) if name is not None:
                    told = dict(zip(items[::2], items[1::2], strict=False))
                    messages = told.get(b"MESSAGES")
                    counts[_name(name)] = messages if isinstance(messages, int) else 0
    return counts


def _name(word: object) -> str:
    """A mailbox name; one that looks like a number was read as one."""
    return mailbox_name(word if isinstance(word, bytes) else str(word).encode("ascii"))


def _parsed(reply: Reply, kind: str) -> Iterator[tuple[Value, ...]]:
    for parts in _joined(reply.untagged.get(kind, ())):
        try:
            yield values(parts)
        except ValueError:
            continue


def _joined(items: Iterable[object]) -> Iterator[list[object]]:
    """Responses one by one: imaplib splits a response at each literal and ends it with plain octets."""
    parts: list[object] = []
    for item in items:
        parts.append(item)
        if isinstance(item, bytes):
            yield parts
            parts = []


def _namespace(replies: Sequence[Reply]) -> tuple[str, str] | None:
    for reply in replies:
        for parsed in _parsed(reply, "NAMESPACE"):
            match parsed:
                case (((bytes(prefix), delimiter, *_), *_), *_):
                    return mailbox_name(prefix) if prefix else "", (
                        str(delimiter, "latin-1") if isinstance(delimiter, bytes) else ""
                    )
    return None


def _guessed_namespace(found: Sequence[Listed]) -> tuple[str, str]:
    """Without NAMESPACE: the delimiter LIST shows, and INBOX as prefix if everything lies below it."""
    delimiter = next((m.delimiter for m in found if m.delimiter), "")
    others = [m.name for m in found if m.name != "INBOX"]
    below = f"INBOX{delimiter}"
    if delimiter and others and all(name.upper().startswith(below) for name in others):
        return below, delimiter
    return "", delimiter


def _archive(session: Session, settings: ConnectionSettings, found: Sequence[Listed], to_create: str) -> str | None:
    if settings.archive != "auto":
        return _named(found, [settings.archive, to_create])
    if "X-GM-EXT-1" in session.capabilities:  # Gmail archives by taking a message out of the inbox: All Mail has it
        return _special(found, "\\all")
    return _special(found, "\\archive") or _named(found, [to_create, ARCHIVE_NAME])


def _special(found: Sequence[Listed], attribute: str) -> str | None:
    return next((m.name for m in found if attribute in m.attributes), None)


def _named(found: Sequence[Listed], names: Sequence[str]) -> str | None:
    """The first of `names` that exists, exact spelling preferred."""
    by_exact = {m.name for m in found}
    by_folded = {m.name.casefold(): m.name for m in reversed(found)}
    exact = next((n for n in names if n in by_exact), None)
    return exact or next((by_folded[n.casefold()] for n in names if n.casefold() in by_folded), None)
