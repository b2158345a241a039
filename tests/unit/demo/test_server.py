"""The demo's IMAP server as a client sees it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from imapclient import IMAPClient
from imapclient.exceptions import LoginError

from triage.demo.mails import sample_mails
from triage.demo.server import DemoServer

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
SAMPLES = sample_mails(NOW)
LABEL = b"Triage/receipt"


@pytest.fixture(scope="module")
def samples_server() -> Iterator[DemoServer]:
    with DemoServer(SAMPLES) as server:
        yield server


@pytest.fixture
def server() -> Iterator[DemoServer]:
    with DemoServer(SAMPLES) as server:
        yield server


def connected(server: DemoServer) -> IMAPClient:
    address = server.address
    client = IMAPClient(address.host, address.port, ssl=False, timeout=10)
    client.login(address.user, address.password)
    return client


@pytest.fixture
def inbox(server: DemoServer) -> Iterator[IMAPClient]:
    with connected(server) as client:
        client.select_folder("INBOX")
        yield client


@pytest.fixture
def reader(samples_server: DemoServer) -> Iterator[IMAPClient]:
    with connected(samples_server) as client:
        client.select_folder("INBOX")
        yield client


def test_it_starts_and_stops_fast() -> None:
    start = time.monotonic()
    with DemoServer(SAMPLES) as server, connected(server):
        pass
    assert time.monotonic() - start < 2


def test_it_ends_connections_and_its_thread_when_it_stops() -> None:
    with DemoServer() as server:
        client = connected(server)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("demo-")]
    with pytest.raises((OSError, client.AbortError)):
        client.noop()
    client.shutdown()


def test_a_taken_port_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        DemoServer(port=taken.getsockname()[1]).__enter__()


def test_it_listens_on_loopback_at_the_port_asked_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with DemoServer(port=port) as server:
        assert (server.address.host, server.address.port) == ("127.0.0.1", port)
        with connected(server):
            pass


def test_a_wrong_password_is_refused(samples_server: DemoServer) -> None:
    address = samples_server.address
    with IMAPClient(address.host, address.port, ssl=False, timeout=10) as client, pytest.raises(LoginError):
        client.login(address.user, "wrong")


def test_every_server_has_a_password_of_its_own() -> None:
    assert DemoServer().address.password != DemoServer().address.password


def test_it_has_what_triage_uses(reader: IMAPClient) -> None:
    capabilities = set(reader.capabilities())
    assert {b"MOVE", b"UIDPLUS", b"IDLE", b"SPECIAL-USE", b"OBJECTID"} <= capabilities
    assert not {b"CONDSTORE", b"STARTTLS"} & capabilities


def test_archive_and_sent_bear_their_special_use(reader: IMAPClient) -> None:
    folders = {name: set(flags) for flags, _, name in reader.list_folders()}
    assert b"\\Archive" in folders["Archive"]
    assert b"\\Sent" in folders["Sent"]
    assert not {b"\\Archive", b"\\Sent"} & folders["INBOX"]


def test_select_says_that_keywords_are_kept(reader: IMAPClient) -> None:
    facts = reader.select_folder("INBOX")
    assert b"\\*" in facts[b"PERMANENTFLAGS"]
    assert b"\\*" not in facts[b"FLAGS"]
    assert b"Triage/conversation" in facts[b"FLAGS"]


def test_every_sample_lies_in_its_mailbox_with_its_flags(reader: IMAPClient) -> None:
    for mailbox in ("INBOX", "Archive", "Sent"):
        reader.select_folder(mailbox, readonly=True)
        fetched = reader.fetch(reader.search("ALL"), ["FLAGS", "BODY.PEEK[]"])
        held = [(m[b"BODY[]"], set(m[b"FLAGS"])) for _, m in sorted(fetched.items())]
        assert held == [(s.raw, {f.encode() for f in s.flags}) for s in SAMPLES if s.mailbox == mailbox]


def test_arrival_times_are_those_of_the_sample(reader: IMAPClient) -> None:
    reader.normalise_times = False
    fetched = reader.fetch(reader.search("ALL"), ["INTERNALDATE"])
    times = [m[b"INTERNALDATE"] for _, m in sorted(fetched.items())]
    assert times == [s.received for s in SAMPLES if s.mailbox == "INBOX"]


def test_a_keyword_is_kept_and_searched_by(server: DemoServer, inbox: IMAPClient) -> None:
    uids = inbox.search(["UNKEYWORD", LABEL])
    inbox.add_flags(uids[:2], [LABEL], silent=True)
    with connected(server) as other:
        other.select_folder("INBOX")
        assert other.search(["KEYWORD", LABEL]) == uids[:2]
        assert other.search(["UNKEYWORD", LABEL]) == uids[2:]
        assert LABEL in other.get_flags(uids[:1])[uids[0]]


def test_a_plain_set_in_a_uid_search_means_message_numbers(reader: IMAPClient) -> None:
    """RFC 9051, 6.4.9: windows over the last messages depend on it."""
    everything = reader.search("ALL")
    assert reader.search(f"{len(everything) - 9}:* UNDELETED") == everything[-10:]
    assert reader.search(f"UID {everything[-3]}:*") == everything[-3:]


def test_search_by_day_and_by_message_id(reader: IMAPClient) -> None:
    recent = reader.search(["SINCE", NOW.date()])
    inbox = [s for s in SAMPLES if s.mailbox == "INBOX"]
    assert len(recent) == sum(s.received.date() >= NOW.date() for s in inbox)
    found = reader.search("OR HEADER Message-ID <cosecha.1@elmirador.example> HEADER Message-ID <none@x.example>")
    assert len(found) == 1


def test_move_keeps_the_keyword(inbox: IMAPClient) -> None:
    uid = inbox.search(["SUBJECT", "Order confirmation 50912"])[0]
    inbox.add_flags([uid], [LABEL], silent=True)
    inbox.move([uid], "Archive")
    assert uid not in inbox.search("ALL")
    inbox.select_folder("Archive")
    assert len(inbox.search(["KEYWORD", LABEL, "SUBJECT", "Order confirmation 50912"])) == 1


def test_a_created_mailbox_keeps_keywords_too(inbox: IMAPClient) -> None:
    inbox.create_folder("Elsewhere")
    inbox.append("Elsewhere", SAMPLES[0].raw, [LABEL], SAMPLES[0].received)
    inbox.select_folder("Elsewhere")
    assert inbox.search(["KEYWORD", LABEL])


def test_a_copy_to_nowhere_says_trycreate(inbox: IMAPClient) -> None:
    with pytest.raises(inbox.Error, match="TRYCREATE"):
        inbox.copy(inbox.search("ALL")[:1], "Nowhere")


def test_structure_and_the_first_octets_of_every_message_can_be_fetched(reader: IMAPClient) -> None:
    """Broken mail included: no message takes the connection down. Peeking leaves flags alone."""
    uids = reader.search("ALL")
    before = reader.get_flags(uids)
    for uid in uids:
        answer = reader.fetch([uid], ["ENVELOPE", "BODYSTRUCTURE", "BODY.PEEK[HEADER]", "BODY.PEEK[1]<0.64>"])[uid]
        assert answer[b"BODYSTRUCTURE"]
        assert len(answer[b"BODY[1]<0>"]) <= 64
    assert reader.get_flags(uids) == before


def test_replies_share_a_thread_id_with_their_parent(reader: IMAPClient) -> None:
    uids = reader.search(["SUBJECT", "Cupping notes"])
    ids = {answer[b"THREADID"] for answer in reader.fetch(uids, ["THREADID"]).values()}
    assert len(uids) == 2
    assert len(ids) == 1
