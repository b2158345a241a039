"""Where a process under test dies: at the n-th IMAP command (in a proxy), ledger commit, or step boundary.

The process is really killed (SIGKILL); nothing in the program knows of these points.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import event

from triage.domain.record import StepRecord

_CAPABILITY = re.compile(rb" ([A-Z0-9=+-]+)(?=[\] \r])")
_LITERAL = re.compile(rb"\{(\d+)\+?\}\r\n$")


@dataclass(frozen=True)
class KillPoint:
    """`where` is command, reply, commit, committed, step or stepped; `n` counts from 1."""

    where: str
    n: int

    def __str__(self) -> str:
        return f"{self.where}-{self.n}"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class CommandProxy:
    """Stands between program and server and does something at the n-th command of all connections.

    `at_command(n, line)` is called before a command goes to the server, `at_reply(n)` once its tagged answer has come
    from the server and before the program sees it; either may return True to cut the connection. Counts commands.
    `hides` are capabilities that the program is not told of.
    """

    def __init__(
        self,
        port: int,
        at_command: Callable[[int, bytes], bool] = lambda n, line: False,
        at_reply: Callable[[int], bool] = lambda n: False,
        hides: Collection[bytes] = (),
    ) -> None:
        self._target = port
        self._at_command, self._at_reply, self._hides = at_command, at_reply, frozenset(hides)
        self._lock = threading.Lock()
        self.commands: list[bytes] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> CommandProxy:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            upstream = socket.create_connection(("127.0.0.1", self._target))
            for end in (client, upstream):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            tags: dict[bytes, int] = {}
            threading.Thread(target=self._up, args=(client, upstream, tags), daemon=True).start()
            threading.Thread(target=self._down, args=(client, upstream, tags), daemon=True).start()

    def _up(self, client: socket.socket, upstream: socket.socket, tags: dict[bytes, int]) -> None:
        lines = client.makefile("rb")
        with contextlib.suppress(OSError):
            while line := lines.readline():
                with self._lock:
                    self.commands.append(line)
                    n = len(self.commands)
                tags[line.split(b" ", 1)[0]] = n
                if self._at_command(n, line):
                    break
                upstream.sendall(line)
                while found := _LITERAL.search(line):
                    upstream.sendall(lines.read(int(found[1])))
                    line = lines.readline()
                    upstream.sendall(line)
        _hang_up(client, upstream)

    def _down(self, client: socket.socket, upstream: socket.socket, tags: dict[bytes, int]) -> None:
        lines = upstream.makefile("rb")
        with contextlib.suppress(OSError):
            while line := lines.readline():
                n = tags.get(line.split(b" ", 1)[0])
                if n is not None and self._at_reply(n):
                    break
                client.sendall(self._hide(line))
                while found := _LITERAL.search(line):
                    client.sendall(lines.read(int(found[1])))
                    line = lines.readline()
                    client.sendall(line)
        _hang_up(client, upstream)

    def _hide(self, line: bytes) -> bytes:
        """The line without the capabilities that this server is not to have."""
        if not self._hides or b"CAPABILITY " not in line:
            return line
        return _CAPABILITY.sub(lambda word: b"" if word[1] in self._hides else word[0], line)


def _hang_up(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()


def at_commits(ledger: Any, before: Callable[[int], None], after: Callable[[int], None]) -> None:
    """Call `before(n)` and `after(n)` around the n-th writing commit of a ledger, counted from now on."""
    count = [0]
    lock = threading.Lock()

    @event.listens_for(ledger._engine, "commit")  # type: ignore[untyped-decorator]
    def on_commit(connection: Any) -> None:
        if connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT":
            return
        with lock:
            count[0] += 1
            n = count[0]
        before(n)
        connection.connection.dbapi_connection.commit()
        after(n)


def at_steps(log_class: Any, before: Callable[[int], None], after: Callable[[int], None]) -> Callable[[], None]:
    """Call `before(n)` when the n-th step begins and `after(n)` when it has ended; returns how to undo that."""
    begin, step = log_class.begin, log_class.step
    count = [0, 0]

    def begins(self: Any, name: str) -> None:
        count[0] += 1
        before(count[0])
        begin(self, name)

    def ends(self: Any, record: StepRecord) -> None:
        step(self, record)
        count[1] += 1
        after(count[1])

    log_class.begin, log_class.step = begins, ends

    def undo() -> None:
        log_class.begin, log_class.step = begin, step

    return undo
