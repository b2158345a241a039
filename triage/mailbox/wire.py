"""The connection: commands go out together, answers come back one by one. The only file that touches imaplib.

imaplib reads the answers; sending is ours, because imaplib waits for each answer before it lets the next command go.
What is used of it beside its documented hooks (`open`, `read`, `readline`, `send`, `shutdown`) is `_new_tag`,
`_get_response`, `tagged_commands`, `untagged_responses`, `_get_capabilities`, `_log`; a test holds these names.
"""

from __future__ import annotations

import contextlib
import imaplib
import re
import socket
import ssl
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from triage.domain.errors import MailboxError, MailboxLost, MailboxRefused
from triage.mailbox.answers import Reply, farewell, printable
from triage.mailbox.stream import AnswerTooLongError, DeadlineStream

_CRLF = b"\r\n"
_LOGOUT_S = 5.0
_IDLE_SLICE_S = 0.25

_BATCH = 32_768
"""Octets sent before answers are read, so that neither side waits for the other with full buffers."""


_SELECTING = frozenset({"SELECT", "EXAMINE"})
_ASKED_BY: Mapping[str, frozenset[str]] = {
    "SEARCH": frozenset({"SEARCH"}),
    "FETCH": frozenset({"FETCH"}),
    "STATUS": frozenset({"STATUS"}),
    "LIST": frozenset({"LIST"}),
    "NAMESPACE": frozenset({"NAMESPACE"}),
    "COPYUID": frozenset({"COPY", "MOVE"}),
    **dict.fromkeys(("EXISTS", "FLAGS", "PERMANENTFLAGS", "UIDVALIDITY", "HIGHESTMODSEQ", "NOMODSEQ"), _SELECTING),
}
"""Untagged data and the commands that ask for it."""

