"""Finding earlier messages by Message-ID or by the server's thread: hints first, then narrow windows.

SEARCH HEADER matches any part of the field without regard to case (RFC 9051, 6.4.4), so what it finds is only a
candidate: the fetched Message-ID decides, octet by octet. No SEARCH RETURN (SAVE) here: Dovecot 2.3 hangs when FETCH,
SEARCH RETURN (SAVE) and FETCH $ are pipelined.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from triage.domain.mail import MessageRef
from triage.mailbox import sets
from triage.mailbox.answers import Reply, refusal
from triage.mailbox.discovery import message_counts
from triage.mailbox.fetched import Fetched, fetched
from triage.mailbox.heads import THREAD_HEADERS, fetch_commands, flag_items, thread_item
from triage.mailbox.names import mailbox_argument, quoted
from triage.mailbox.searching import hits_of, search_command
from triage.mailbox.session import Select, Session
from triage.ports import Located

MAX_HITS = 200
"""Candidates looked at in one mailbox, newest first."""

MAX_HINTED_MAILBOXES = 10

_SEARCHABLE = re.compile(r"[\x20-\x21\x23-\x5b\x5d-\x7e]{5,250}")
_MESSAGE_ID = re.compile(rb"^Message-ID[ \t]*:((?:[^\r\n]|\r?\n[ \t])*)", re.IGNORECASE | re.MULTILINE)
_BRACKETED = re.compile(r"<[^<>]*>")


@dataclass
class _Place:
    """One mailbox on the way: what is hinted to lie there, what the search found, what was fetched."""

    mailbox: str
    searched: bool = True
    uidvalidity: int = 0
    messages: int = 0
    hinted: dict[int, int] = field(default_factory=dict)  # UID -> UIDVALIDITY of the hint
    hits: list[int] = field(default_factory=list)
    found: dict[int, Fetched] = field(default_factory=dict)


class Locator:
    """Looks in the inbox, then in `others` (archive, sent), each opened read-only.

    Three round trips, whatever the number of ids: the inbox's search and the sizes elsewhere; the inbox's hits and the
    searches elsewhere; the hits elsewhere and the inbox again.
    """

    def __init__(self, session: Session, others: Sequence[str], window: int, *, wide: bool) -> None:
        self._session = session
        self._others = others
        self._window = window
        self._wide = wide

    def by_message_id(
        self, message_ids: Sequence[str], hints: Mapping[str, MessageRef]
    ) -> dict[str, tuple[Located, ...]]:
        """The messages that bear exactly these ids. A hint whose UIDVALIDITY is no longer right is ignored."""
        wanted = {i for i in message_ids if i}
        # Without the brackets: some programs write none around the id of their own mail.
        bare = [i.removeprefix("<").removesuffix(">") for i in sorted(wanted) if _SEARCHABLE.fullmatch(i)]
        keys = [f"HEADER Message-ID {quoted(i).decode('ascii')}" for i in bare]
        if not wanted:
            return {}
        places = self._look(keys, [ref for i, ref in hints.items() if i in wanted])
        found: dict[str, list[Located]] = {}
        for located in self._located(places):
            if located.message_id in wanted:
                found.setdefault(located.message_id, []).append(located)
        return {i: tuple(places) for i, places in found.items()}

    def by_thread_id(self, thread_ids: Sequence[str]) -> dict[str, tuple[Located, ...]]:
        """The messages of the server's own threads; nothing where the server has none."""
        item = thread_item(self._session).strip()
        wanted = {t for t in thread_ids if t.isascii() and t.replace("-", "").replace("_", "").isalnum()}
        if not item or not wanted:
            return {}
        found: dict[str, list[Located]] = {}
        for located in self._located(self._look([f"{item} {t}" for t in sorted(wanted)], [], everywhere=True)):
            if located.thread_id in wanted:
                found.setdefault(located.thread_id, []).append(located)
        return {t: tuple(places) for t, places in found.items()}

    def _look(self, keys: Sequence[str], hints: Sequence[MessageRef], *, everywhere: bool = False) -> list[_Place]:
        session = self._session
        at = session.use_inbox()
        inbox = _Place(at.mailbox, uidvalidity=at.uidvalidity, messages=at.exists)
        hinted = [ref.mailbox for ref in hints if ref.mailbox not in self._others][:MAX_HINTED_MAILBOXES]
        others = [_Place(n, n in self._others) for n in dict.fromkeys((*self._others, *hinted)) if n != at.mailbox]
        for place in (inbox, *others):
            place.hinted = {r.uid: r.uidvalidity for r in hints if r.mailbox == place.mailbox}
        wide = self._wide or everywhere
        self._first_round(inbox, others, keys, wide=wide)
        self._second_round(inbox, others, keys, wide=wide)
        self._last_round(others)
        return [inbox, *others]

    def _first_round(self, inbox: _Place, others: Sequence[_Place], keys: Sequence[str], *, wide: bool) -> None:
        hinted = [uid for uid, validity in inbox.hinted.items() if validity == inbox.uidvalidity]
        fetches = self._fetches(hinted)
        searches = self._searches(keys, inbox.messages, wide=wide)
        searched = [place for place in others if place.searched and keys]
        sizes = [b"STATUS " + mailbox_argument(place.mailbox) + b" (MESSAGES)" for place in searched]
        replies = self._session.run(*fetches, *searches, *sizes)
        inbox.found.update(_read(replies[: len(fetches)]))
        inbox.hits = _hits(replies[len(fetches) : len(fetches) + len(searches)])
        told = message_counts(replies[len(fetches) + len(searches) :])
        for place in searched:
            place.messages = told.get(place.mailbox, 0)

    def _second_round(self, inbox: _Place, others: Sequence[_Place], keys: Sequence[str], *, wide: bool) -> None:
        """The inbox's candidates; then, in each other mailbox, the hinted messages and the search."""
        fetches = self._fetches(uid for uid in inbox.hits if uid not in inbox.found)
        commands: list[bytes | Select] = list(fetches)
        parts: list[tuple[_Place, int, int]] = []
        for place in others:
            hinted, searches = self._fetches(place.hinted), self._searches(keys, place.messages, wide=wide)
            if hinted or searches:
                commands += [Select(place.mailbox), *hinted, *searches]
                parts.append((place, len(hinted), len(searches)))
        replies = self._session.run(*commands) if commands else []
        inbox.found.update(_read(replies[: len(fetches)]))
        at = len(fetches)
        for place, hinted_count, search_count in parts:
            opened, answers = replies[at], replies[at + 1 : at + 1 + hinted_count + search_count]
            at += 1 + hinted_count + search_count
            place.uidvalidity = _uidvalidity(opened)
            if not place.uidvalidity:
                continue
            right = {uid for uid, validity in place.hinted.items() if validity == place.uidvalidity}
            place.found.update({u: f for u, f in _read(answers[:hinted_count]).items() if u in right})
            place.hits = _hits(answers[hinted_count:])

    def _last_round(self, others: Sequence[_Place]) -> None:
        commands: list[bytes | Select] = []
        parts: list[tuple[_Place, int, int]] = []
        # The mailbox that is still open comes first and need not be opened again.
        for place in sorted(others, key=lambda p: not self._is_open(p)):
            fetches = self._fetches(uid for uid in place.hits if uid not in place.found)
            if fetches:
                opening = [] if not parts and self._is_open(place) else [Select(place.mailbox)]
                commands += [*opening, *fetches]
                parts.append((place, len(opening), len(fetches)))
        replies = self._session.run(*self._session_back(commands)) if commands or self._is_away() else []
        if replies and self._is_away():
            raise refusal(replies[-1], f"to open {self._session.inbox}")
        at = 0
        for place, opened, count in parts:
            if not opened or _uidvalidity(replies[at]) == place.uidvalidity:
                place.found.update(_read(replies[at + opened : at + opened + count]))
            at += opened + count

    def _session_back(self, commands: Sequence[bytes | Select]) -> tuple[bytes | Select, ...]:
        return (*commands, Select(self._session.inbox, read_only=False))

    def _is_open(self, place: _Place) -> bool:
        return self._session.selected is not None and self._session.selected.mailbox == place.mailbox

    def _is_away(self) -> bool:
        return self._session.selected is None or self._session.selected.mailbox != self._session.inbox

    def _fetches(self, uids: Iterable[int]) -> list[bytes]:
        items = f"{flag_items(self._session)} INTERNALDATE{thread_item(self._session)} {THREAD_HEADERS}"
        return fetch_commands(uids, items)

    def _searches(self, keys: Sequence[str], messages: int, *, wide: bool) -> list[bytes]:
        """OR of the keys in the newest messages, as many searches as the length of a line asks for."""
        if not messages:
            return []
        window = "" if wide else f"{max(1, messages - self._window + 1)}:* "
        groups: list[list[str]] = []
        used = sets.ROOM
        for key in keys:
            if used + len(key) + 4 > sets.ROOM:
                groups.append([])
                used = 0
            groups[-1].append(key)
            used += len(key) + 4
        return [
            search_command(self._session.capabilities, f"{window}{'OR ' * (len(group) - 1)}{' '.join(group)}")
            for group in groups
        ]

    def _located(self, places: Iterable[_Place]) -> list[Located]:
        return [
            Located(
                ref=MessageRef(place.mailbox, place.uidvalidity, uid),
                message_id=message_id_of(item.header),
                flags=(item.flags or frozenset()) | item.labels,
                headers=item.header,
                thread_id=item.thread_id,
                received=item.received,
            )
            for place in places
            for uid, item in sorted(place.found.items())
        ]


def message_id_of(header: bytes) -> str:
    """The Message-ID of a header block, unfolded, in angle brackets (also where it has none); "" if there is none."""
    match = _MESSAGE_ID.search(header)
    if not match:
        return ""
    text = b"".join(line.strip() for line in match[1].splitlines()).decode("utf-8", "replace")
    bracketed = _BRACKETED.search(text)
    word = text.strip()
    return bracketed[0] if bracketed else f"<{word}>" if "@" in word and " " not in word else word


def _read(replies: Iterable[Reply]) -> dict[int, Fetched]:
    return {uid: item for uid, item in fetched(replies).items() if item.flags is not None and item.header}


def _hits(replies: Iterable[Reply]) -> list[int]:
    """A search that was refused finds nothing: an ancestor that is not found means that the model is asked."""
    return sorted({uid for reply in replies if reply.ok for uid in hits_of(reply)})[-MAX_HITS:]


def _uidvalidity(opened: Reply) -> int:
    told = opened.code_values("UIDVALIDITY")
    return int(told[-1]) if opened.ok and told and told[-1].isdecimal() else 0
