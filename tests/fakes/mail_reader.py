"""A mailbox of the mail tool in memory, and a clock that delivers into it. `test_fake_reader` holds it to the port."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from triage.agent.identity import values
from triage.domain.errors import CommandRefused, MailboxBusy, MailboxError, MailboxLost
from triage.domain.mail import Head, MailSource, MessageRef, Part, PartBytes
from triage.prepare.mime import split_message

START = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


class StepClock:
    """Time passes only where somebody waits; what was planned for an instant happens on the way."""

    def __init__(self, now: datetime = START) -> None:
        self._now = now
        self._monotonic = 1000.0
        self._plans: list[tuple[float, Callable[[], object]]] = []
        self.waits = 0

    def now(self) -> datetime:
        self._now += timedelta(microseconds=1)  # as on a real machine, no two readings are the same
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        self.waits += 1
        until = self._monotonic + max(0.0, timeout_s)
        while not event.is_set():
            due = min((at for at, _ in self._plans), default=until + 1)
            if due > until:
                self._pass(until - self._monotonic)
                return event.is_set()
            self._pass(max(0.0, due - self._monotonic))
            for plan in [p for p in self._plans if p[0] <= due]:
                self._plans.remove(plan)
                plan[1]()
        return True

    def _pass(self, seconds: float) -> None:
        self._monotonic += seconds
        self._now += timedelta(seconds=seconds)

    def advance(self, seconds: float) -> None:
        self.wait(threading.Event(), seconds)

    def step(self, seconds: float) -> None:
        """The wall clock alone jumps."""
        self._now += timedelta(seconds=seconds)

    def reboot(self) -> None:
        """The monotonic clock begins anew."""
        self._monotonic = 1.0

    def at(self, seconds: float, action: Callable[[], object]) -> None:
        """Do something so many seconds from now."""
        self._plans.append((self._monotonic + seconds, action))


@dataclass(frozen=True)
class Stored:
    uid: int
    raw: bytes
    received: datetime
    flags: frozenset[str] = frozenset()


@dataclass
class Folder:
    uidvalidity: int = 7
    uidnext: int = 1
    mails: list[Stored] = field(default_factory=list)


class MailWorld:
    """A server: folders, what goes wrong, and how often it was asked."""

    def __init__(self, clock: StepClock) -> None:
        self.clock = clock
        self.folders: dict[str, Folder] = {"INBOX": Folder()}
        self.trouble: MailboxError | None = None
        self.logins = 0
        self.open_connections = 0
        self.looks: list[float] = []
        self.commands: list[str] = []
        self.allowed: list[float] = []
        self.answer_s = 0.0
        self.most_connections = 100
        self.can_idle = False

    def deliver(
        self, raw: bytes, *, folder: str = "INBOX", received: datetime | None = None, flags: Sequence[str] = ()
    ) -> int:
        place = self.folders.setdefault(folder, Folder())
        uid = place.uidnext
        place.mails.append(Stored(uid, raw, received or self.clock.now(), frozenset(flags)))
        place.uidnext += 1
        return uid

    def renumber(self, folder: str = "INBOX") -> None:
        place = self.folders[folder]
        self.folders[folder] = replace(place, uidvalidity=place.uidvalidity + 1)

    def reader(self) -> WorldReader:
        return WorldReader(self)


class WorldReader:
    """The MailReader port on a MailWorld."""

    def __init__(self, world: MailWorld) -> None:
        self._world = world
        self._open = False

    def allow(self, seconds: float) -> None:
        self._world.allowed.append(seconds)

    def open(self) -> None:
        if self._open:
            return
        self._world.logins += 1
        self._check()
        if self._world.open_connections >= self._world.most_connections:
            raise MailboxBusy("too many connections")
        self._open = True
        self._world.open_connections += 1

    def close(self) -> None:
        if self._open:
            self._world.open_connections -= 1
        self._open = False

    def place(self, folder: str) -> FakePlace:
        found = self._folder(folder)
        return FakePlace(folder, found.uidvalidity, found.uidnext)

    def arrived(
        self, folder: str, first_uid: int, named: tuple[Sequence[str], str] | None
    ) -> tuple[FakePlace, tuple[int, ...]]:
        self._world.looks.append(self._world.clock.monotonic())
        found = self._folder(folder)
        uids = []
        for mail in found.mails:
            headers = mail.raw.partition(b"\r\n\r\n")[0]
            texts = [v for name in (named[0] if named else ()) for v in values(headers, name)]
            if mail.uid >= first_uid and (named is None or any(named[1].casefold() in t.casefold() for t in texts)):
                uids.append(mail.uid)
        return FakePlace(folder, found.uidvalidity, 0), tuple(uids)

    def heads(self, folder: str, uids: Sequence[int], fields: Sequence[str]) -> Mapping[int, Head]:
        found = self._folder(folder)
        heads = {}
        for mail in found.mails:
            if mail.uid in uids:
                block = mail.raw.partition(b"\r\n\r\n")[0] + b"\r\n"
                kept = b"".join(
                    name.encode() + b": " + value.encode() + b"\r\n" for name in fields for value in values(block, name)
                )
                heads[mail.uid] = Head(
                    ref=MessageRef(folder, found.uidvalidity, mail.uid),
                    headers=kept,
                    structure=split_message(mail.raw).structure,
                    flags=mail.flags,
                    received=mail.received,
                    size=len(mail.raw),
                )
        return heads

    def source(self, folder: str, head: Head, wanted: Sequence[tuple[Part, int]]) -> MailSource:
        mail = next(m for m in self._folder(folder).mails if m.uid == head.ref.uid)
        spans = split_message(mail.raw).spans
        texts = []
        for part, cap in wanted:
            start, end = spans[part.path]
            texts.append(PartBytes(part, mail.raw[start : min(end, start + cap)], cut=end - start > cap))
        return MailSource(head.headers, head.structure, tuple(texts))

    @property
    def can_idle(self) -> bool:
        return self._world.can_idle

    def idle(self, folder: str, seconds: float, stop: threading.Event) -> bool:
        if self._world.can_idle:
            stop.wait(seconds)  # there is never any news
        return False

    def _folder(self, name: str) -> Folder:
        self._world.commands.append(name)
        if self._world.answer_s:
            self._world.clock.advance(self._world.answer_s)
        self._check()
        if not self._open:
            raise MailboxLost("not open")
        if name not in self._world.folders:
            raise CommandRefused("no such folder", "NONEXISTENT")
        return self._world.folders[name]

    def _check(self) -> None:
        if self._world.trouble is not None:
            raise self._world.trouble


@dataclass(frozen=True)
class FakePlace:
    folder: str
    uidvalidity: int
    uidnext: int
