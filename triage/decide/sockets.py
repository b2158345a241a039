"""Sockets that end at a deadline whatever the server does; a timeout per read would start again at each byte."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import httpcore

from triage.ports import Clock

SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


class Deadline:
    """The deadline of the request that the current thread is making, as a `Clock.monotonic` instant."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._local = threading.local()

    @contextmanager
    def until(self, instant: float) -> Iterator[None]:
        """Hold this thread's socket calls to `instant`."""
        self._local.instant = instant
        try:
            yield
        finally:
            self._local.instant = None

    def within(self, timeout: float | None) -> float | None:
        """The shorter of `timeout` and the time left, in seconds; raises httpcore.ReadTimeout when none is left."""
        instant: float | None = getattr(self._local, "instant", None)
        if instant is None:
            return timeout
        left = instant - self._clock.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("deadline")
        return left if timeout is None else min(timeout, left)


class DeadlineBackend(httpcore.NetworkBackend):
    """TCP connections whose every call is held to the calling thread's deadline."""

    def __init__(self, deadline: Deadline) -> None:
        self._inner = httpcore.SyncBackend()
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore.NetworkStream:
        stream = self._inner.connect_tcp(host, port, self._deadline.within(timeout), local_address, socket_options)
        return _DeadlineStream(stream, self._deadline)


class _DeadlineStream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._deadline.within(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._deadline.within(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        inner = self._inner.start_tls(ssl_context, server_hostname, self._deadline.within(timeout))
        return _DeadlineStream(inner, self._deadline)

    def get_extra_info(self, info: str) -> object:
        return self._inner.get_extra_info(info)
