"""A socket whose reads and writes are bounded by one deadline and one budget of bytes for each answer."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable

MAX_LINE = 1_000_000
"""Octets in one line outside literals; longer ones end the connection."""

MAX_ANSWER = 64 * 1024 * 1024
"""Octets in the whole answer to one command."""

_CHUNK = 65536


class AnswerTooLongError(Exception):
    """The server sent more than any answer may hold."""


class DeadlineStream:
    """Reads lines and literals until a deadline, however slowly the bytes drip in.

    A time-out per `recv` is not enough: a server that sends a byte a second would hold a run for ever. `monotonic`
    returns seconds. Every method raises OSError (TimeoutError at the deadline) once the connection is unusable.
    """

    def __init__(self, sock: socket.socket, monotonic: Callable[[], float]) -> None:
        self.sock = sock
        self._monotonic = monotonic
        self._buffer = bytearray()
        self._deadline = monotonic()
        self._budget = MAX_ANSWER
        # Without this, a second small packet waits 40 ms for the acknowledgement of the first.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def allow(self, seconds: float) -> None:
        """Start a new answer: it may take this long, and MAX_ANSWER octets."""
        self._deadline = self._monotonic() + seconds
        self._budget = MAX_ANSWER

    def readline(self) -> bytes:
        """One line with its CRLF; b"" (or what came) when the server has closed."""
        searched = 0
        while (end := self._buffer.find(b"\r\n", searched)) < 0:
            searched = max(0, len(self._buffer) - 1)
            if len(self._buffer) > MAX_LINE:
                raise AnswerTooLongError
            if not self._fill():
                return self._take(len(self._buffer))
        if end > MAX_LINE:
            raise AnswerTooLongError
        return self._take(end + 2)

    def read(self, size: int) -> bytes:
        """Exactly `size` octets of a literal; fewer only when the server has closed."""
        if size > self._budget:
            raise AnswerTooLongError
        while len(self._buffer) < size and self._fill():
            pass
        return self._take(min(size, len(self._buffer)))

    def send(self, data: bytes) -> None:
        self.sock.settimeout(self._left())
        self.sock.sendall(data)

    def upgrade(self, context: ssl.SSLContext, host: str) -> None:
        """Turn TLS on (STARTTLS). What came in the clear behind the answer is thrown away (CVE-2011-0411)."""
        self._buffer.clear()
        self.sock.settimeout(self._left())
        self.sock = context.wrap_socket(self.sock, server_hostname=host)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self.sock.close()

    def _left(self) -> float:
        left = self._deadline - self._monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def _fill(self) -> bool:
        self.sock.settimeout(self._left())
        data = self.sock.recv(_CHUNK)
        self._budget -= len(data)
        if self._budget < 0:
            raise AnswerTooLongError
        self._buffer += data
        return bool(data)

    def _take(self, size: int) -> bytes:
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data
