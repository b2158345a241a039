"""What the connection relies on: names inside imaplib, deadlines, and that nothing can be slipped into a command."""

from __future__ import annotations

import imaplib
import inspect
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from triage.domain.errors import ConfigError, MailboxLost
from triage.mailbox.settings import ConnectionSettings, is_loopback
from triage.mailbox.stream import MAX_LINE, AnswerTooLongError, DeadlineStream
from triage.mailbox.wire import Timeouts, Wire


def test_imaplib_still_has_the_inside_we_use() -> None:
    """A new Python may move them; then only triage/mailbox/wire.py has to change."""
    for name in (
        "_new_tag",
        "_get_response",
        "_get_capabilities",
        "_log",
        "open",
        "read",
        "readline",
        "send",
        "shutdown",
    ):
        assert callable(getattr(imaplib.IMAP4, name)), name
    source = inspect.getsource(imaplib.IMAP4)
    for name in (
        "self.tagged_commands[tag] = (typ, [dat])",
        "self.untagged_responses",
        "self.capabilities",
        "self.state",
    ):
        assert name in source, name


def test_only_one_file_touches_imaplib() -> None:
    import triage.mailbox

    folder = next(iter(triage.mailbox.__path__))
    from pathlib import Path

    users = [
        p.name for p in Path(folder).glob("*.py") if "imaplib." in p.read_text() and "import imaplib" in p.read_text()
    ]
    assert users == ["wire.py"]


@pytest.fixture
def pair() -> Iterator[tuple[DeadlineStream, socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
        stream = DeadlineStream(ours, time.monotonic)
        yield stream, theirs
        stream.close()
        theirs.close()


def test_lines_and_literals_in_any_pieces(pair: tuple[DeadlineStream, socket.socket]) -> None:
    stream, theirs = pair
    stream.allow(5)

    def send() -> None:
        for octet in b"one\r\nbare \n stays\r\nlit" + b"eral\r\n":
            theirs.sendall(bytes([octet]))
            time.sleep(0.001)
        theirs.close()

    sender = threading.Thread(target=send)
    sender.start()
    assert stream.readline() == b"one\r\n"
    assert stream.readline() == b"bare \n stays\r\n"
    assert stream.read(3) == b"lit"
    assert stream.readline() == b"eral\r\n"
    assert stream.readline() == b""
    sender.join()


def test_the_deadline_is_for_the_whole_answer(pair: tuple[DeadlineStream, socket.socket]) -> None:
    stream, theirs = pair
    stop = threading.Event()

    def drip() -> None:
        while not stop.wait(0.01):
            theirs.sendall(b"x")

    dripper = threading.Thread(target=drip)
    dripper.start()
    stream.allow(0.2)
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        stream.readline()
    assert 0.15 < time.monotonic() - started < 2
    stop.set()
    dripper.join()


def test_a_peer_that_does_not_read_cannot_hold_a_write_for_ever(pair: tuple[DeadlineStream, socket.socket]) -> None:
    stream, _ = pair
    stream.allow(0.2)
    with pytest.raises(TimeoutError):
        stream.send(b"x" * 50_000_000)


def test_a_line_without_end_and_a_literal_without_measure_are_refused(
    pair: tuple[DeadlineStream, socket.socket],
) -> None:
    stream, theirs = pair
    stream.allow(5)
    with pytest.raises(AnswerTooLongError):
        stream.read(10**12)
    sender = threading.Thread(target=lambda: theirs.sendall(b"x" * (MAX_LINE + 100_000)))
    sender.start()
    with pytest.raises(AnswerTooLongError):
        stream.readline()
    sender.join()


def test_a_line_break_in_a_command_never_reaches_the_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        heard: list[bytes] = []

        def serve() -> None:
            theirs, _ = listener.accept()
            with theirs:
                theirs.sendall(b"* OK [CAPABILITY IMAP4rev1] hi\r\n")
                heard.append(theirs.recv(1000))

        server = threading.Thread(target=serve)
        server.start()
        wire = Wire("127.0.0.1", listener.getsockname()[1], Timeouts(5, 5), time.monotonic, None)
        with pytest.raises(MailboxLost):
            wire.run(b"NOOP\r\nx LOGOUT")
        with pytest.raises(MailboxLost, match="closed"):
            wire.run(b"NOOP")
        server.join()
        assert heard == [b""]


def test_settings_show_no_secret() -> None:
    settings = ConnectionSettings("localhost", 143, "desk", lambda: "hunter2", security="plain")
    assert "secret" not in repr(settings)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "127.0.0.1", "127.9.9.9", "::1"])
def test_this_machine_by_any_name(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["imap.example.com", "10.0.0.1", "localhost.example.com", "0.0.0.0", ""])
def test_other_machines(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(ConfigError):
        ConnectionSettings(host, 143, "desk", lambda: "x", security="plain")


@pytest.mark.parametrize("change", [{"command_timeout_s": 0}, {"connect_timeout_s": -1}, {"select_window": 0}])
def test_settings_that_could_not_work_are_refused(change: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        ConnectionSettings("localhost", 993, "desk", lambda: "x", **change)  # type: ignore[arg-type]
