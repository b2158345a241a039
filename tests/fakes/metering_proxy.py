"""A TCP proxy that counts round trips and octets between a client and a server."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


class MeteringProxy:
    """`round_trips` counts the greeting and each time the client speaks after the server has: a batch is one."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self.round_trips = self.octets_down = 0

    def __enter__(self) -> MeteringProxy:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for each in (self._listener, *self._sockets):
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._server_port))
            self._sockets += [client, server]
            self.round_trips += 1
            link = _Link(self, client, server)
            for work in (link.up, link.down):
                self._threads.append(threading.Thread(target=work))
                self._threads[-1].start()


class _Link:
    def __init__(self, proxy: MeteringProxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._server_spoke = False

    def up(self) -> None:
        for data in _chunks(self._client):
            if self._server_spoke:
                self._proxy.round_trips += 1
                self._server_spoke = False
            with contextlib.suppress(OSError):
                self._server.sendall(data)
        _end(self._server)

    def down(self) -> None:
        for data in _chunks(self._server):
            self._proxy.octets_down += len(data)
            self._server_spoke = True
            with contextlib.suppress(OSError):
                self._client.sendall(data)
        _end(self._client)


def _chunks(source: socket.socket) -> Iterator[bytes]:
    with contextlib.suppress(OSError):
        while data := source.recv(65_536):
            yield data


def _end(sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
