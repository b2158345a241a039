"""The mail tool's way into a mailbox: one read-only connection (EXAMINE, PEEK), any folder, few commands."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from triage.domain.errors import CommandRefused, MailboxError, MailboxLost
from triage.domain.mail import Head, MailSource, Part, PartBytes
from triage.mailbox import heads as reading
from triage.mailbox.answers import Reply
from triage.mailbox.connecting import connect
from triage.mailbox.names import quoted
from triage.mailbox.searching import hits_of, search_command
from triage.mailbox.session import Select, Session
from triage.mailbox.settings import ConnectionSettings
from triage.ports import Clock

_FIELD = re.compile(r"[A-Za-z0-9-]{1,60}")
_UIDNEXT = re.compile(r"\d+")
MAX_UID = 2**32 - 1
HEADER_OCTETS = 65_536
_SHORTEST_S = 0.05


@dataclass(frozen=True, slots=True)
class FolderPlace:
    """A folder's numbering (RFC 9051, 2.3.1.1)."""

    folder: str
    uidvalidity: int
    uidnext: int


class ImapReader:
    """The MailReader port on IMAP. Folders are opened with EXAMINE: no flag, not even \\Recent, is touched.

    Any method but `close` may raise MailboxLost, MailboxBusy or CommandRefused; after MailboxLost call `open` again.
    """

    def __init__(self, settings: ConnectionSettings, *, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._session: Session | None = None
        self._limit_s = settings.command_timeout_s

    def allow(self, seconds: float) -> None:
        """From now on no command, and no connecting, may take longer than this (nor than the account's own limits)."""
        self._limit_s = max(_SHORTEST_S, seconds)
        if self._session is not None:
            self._session.wire.limit(min(self._limit_s, self._settings.command_timeout_s))

    def open(self) -> None:
        """Connect and log in, unless connected. Raises LoginRefused, MailboxRefused, MailboxBusy, MailboxLost."""
        if self._session is None or self._session.wire.closed:
            limited = replace(
                self._settings,
                connect_timeout_s=min(self._limit_s, self._settings.connect_timeout_s),
                command_timeout_s=min(self._limit_s, self._settings.command_timeout_s),
            )
            self._session = Session(connect(limited, self._clock), "")

    def close(self) -> None:
        session, self._session = self._session, None
        if session is None:
            return
        try:
            session.wire.logout()
        except MailboxError:
            session.wire.drop()

    def place(self, folder: str) -> FolderPlace:
        """EXAMINE anew: it tells UIDNEXT, which a selected folder's answers do not."""
        reply = self._examine(folder)
        return self._place(folder, reply)

    def arrived(
        self, folder: str, first_uid: int, named: tuple[Sequence[str], str] | None
    ) -> tuple[FolderPlace, tuple[int, ...]]:
        """New messages of a folder, in two round trips.

        `first_uid:*` names the last message even where that is older (RFC 9051, 6.4.8), so the end is written out.
        """
        session = self._open_session
        keys = f"UID {max(1, first_uid)}:{MAX_UID}"
        if named is not None:
            fields, text = named
            if not fields or not all(map(_FIELD.fullmatch, fields)) or not text.isascii() or not text.isprintable():
                raise CommandRefused("a header search takes names of fields and printable ASCII")
            keys += any_of([f"HEADER {field} {quoted(text).decode('ascii')}" for field in fields])
        at = session.selected
        if at is None or at.mailbox != folder:
            self._examine(folder)
        else:
            # Tells the server to look (RFC 9051, 6.1.2); by itself, as Dovecot searches first what came together.
            session.demand("NOOP", b"NOOP")
        reply = session.demand("SEARCH", search_command(session.capabilities, keys))
        uids = sorted(uid for uid in set(hits_of(reply)) if uid >= first_uid)
        assert session.selected is not None
        place = FolderPlace(folder, session.selected.uidvalidity, 0)
        return place, tuple(uids)

    def heads(self, folder: str, uids: Sequence[int], fields: Sequence[str]) -> Mapping[int, Head]:
        """Structure, flags, date, size and the named header fields of messages. Gone messages are absent."""
        if not uids:
            return {}
        session = self._use(folder)
        names = " ".join(name for name in dict.fromkeys(fields) if _FIELD.fullmatch(name))
        header = f"BODY.PEEK[HEADER.FIELDS ({names})]<0.{HEADER_OCTETS}>"
        items = f"{reading.flag_items(session)} INTERNALDATE RFC822.SIZE BODYSTRUCTURE {header}"
        found = reading.answered(session.run(*reading.fetch_commands(uids, items)), "FETCH")
        return {uid: reading.head_of(session, found[uid]) for uid in sorted(set(uids) & found.keys())}

    def source(self, folder: str, head: Head, wanted: Sequence[tuple[Part, int]]) -> MailSource:
        """The leading octets of the wanted parts, in one round trip. What is missing is absent."""
        session = self._use(folder)
        sections = [(part, cap) for part, cap in wanted if re.fullmatch(r"[1-9]\d*(?:\.[1-9]\d*)*", part.path)]
        commands = [
            command
            for part, cap in sections
            for command in reading.fetch_commands([head.ref.uid], f"UID BODY.PEEK[{part.path}]<0.{cap + 1}>")
        ]
        item = reading.answered(session.run(*commands), "FETCH").get(head.ref.uid) if commands else None
        texts: list[PartBytes] = []
        for part, cap in sections:
            data = item.section(f"{part.path}]") if item else None
            if data is not None:
                texts.append(PartBytes(part, data[:cap], cut=len(data) > cap))
        return MailSource(head.headers, head.structure, tuple(texts))

    def idle(self, folder: str, seconds: float, stop: threading.Event) -> bool:
        """IDLE (RFC 2177) in the folder; False where the server has none."""
        session = self._use(folder)
        if "IDLE" not in session.capabilities:
            return False
        return session.wire.idle(seconds, stop.is_set)

    @property
    def can_idle(self) -> bool:
        return self._session is not None and "IDLE" in self._session.capabilities

    # ------------------------------------------------------------

    @property
    def _open_session(self) -> Session:
        if self._session is None:
            raise MailboxLost(f"{self._settings.host}: the mailbox is not open")
        return self._session

    def _use(self, folder: str) -> Session:
        session = self._open_session
        at = session.selected
        if at is None or at.mailbox != folder:
            self._examine(folder)
        return session

    def _examine(self, folder: str) -> Reply:
        return self._open_session.demand(f"to open {folder}", Select(folder, read_only=True))

    def _place(self, folder: str, reply: Reply) -> FolderPlace:
        at = self._open_session.selected
        assert at is not None
        told = [m for value in reply.code_values("UIDNEXT") if (m := _UIDNEXT.match(value))]
        if told:
            return FolderPlace(folder, at.uidvalidity, int(told[-1][0]))
        _, uids = self.arrived(folder, 1, None)  # RFC 9051 asks for UIDNEXT; a server may be older
        return FolderPlace(folder, at.uidvalidity, (uids[-1] if uids else 0) + 1)


def any_of(keys: Sequence[str]) -> str:
    """Search keys of which one must hold, with a space before them: OR takes exactly two (RFC 9051, 6.4.4)."""
    first, *rest = keys
    return f" OR {first}{any_of(rest)}" if rest else f" {first}"
