"""The mailboxes behind the scripted IMAP server: messages, flags, MODSEQ, and how SEARCH sees them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

MARCH = datetime(2026, 3, 2, 9, 14, tzinfo=UTC)
SYSTEM_FLAGS = ("\\Answered", "\\Flagged", "\\Deleted", "\\Seen", "\\Draft")


@dataclass(eq=False)
class FakeMail:
    """One message. `structure` and `labels` are sent as they are; `thread` is X-GM-THRID or THREADID."""

    uid: int
    subject: str = "Note"
    flags: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    received: datetime = MARCH
    message_id: str = ""
    raw: bytes = b""
    structure: str | None = None
    thread: str = ""
    modseq: int = 1

    def octets(self) -> bytes:
        if self.raw:
            return self.raw
        message_id = self.message_id or f"<{self.uid}@fake.example>"
        return (
            f"From: Dana <dana@sender.example>\r\nTo: desk@desk.example\r\nSubject: {self.subject}\r\n"
            f"Date: Mon, 02 Mar 2026 09:14:00 +0000\r\nMessage-ID: {message_id}\r\n"
            f"Content-Type: text/plain; charset=utf-8\r\n\r\nBody of {self.subject}.\r\n"
        ).encode()

    def bodystructure(self) -> str:
        if self.structure is not None:
            return self.structure
        body = self.octets().partition(b"\r\n\r\n")[2]
        lines = body.count(b"\n")
        return f'("TEXT" "PLAIN" ("CHARSET" "utf-8") NIL NIL "8BIT" {len(body)} {lines} NIL NIL NIL NIL)'

    def header(self, name: str) -> str:
        head = self.octets().partition(b"\r\n\r\n")[0].decode("utf-8", "replace")
        unfolded = re.sub(r"\r\n[ \t]+", " ", head)
        match = re.search(rf"(?im)^{re.escape(name)}:(.*)$", unfolded)
        return match[1].strip() if match else ""

    def bears(self, flag: str) -> bool:
        return flag.casefold() in (f.casefold() for f in self.flags)


@dataclass
class FakeBox:
    """One mailbox."""

    name: str
    mails: list[FakeMail] = field(default_factory=list)
    uidvalidity: int = 7
    special: str = ""
    permanent: tuple[str, ...] = (*SYSTEM_FLAGS, "\\*")
    read_only: bool = False
    flags_line: str = ""
    modseq: int = 1

    @property
    def uidnext(self) -> int:
        return max((m.uid for m in self.mails), default=0) + 1

    def touch(self, mail: FakeMail) -> None:
        self.modseq += 1
        mail.modseq = self.modseq

    def by_uid(self, uid: int) -> FakeMail | None:
        return next((m for m in self.mails if m.uid == uid), None)

    def in_set(self, text: str, *, by_uid: bool) -> list[FakeMail]:
        """The messages of a set, in the order of the mailbox."""
        top = (self.mails[-1].uid if by_uid else len(self.mails)) if self.mails else 0
        ranges = []
        for word in text.split(","):
            low, _, high = word.partition(":")
            a, b = (top if n == "*" else int(n) for n in (low, high or low))
            ranges.append((min(a, b), max(a, b)))
        numbered = ((m.uid if by_uid else n, m) for n, m in enumerate(self.mails, 1))
        return [m for n, m in numbered if any(a <= n <= b for a, b in ranges)]

    def search(self, keys: str) -> list[FakeMail]:
        words = re.findall(r'"(?:[^"\\]|\\.)*"|\(|\)|[^\s()]+', keys)
        found = set(range(len(self.mails)))
        while words:
            found &= self._key(words)
        return [self.mails[i] for i in sorted(found)]

    def _key(self, words: list[str]) -> set[int]:
        word = words.pop(0).upper()
        everything = set(range(len(self.mails)))
        match word:
            case "ALL":
                return everything
            case "NOT":
                return everything - self._key(words)
            case "OR":
                return self._key(words) | self._key(words)
            case "UNDELETED" | "DELETED" | "SEEN" | "UNSEEN" | "FLAGGED":
                flag = "\\" + word.removeprefix("UN")
                hits = self._where(lambda m: m.bears(flag))
                return everything - hits if word.startswith("UN") else hits
            case "KEYWORD" | "UNKEYWORD":
                wanted = words.pop(0)
                hits = self._where(lambda m: m.bears(wanted))
                return hits if word == "KEYWORD" else everything - hits
            case "SINCE" | "BEFORE":
                day = datetime.strptime(words.pop(0), "%d-%b-%Y").replace(tzinfo=UTC).date()
                return self._where(lambda m: _on(m, day, word))
            case "HEADER":
                name, value = words.pop(0), _unquoted(words.pop(0))
                return self._where(lambda m: value.casefold() in m.header(name).casefold())
            case "X-GM-LABELS":
                label = _unquoted(words.pop(0))
                return self._where(lambda m: label.casefold() in (x.casefold() for x in m.labels))
            case "X-GM-THRID" | "THREADID":
                thread = words.pop(0)
                return self._where(lambda m: m.thread == thread)
            case "UID":
                inside = {m.uid for m in self.in_set(words.pop(0), by_uid=True)}
                return self._where(lambda m: m.uid in inside)
        if re.fullmatch(r"[\d:,*]+", word):
            inside = {m.uid for m in self.in_set(word, by_uid=False)}
            return self._where(lambda m: m.uid in inside)
        raise ValueError(word)

    def _where(self, test: Callable[[FakeMail], bool]) -> set[int]:
        return {i for i, m in enumerate(self.mails) if test(m)}


def _on(mail: FakeMail, day: date, word: str) -> bool:
    """IMAP compares the day as written, in the server's own zone."""
    return mail.received.date() >= day if word == "SINCE" else mail.received.date() < day


def _unquoted(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word[1:-1]) if word.startswith('"') else word
