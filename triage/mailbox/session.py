"""The state of one connection: what is selected, how many messages it holds, whether the inbox is still the same."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from triage.domain.errors import MailboxChanged, MailboxRefused
from triage.mailbox.answers import Reply, refusal
from triage.mailbox.names import mailbox_argument
from triage.mailbox.wire import Wire

_FLAG = re.compile(rb"[^\s()]+")


@dataclass(frozen=True, slots=True)
class Select:
    """SELECT, or EXAMINE if `read_only`, as a command of a batch."""

    mailbox: str
    read_only: bool = True

    @property
    def line(self) -> bytes:
        return (b"EXAMINE " if self.read_only else b"SELECT ") + mailbox_argument(self.mailbox)


@dataclass(frozen=True, slots=True)
class Selected:
    """What SELECT said of a mailbox, kept up to date with what came untagged since (RFC 9051, 6.3.2)."""

    mailbox: str
    read_only: bool
    uidvalidity: int
    exists: int
    keywords: frozenset[str]
    permanent: frozenset[str] | None  # None: not told, so everything is kept
    highest_modseq: int = 0
    keeps_modseq: bool = True
    examined: bool = False  # read-only because we asked for no more

    @property
    def keeps_keywords(self) -> bool:
        return self.permanent is None or "\\*" in self.permanent


class Session:
    """Commands on a connection. Tracks the selected mailbox; raises MailboxChanged when the inbox was renumbered."""

    def __init__(self, wire: Wire, inbox: str) -> None:
        self.wire = wire
        self.inbox = inbox
        self.capabilities = wire.capabilities
        self.selected: Selected | None = None
        self.inbox_uidvalidity = 0
        self.searches_keywords = True
        self.searches_partially = bool({"CONTEXT=SEARCH", "PARTIAL"} & self.capabilities)
        self.modseq_ceilings: dict[tuple[int, int], int] = {}

    @property
    def has_modseq(self) -> bool:
        """CONDSTORE (RFC 7162), and the selected mailbox keeps it."""
        told = bool({"CONDSTORE", "QRESYNC"} & self.capabilities)
        return told and (self.selected is None or self.selected.keeps_modseq)

    def run(self, *commands: bytes | Select) -> list[Reply]:
        """Send commands together; their answers in order. NO and BAD are left to the caller."""
        replies = self.wire.run(*(c.line if isinstance(c, Select) else c for c in commands))
        for command, reply in zip(commands, replies, strict=True):
            if isinstance(command, Select):
                self.selected = selected_of(command, reply) if reply.ok else None
                self._check_inbox()
            elif self.selected is not None:
                self.selected = _updated(self.selected, reply)
        return replies

    def demand(self, what: str, command: bytes | Select) -> Reply:
        """One command that must succeed. Raises MailboxBusy or CommandRefused for NO and BAD."""
        reply = self.run(command)[0]
        if not reply.ok:
            raise refusal(reply, what)
        return reply

    def use(self, mailbox: str, *, read_only: bool) -> Selected:
        """Have this mailbox selected, at least as writable as asked. Raises CommandRefused if it cannot be."""
        at = self.selected
        again = at is not None and at.read_only and not read_only and (at.examined or mailbox != self.inbox)
        if at is None or at.mailbox != mailbox or again:
            self.demand(f"to open {mailbox}", Select(mailbox, read_only))
        assert self.selected is not None
        return self.selected

    def use_inbox(self) -> Selected:
        """Have the inbox selected read-write, as it was opened first."""
        return self.use(self.inbox, read_only=False)

    def ahead_of_inbox(self, *commands: bytes) -> tuple[bytes | Select, ...]:
        """The commands, preceded by a SELECT of the inbox if another mailbox is selected now."""
        at = self.selected
        return commands if at is not None and at.mailbox == self.inbox else (Select(self.inbox, False), *commands)

    def on_inbox(self, *commands: bytes) -> list[Reply]:
        """Run commands in the inbox, its selection in the same round trip. For commands that only read.

        Raises CommandRefused if the inbox cannot be selected.
        """
        sent = self.ahead_of_inbox(*commands)
        replies = self.run(*sent)
        if len(sent) > len(commands):
            if not replies[0].ok:
                raise refusal(replies[0], f"to open {self.inbox}")
            return replies[1:]
        return replies

    def _check_inbox(self) -> None:
        at = self.selected
        if at is None or at.mailbox != self.inbox:
            return
        if self.inbox_uidvalidity and at.uidvalidity != self.inbox_uidvalidity:
            self.wire.drop()
            raise MailboxChanged(
                f"{self.wire.where}: {self.inbox} was renumbered (UIDVALIDITY {self.inbox_uidvalidity} became "
                f"{at.uidvalidity}); every UID of this run is void, the next run starts afresh"
            )
        self.inbox_uidvalidity = at.uidvalidity


def selected_of(command: Select, reply: Reply) -> Selected:
    """Read the answer to SELECT or EXAMINE. Raises MailboxRefused for a server without UIDs."""
    uidvalidity = _number(reply.code_values("UIDVALIDITY"))
    if not uidvalidity:
        raise MailboxRefused(f"the server gives {command.mailbox} no UIDVALIDITY; it cannot be used safely")
    permanent = reply.lines("PERMANENTFLAGS")
    return Selected(
        mailbox=command.mailbox,
        read_only=reply.code == "READ-ONLY" or command.read_only,
        uidvalidity=uidvalidity,
        exists=_number([line.decode("latin-1") for line in reply.lines("EXISTS")]),
        keywords=frozenset(
            name for line in (*reply.lines("FLAGS"), *permanent) for name in _flags(line) if not name.startswith("\\")
        ),
        permanent=frozenset(n for line in permanent for n in _flags(line)) if permanent else None,
        highest_modseq=_number(reply.code_values("HIGHESTMODSEQ")),
        keeps_modseq="NOMODSEQ" not in reply.untagged,
        examined=command.read_only,
    )


def _updated(at: Selected, reply: Reply) -> Selected:
    exists = reply.lines("EXISTS")
    expunged = len(reply.lines("EXPUNGE"))
    flags = reply.lines("FLAGS")
    if not exists and not expunged and not flags:
        return at
    count = _number([exists[-1].decode("latin-1")]) if exists else max(0, at.exists - expunged)
    told = frozenset(n for line in flags for n in _flags(line) if not n.startswith("\\"))
    return replace(at, exists=count, keywords=at.keywords | told)


def _flags(line: bytes) -> list[str]:
    words = _FLAG.findall(line[: line.rfind(b")") + 1] or line)
    return [flag_text(word) for word in words]


def flag_text(word: object) -> str:
    """A flag as text. 2024 was read as a number and NIL as None; some servers send 8-bit keywords."""
    if isinstance(word, bytes):
        try:
            return word.decode("utf-8")
        except UnicodeDecodeError:
            return word.decode("latin-1")
    return "NIL" if word is None else str(word)


def _number(texts: Sequence[str]) -> int:
    match = re.match(r"\d+", texts[-1]) if texts else None
    return int(match[0]) if match else 0
