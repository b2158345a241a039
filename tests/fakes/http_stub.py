"""An HTTP server over raw sockets that can misbehave at every byte: drip, never end, fall silent, break off."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Behaviour = Callable[[socket.socket, threading.Event], None]
"""Writes whatever it likes to the connection, until it is done or the event says that the test is over."""


@dataclass(frozen=True)
class Seen:
    """One request as it came in; `at` is a `time.monotonic` instant."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    at: float

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class HttpStub:
    """Answers each request with the behaviour that `script` picks for it; `seen` holds all requests so far.

    One request a connection, then it is closed: every behaviour begins on a fresh socket.
    """

    def __init__(self, script: Callable[[Seen], Behaviour], tls: ssl.SSLContext | None = None) -> None:
        self.seen: list[Seen] = []
        self._script = script
        self._tls = tls
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._thread = threading.Thread(target=self._listen, daemon=True)

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> HttpStub:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        # A blocked accept is woken by a last connection; closing the socket under it would not wake it.
        socket.create_connection(self._listener.getsockname()).close()
        self._thread.join(5)
        self._listener.close()

    def _listen(self) -> None:
        while not self._over.is_set():
            connection, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        plain.settimeout(30)
        try:
            connection = self._tls.wrap_socket(plain, server_side=True) if self._tls else plain
        except OSError:
            plain.close()
            return
        with connection:
            try:
                seen = _read_request(connection)
                if seen is None:
                    return
                with self._lock:
                    self.seen.append(seen)
                self._script(seen)(connection, self._over)
            except OSError:
                return


def in_order(*behaviours: Behaviour) -> Callable[[Seen], Behaviour]:
    """A script that plays the behaviours one after another, then the last one for ever."""
    lock = threading.Lock()
    left = list(behaviours)

    def script(_: Seen) -> Behaviour:
        with lock:
            return left.pop(0) if len(left) > 1 else left[0]

    return script


def always(behaviour: Behaviour) -> Callable[[Seen], Behaviour]:
    return lambda _: behaviour


def reply(
    body: bytes | str | Mapping[str, Any] | list[Any] = b"",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    delay_s: float = 0.0,
) -> Behaviour:
    """A complete answer; a mapping or list is sent as JSON."""
    data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    lines = {"Content-Type": "application/json", "Content-Length": str(len(data)), "Connection": "close"}
    lines.update(headers or {})

    def behave(connection: socket.socket, over: threading.Event) -> None:
        over.wait(delay_s)
        connection.sendall(_head(status, lines) + data)

    return behave


def raw(data: bytes) -> Behaviour:
    """These bytes, then the end of the connection."""
    return lambda connection, _: connection.sendall(data)


def drip(data: bytes, per_second: float) -> Behaviour:
    """The bytes one by one, so that no single read ever times out."""

    def behave(connection: socket.socket, over: threading.Event) -> None:
        for i in range(len(data)):
            connection.sendall(data[i : i + 1])
            if over.wait(1 / per_second):
                return

    return behave


def endless(chunk: bytes, head: bytes | None = None) -> Behaviour:
    """A head without a length, then the chunk again and again."""
    start = _head(200, {"Content-Type": "application/json", "Connection": "close"}) if head is None else head

    def behave(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(start)
        while not over.is_set():
            connection.sendall(chunk)

    return behave


def silence(connection: socket.socket, over: threading.Event) -> None:
    """The request is taken and never answered."""
    over.wait(60)


def head(status: int, headers: Mapping[str, str]) -> bytes:
    """A response head, for `raw` and `drip`."""
    return _head(status, headers)


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    return (
        f"HTTP/1.1 {status} Stub\r\n".encode()
        + b"".join(f"{k}: {v}\r\n".encode() for k, v in headers.items())
        + b"\r\n"
    )


def _read_request(connection: socket.socket) -> Seen | None:
    received = b""
    for chunk in _chunks(connection):
        received += chunk
        start, found, rest = received.partition(b"\r\n\r\n")
        if not found:
            continue
        first, *lines = start.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        if len(rest) >= int(headers.get("content-length", "0")):
            return Seen(method, path, headers, rest, time.monotonic())
    return None


def _chunks(connection: socket.socket) -> Iterator[bytes]:
    while chunk := connection.recv(65536):
        yield chunk
