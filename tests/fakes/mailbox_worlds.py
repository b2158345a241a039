"""The servers the contract of the Mailbox port is proved on: a real Dovecot, and the scripted server."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Protocol

from fakes.imap_mailboxes import SYSTEM_FLAGS, FakeBox, FakeMail
from fakes.scripted_imap import ScriptedImap
from services.dovecot import Dovecot, Mail
from triage.clock import SystemClock
from triage.mailbox.imap import ImapMailbox
from triage.mailbox.settings import ConnectionSettings


def settings_for(host: str, port: int, **changes: Any) -> ConnectionSettings:
    """Settings for a server on this machine: plain text, any user, a short time-out; `changes` go on top."""
    values: dict[str, Any] = {
        "host": host,
        "port": port,
        "username": "desk",
        "secret": lambda: "open-sesame",
        "security": "plain",
        "command_timeout_s": 10.0,
        "connect_timeout_s": 10.0,
    }
    return ConnectionSettings(**(values | changes))


def mailbox_at(port: int, **changes: Any) -> ImapMailbox:
    """The adapter on a server of this machine, not yet open."""
    return ImapMailbox(settings_for("127.0.0.1", port, **changes), clock=SystemClock())


class World(Protocol):
    """One account on one server, and what another client of it does and sees."""

    def mailbox(self, **changes: Any) -> ImapMailbox: ...
    def append(self, mails: Iterable[Mail], mailbox: str = "INBOX") -> list[int]: ...
    def state(self, mailbox: str = "INBOX") -> dict[int, tuple[set[str], int]]:
        """Flags (without \\Recent) and MODSEQ by UID."""
        ...

    def flags(self, mailbox: str = "INBOX") -> dict[int, set[str]]: ...
    def set_flags(self, uid: int, flags: str, mailbox: str = "INBOX") -> None: ...
    def remove(self, uid: int) -> None: ...


class DovecotWorld:
    """A fresh user of a running Dovecot."""

    def __init__(self, server: Dovecot) -> None:
        self._server = server
        self._user = f"user{time.monotonic_ns()}"

    def mailbox(self, **changes: Any) -> ImapMailbox:
        at: dict[str, Any] = {"port": self._server.port}
        if self._server.ca_file is not None:
            at = {"port": self._server.tls_port, "security": "tls", "ca_file": str(self._server.ca_file)}
        return mailbox_at(**(at | {"username": self._user, "secret": lambda: self._server.password} | changes))

    def append(self, mails: Iterable[Mail], mailbox: str = "INBOX") -> list[int]:
        return self._server.append(self._user, mails, mailbox)

    def state(self, mailbox: str = "INBOX") -> dict[int, tuple[set[str], int]]:
        return self._server.state(self._user, mailbox)

    def flags(self, mailbox: str = "INBOX") -> dict[int, set[str]]:
        return self._server.flags(self._user, mailbox)

    def set_flags(self, uid: int, flags: str, mailbox: str = "INBOX") -> None:
        client = self._server.client(self._user)
        client.select(f'"{mailbox}"')
        client.uid("STORE", str(uid), "FLAGS", f"({flags})")
        client.logout()

    def remove(self, uid: int) -> None:
        client = self._server.client(self._user)
        client.select("INBOX")
        client.uid("STORE", str(uid), "+FLAGS", "(\\Deleted)")
        client.uid("EXPUNGE", str(uid))
        client.logout()


class ScriptedWorld:
    """The scripted server with an archive and a sent mailbox."""

    def __init__(self, server: ScriptedImap) -> None:
        self.server = server

    def mailbox(self, **changes: Any) -> ImapMailbox:
        return mailbox_at(**({"port": self.server.port} | changes))

    def append(self, mails: Iterable[Mail], mailbox: str = "INBOX") -> list[int]:
        box = self.server.box(mailbox)
        uids = []
        for mail in mails:
            added = FakeMail(box.uidnext, flags=list(mail.flags), received=mail.received, raw=mail.octets())
            box.mails.append(added)
            box.touch(added)
            uids.append(added.uid)
        return uids

    def state(self, mailbox: str = "INBOX") -> dict[int, tuple[set[str], int]]:
        found = [b for b in self.server.boxes if b.name == mailbox]
        return {m.uid: (set(m.flags), m.modseq) for b in found for m in b.mails}

    def flags(self, mailbox: str = "INBOX") -> dict[int, set[str]]:
        return {uid: flags for uid, (flags, _) in self.state(mailbox).items()}

    def set_flags(self, uid: int, flags: str, mailbox: str = "INBOX") -> None:
        box = self.server.box(mailbox)
        mail = box.by_uid(uid)
        assert mail is not None
        mail.flags = flags.split()
        box.touch(mail)

    def remove(self, uid: int) -> None:
        self.server.vanish(uid)


def scripted_boxes() -> list[FakeBox]:
    return [
        FakeBox("INBOX"),
        FakeBox("Archive", uidvalidity=8, special="\\Archive"),
        FakeBox("Sent", uidvalidity=9, special="\\Sent", permanent=(*SYSTEM_FLAGS, "\\*")),
    ]