_CORRELATOR = re.compile(rb'\(TAG "?([^")]+)"?\)', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: the handshakes and the greeting, and the answer to one command."""

    connect_s: float
    command_s: float


class _Imap4(imaplib.IMAP4):
    """imaplib on a DeadlineStream, quiet, and content with capabilities that the server told unasked."""

    def __init__(self, stream: DeadlineStream) -> None:
        self.stream = stream
        super().__init__()

    def open(self, *_: object, **__: object) -> None:
        self.sock = self.stream.sock

    def read(self, size: int) -> bytes:
        return self.stream.read(size)

    def readline(self) -> bytes:
        return self.stream.readline()

    def send(self, data: bytes) -> None:  # type: ignore[override]
        self.stream.send(data)

    def shutdown(self) -> None:
        self.stream.close()

    def _get_capabilities(self) -> None:
        told = _capabilities(self.untagged_responses.get("CAPABILITY", ()))
        if told:
            self.capabilities = told
        else:
            super()._get_capabilities()  # type: ignore[misc]

    def _log(self, line: object) -> None:
        """imaplib keeps the last ten lines for its debug log, the login among them; we keep none."""


class Wire:
    """One connection. Not thread-safe. After any error but a refusal it is closed for good.

    Every method raises MailboxLost when the connection is gone, times out or answers what cannot be read, and
    MailboxBusy when the server says goodbye for being busy.
    """

    def __init__(
        self, host: str, port: int, timeouts: Timeouts, monotonic: Callable[[], float], tls: ssl.SSLContext | None
    ) -> None:
        """Connect, with TLS from the start if `tls` is given, and read the greeting.

        Raises MailboxRefused for a certificate that cannot be trusted.
        """
        self.where = f"{host}:{port}"
        self._host = host
        self._timeouts = timeouts
        self._secrets: tuple[str, ...] = ()
        self.closed = False
        self._stream: DeadlineStream | None = None
        with self._translated():
            sock = socket.create_connection((host, port), timeouts.connect_s)
            self._stream = DeadlineStream(sock, monotonic)
            self._stream.allow(timeouts.connect_s)
            if tls:
                self._stream.upgrade(tls, host)
            self._stream.allow(timeouts.connect_s)
            self._imap = _Imap4(self._stream)
            self._imap.untagged_responses = {}

    @property
    def capabilities(self) -> frozenset[str]:
        return frozenset(self._imap.capabilities)

    @property
    def already_authenticated(self) -> bool:
        """The server greeted with PREAUTH."""
        return str(self._imap.state) == "AUTH"

    def conceal(self, *secrets: str) -> None:
        """Keep a secret out of every message, even where the server repeats it."""
        self._secrets = tuple(sorted(filter(None, secrets), key=len, reverse=True))

    def learn_capabilities(self, reply: Reply) -> None:
        """Take over what an answer said about capabilities; ask if it said nothing."""
        told = _capabilities(reply.lines("CAPABILITY")) or _capabilities(self.run(b"CAPABILITY")[0].lines("CAPABILITY"))
        if told:
            self._imap.capabilities = told

    def start_tls(self, context: ssl.SSLContext) -> None:
        """STARTTLS (RFC 9051, 6.2.1). Everything learnt in the clear is forgotten.

        Raises MailboxRefused where the server does not offer it or the certificate cannot be trusted.
        """
        if self.already_authenticated or "STARTTLS" not in self.capabilities or not self.run(b"STARTTLS")[0].ok:
            self.drop()
            raise MailboxRefused(f"{self.where}: the server offers no STARTTLS; use security 'tls' if it has that")
        with self._translated():
            assert self._stream is not None
            self._stream.allow(self._timeouts.connect_s)
            self._stream.upgrade(context, self._host)
            self._imap.sock = self._stream.sock
        self.learn_capabilities(Reply("OK", ""))

    def run(self, *commands: bytes) -> list[Reply]:
        """Send commands (without tag) together and read their answers, in order.

        A NO or BAD is a Reply like any other: what comes behind it was sent already. Only commands that do not need
        each other's answers may go together (RFC 9051, 5.5).
        """
        replies: list[Reply] = []
        with self._translated():
            for batch in _batches(commands):
                tags = [self._tag() for _ in batch]
                self._allow()
                self._send(_CRLF.join(tag + b" " + line for tag, line in zip(tags, batch, strict=True)) + _CRLF)
                replies += self._answers(dict(zip(tags, map(_verb, batch), strict=True)))
        return replies

    def authenticate(self, mechanism: str, initial: bytes) -> Reply:
        """AUTHENTICATE with one client message (RFC 9051, 6.2.2; SASL-IR: RFC 4959). `initial` is base64."""
        with self._translated():
            tag = self._tag()
            self._allow()
            told = [b"AUTHENTICATE", mechanism.encode("ascii")]
            pending = [initial]
            if "SASL-IR" in self.capabilities:
                told.append(pending.pop())
            self._send(tag + b" " + b" ".join(told) + _CRLF)

            def go_on() -> None:  # our message, then empty ones (XOAUTH2 tells errors this way)
                self._send((pending.pop() if pending else b"") + _CRLF)

            return self._answers({tag: "AUTHENTICATE"}, go_on)[0]

    def limit(self, command_s: float) -> None:
        """Bound the answer to each following command."""
        self._timeouts = replace(self._timeouts, command_s=command_s)

    def idle(self, seconds: float, stop: Callable[[], bool]) -> bool:
        """IDLE (RFC 2177) until the server tells of new messages (True), `stop` says so or the time has passed.

        False at once where the server refuses to.
        """
        with self._translated():
            assert self._stream is not None
            tag = self._tag()
            self._allow()
            self._send(tag + b" IDLE" + _CRLF)
            while self._imap._get_response() is not None:  # None: the continuation that says it idles
                if self._imap.tagged_commands[tag] is not None:
                    del self._imap.tagged_commands[tag]
                    return False
            news = self._listen(seconds, stop)
            self._allow()
            self._send(b"DONE" + _CRLF)
            reply = self._answers({tag: "IDLE"})[0]
            return news or "EXISTS" in reply.untagged

    def _listen(self, seconds: float, stop: Callable[[], bool]) -> bool:
        """Read what comes untagged, a slice of time each, so that `stop` is heard."""
        assert self._stream is not None
        while seconds > 0 and not stop():
            piece = min(seconds, _IDLE_SLICE_S)
            self._stream.allow(piece)
            try:
                self._imap._get_response()
            except TimeoutError:
                seconds -= piece  # a line that has come in part stays in the stream's buffer
                continue
            if "BYE" in self._imap.untagged_responses:
                raise _FarewellError(_text(self._imap.untagged_responses["BYE"][-1]))
            if "EXISTS" in self._imap.untagged_responses:
                return True
        return False

    def logout(self) -> None:
        """LOGOUT and close. Raises what `run` raises."""
        if self.closed:
            return
        with self._translated():
            tag = self._tag()
            assert self._stream is not None
            self._stream.allow(min(_LOGOUT_S, self._timeouts.command_s))
            self._send(tag + b" LOGOUT" + _CRLF)
            with contextlib.suppress(_FarewellError):
                self._answers({tag: "LOGOUT"})
        self.drop()

    def drop(self) -> None:
        """Close without a word; never raises."""
        self.closed = True
        if self._stream is not None:
            self._stream.close()

    # ------------------------------------------------------------ imaplib from here on

    def _tag(self) -> bytes:
        if self.closed:
            raise imaplib.IMAP4.abort("the connection is closed")
        return bytes(self._imap._new_tag())

    def _allow(self) -> None:
        assert self._stream is not None
        self._stream.allow(self._timeouts.command_s)

    def _send(self, data: bytes) -> None:
        self._imap.send(data)

    def _answers(self, verbs: Mapping[bytes, str], go_on: Callable[[], None] | None = None) -> list[Reply]:
        """Read until every command (tag: verb) is answered; the answers in the order of the commands.

        A server may complete commands late and together, or a quick one before a slow one (Dovecot does both). So what
        came untagged goes to the command that ends next, unless it names another one (ESEARCH), or is the kind of data
        that another open command asked for. Callers merge what several commands of one kind brought.
        """
        replies: dict[bytes, Reply] = {}
        while len(replies) < len(verbs):
            if self._imap._get_response() is None:
                if go_on is None:
                    raise imaplib.IMAP4.abort("a continuation nobody asked for")
                go_on()
            if "BYE" in self._imap.untagged_responses:
                raise _FarewellError(_text(self._imap.untagged_responses["BYE"][-1]))
            for tag in verbs.keys() - replies.keys():
                if (completed := self._imap.tagged_commands[tag]) is not None:
                    del self._imap.tagged_commands[tag]
                    status, data = str(completed[0]), completed[1]
                    still_open = {verb for t, verb in verbs.items() if t != tag and t not in replies}
                    replies[tag] = Reply(
                        status, self._clean(_text(data[-1])), self._untagged(tag, verbs[tag], still_open)
                    )
                    self._allow()  # the next command has its own time
        return [replies[tag] for tag in verbs]

    def _untagged(self, tag: bytes, verb: str, still_open: Collection[str]) -> dict[str, list[Any]]:
        mine: dict[str, list[Any]] = {}
        others: dict[str, list[Any]] = {}
        for kind, lines in self._imap.untagged_responses.items():
            if kind == "ESEARCH":
                mine[kind] = [line for line in lines if _names(line) in (tag, None)]
                others[kind] = [line for line in lines if _names(line) not in (tag, None)]
            else:
                asked_by = _ASKED_BY.get(kind, frozenset())
                (mine if verb in asked_by or not asked_by.intersection(still_open) else others)[kind] = list(lines)
        self._imap.untagged_responses = {kind: lines for kind, lines in others.items() if lines}
        return mine

    def _clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return printable(text)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except BaseException as exc:
            self.drop()
            error = self._error(exc)
            if error is None:
                raise
            raise error from None

    def _error(self, exc: BaseException) -> MailboxError | None:
        """The error of ours for one of the socket, TLS or imaplib; its text never quotes what could be mail."""
        match exc:
            case MailboxError():
                return exc
            case _FarewellError():
                return farewell(self._clean(str(exc)), self.where)
            case ssl.SSLCertVerificationError():
                return MailboxRefused(
                    f"{self.where}: the server's certificate cannot be trusted ({exc.verify_message}); "
                    "set ca_file to the authority that signed it, or use the host name it was made for"
                )
            case TimeoutError():
                return MailboxLost(f"{self.where}: no complete answer in time")
            case AnswerTooLongError():
                return MailboxLost(f"{self.where}: an answer was longer than any answer may be")
            case socket.gaierror():
                return MailboxLost(f"{self.where}: the host name cannot be resolved")
            case ssl.SSLError():
                return MailboxLost(f"{self.where}: TLS failed ({exc.reason or type(exc).__name__})")
            case OSError():
                return MailboxLost(f"{self.where}: {exc.strerror or type(exc).__name__}")
            case imaplib.IMAP4.error():
                return self._imap_error(exc)
            case UnicodeError() | ValueError() | LookupError() | TypeError() | AttributeError():
                return MailboxLost(f"{self.where}: an answer could not be read")
        return None

    def _imap_error(self, exc: imaplib.IMAP4.error) -> MailboxError:
        bye = getattr(getattr(self, "_imap", None), "untagged_responses", {}).get("BYE")
        if bye:
            return farewell(self._clean(_text(bye[-1])), self.where)
        detail = exc.args[0] if exc.args else ""
        if isinstance(detail, bytes) and detail.upper().startswith(b"* BYE"):  # instead of a greeting
            return farewell(self._clean(_text(detail[5:].strip())), self.where)
        known = ("socket error: EOF", "the connection is closed")
        told = next((k for k in known if isinstance(detail, str) and k in detail), "an answer could not be read")
        return MailboxLost(f"{self.where}: {told.replace('socket error: EOF', 'the server closed the connection')}")


class _FarewellError(Exception):
    """An untagged BYE came with an answer."""


def _text(data: object) -> str:
    return data.decode("utf-8", "replace") if isinstance(data, bytes) else ""


def _names(line: object) -> bytes | None:
    """The tag of the command an ESEARCH answer belongs to."""
    match = _CORRELATOR.search(line) if isinstance(line, bytes) else None
    return match[1] if match else None


def _capabilities(lines: Sequence[object]) -> tuple[str, ...]:
    """The words of the last CAPABILITY line, in capitals."""
    return tuple(_text(lines[-1]).upper().split()) if lines else ()


def _verb(command: bytes) -> str:
    """The command's name; of UID commands the second word."""
    words = command.split(b" ", 2)
    return (words[1] if words[0] == b"UID" else words[0]).decode("ascii")


def _batches(commands: Sequence[bytes]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    used = 0
    for command in commands:
        if b"\r" in command or b"\n" in command:
            raise ValueError("a command is one line")
        if batch and used + len(command) > _BATCH:
            yield batch
            batch, used = [], 0
        batch.append(command)
        used += len(command)
    if batch:
        yield batch
