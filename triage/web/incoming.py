"""What a client may send: so many bytes and so many seconds a request, however it drips."""

from __future__ import annotations

import io
import socket
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MOST_HEAD_BYTES = 16_384
REQUEST_S = 10.0
"""From the first moment a request could come (or the last one ended) to its last header."""


class Incoming(io.RawIOBase):
    """The reading side of a connection. Raises TimeoutError once a request's time is over.

    A request of too many bytes ends early, as if the client had stopped sending; `exceeded` tells it from one that did.
    """

    def __init__(self, connection: socket.socket, seconds: float = REQUEST_S) -> None:
        self._connection, self._seconds = connection, seconds
        self.begin()

    def begin(self) -> None:
        """The next request may come."""
        self._left = MOST_HEAD_BYTES
        self._deadline = time.monotonic() + self._seconds
        self.exceeded = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if not self._left:
            self.exceeded = True
            return 0
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError("the request took too long")
        self._connection.settimeout(remaining)
        count = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= count
        return count
