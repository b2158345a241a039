"""The MailReader port, held by the adapter on a real server and by the tests' own mailbox in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from fakes.mail_reader import MailWorld, StepClock
from services.dovecot import Dovecot, Mail
from support.mail_tool import mail
from triage.agent.ports import MailReader
from triage.clock import SystemClock
from triage.domain.errors import CommandRefused, LoginRefused, MailboxLost
from triage.mailbox.reader import ImapReader
from triage.mailbox.settings import ConnectionSettings
from triage.prepare.choose import choose_parts

TO = "agent+signup-1.abc@desk.example"


@dataclass
class Kind:
    reader: MailReader
    deliver: Callable[[bytes], int]


@pytest.fixture(scope="module")
def server() -> Iterator[Dovecot]:
    with Dovecot("maildir") as dovecot:
        yield dovecot


def imap(server: Dovecot, user: str, password: str = "") -> ImapReader:
    settings = ConnectionSettings(
        host=server.host, port=server.port, username=user, secret=lambda: password or server.password, security="plain"
    )
    return ImapReader(settings, clock=SystemClock())


@pytest.fixture(params=["dovecot", "memory"])
def kind(request: pytest.FixtureRequest) -> Iterator[Kind]:
    if request.param == "memory":
        world = MailWorld(StepClock())
        yield Kind(world.reader(), world.deliver)
        return
    server: Dovecot = request.getfixturevalue("server")
    user = "r" + str(abs(hash(request.node.name)) % 10**12)
    reader = imap(server, user)
    yield Kind(reader, lambda raw: server.append(user, [Mail(raw=raw, received=datetime.now(UTC))])[0])
    reader.close()


def test_the_baseline_is_the_next_uid(kind: Kind) -> None:
    kind.reader.open()
    kind.deliver(mail(TO))
    place = kind.reader.place("INBOX")
    assert kind.deliver(mail(TO)) == place.uidnext
    assert place.uidvalidity > 0


def test_only_newer_mail_of_the_recipient_is_told(kind: Kind) -> None:
    """Also where the last message of all is older: UID n:* would name it."""
    kind.reader.open()
    old = kind.deliver(mail(TO))
    assert kind.reader.arrived("INBOX", old + 1, None)[1] == ()
    kind.deliver(mail("other@desk.example"))
    copied = kind.deliver(mail("other@desk.example", headers=f"Cc: {TO}\r\n"))
    mine = kind.deliver(mail(TO))
    assert kind.reader.arrived("INBOX", old + 1, (("To", "Cc"), TO))[1] == (copied, mine)
    assert kind.reader.arrived("INBOX", 1, (("To",), TO))[1] == (old, mine)
    assert len(kind.reader.arrived("INBOX", 1, None)[1]) == 4


def test_heads_hold_just_the_named_fields(kind: Kind) -> None:
    kind.reader.open()
    uid = kind.deliver(mail(TO, headers="X-Version: 3\r\nX-Other: no\r\n"))
    heads = kind.reader.heads("INBOX", [uid, 4711], ("Subject", "X-Version"))
    assert set(heads) == {uid}
    assert b"X-Version: 3" in heads[uid].headers
    assert b"X-Other" not in heads[uid].headers
    assert heads[uid].received is not None
    assert heads[uid].size > 0


def test_a_source_is_the_text_up_to_its_cap(kind: Kind) -> None:
    kind.reader.open()
    uid = kind.deliver(mail(TO, body="0123456789" * 10))
    head = kind.reader.heads("INBOX", [uid], ("Subject", "Content-Type"))[uid]
    whole = kind.reader.source("INBOX", head, choose_parts(head.structure))
    assert whole.texts[0].data == b"0123456789" * 10
    assert not whole.texts[0].cut
    cut = kind.reader.source("INBOX", head, [(whole.texts[0].part, 10)])
    assert (cut.texts[0].data, cut.texts[0].cut) == (b"0123456789", True)


def test_a_folder_that_is_not_there_is_refused(kind: Kind) -> None:
    kind.reader.open()
    with pytest.raises(CommandRefused):
        kind.reader.place("Nowhere")


def test_a_closed_reader_reads_nothing(kind: Kind) -> None:
    kind.reader.open()
    kind.reader.close()
    with pytest.raises(MailboxLost):
        kind.reader.place("INBOX")


# ------------------------------------------------------------ the adapter alone


def test_reading_touches_no_flag(server: Dovecot) -> None:
    """Proved by the server's own MODSEQ."""
    uid = server.append("flags", [Mail(raw=mail(TO))])[0]
    before = server.state("flags")
    reader = imap(server, "flags")
    reader.open()
    head = reader.heads("INBOX", [uid], ("Subject",))[uid]
    reader.source("INBOX", head, choose_parts(head.structure))
    reader.close()
    assert server.state("flags") == before


def test_a_wrong_password_is_a_refusal(server: Dovecot) -> None:
    with pytest.raises(LoginRefused):
        imap(server, "desk", "wrong").open()


def test_idle_tells_of_new_mail_and_goes_on_reading_afterwards(server: Dovecot) -> None:
    reader = imap(server, "idler")
    reader.open()
    reader.place("INBOX")
    assert reader.can_idle
    threading.Timer(0.3, lambda: server.append("idler", [Mail(raw=mail(TO))])).start()
    assert reader.idle("INBOX", 10, threading.Event())
    assert len(reader.arrived("INBOX", 1, None)[1]) == 1
    reader.close()


def test_idle_ends_with_its_time_and_when_told(server: Dovecot) -> None:
    reader = imap(server, "quiet")
    reader.open()
    began = time.monotonic()
    assert not reader.idle("INBOX", 0.5, threading.Event())
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    assert not reader.idle("INBOX", 30, stop)
    assert time.monotonic() - began < 10
    reader.close()


def test_a_command_gets_no_more_time_than_is_allowed(server: Dovecot) -> None:
    """A server that went silent costs the rest of the wait, not the account's own patience."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        settings = ConnectionSettings(host="127.0.0.1", port=port, username="u", secret=lambda: "p", security="plain")
        reader = ImapReader(settings, clock=SystemClock())
        reader.allow(0.4)
        began = time.monotonic()
        with pytest.raises(MailboxLost):
            reader.open()
        assert time.monotonic() - began < 5
