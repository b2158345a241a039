"""An IMAP server on loopback, in a thread of its own, for the demo: pymap over memory, with keywords kept."""

from __future__ import annotations

import asyncio
import secrets
import threading
from argparse import Namespace
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any, Self

from proxyprotocol.reader import ProxyProtocolReader
from pymap.backend.dict import Config, Login
from pymap.backend.dict.filter import FilterSet
from pymap.backend.dict.mailbox import MailboxData, MailboxSet
from pymap.concurrent import Subsystem
from pymap.config import BackendCapability
from pymap.imap import IMAPServer
from pymap.listtree import ListEntry, ListTree
from pymap.mailbox import MailboxSnapshot
from pymap.parsing import Params
from pymap.parsing.command.select import UidSearchCommand
from pymap.parsing.commands import Commands
from pymap.parsing.message import AppendMessage
from pymap.parsing.specials import ObjectId
from pymap.parsing.specials.flag import Flag, Wildcard
from pymap.user import Passwords, UserMetadata
from pysasl.hashing import BuiltinHash

from triage.demo.address import HOST, USER, Address
from triage.demo.mails import Sample

SPECIAL_USE = {"Archive": b"Archive", "Sent": b"Sent"}
START_TIMEOUT_S = 10.0


class _Snapshot(MailboxSnapshot):
    """SELECT's answer: `\\*` belongs to PERMANENTFLAGS alone (RFC 9051, 7.1), FLAGS names the keywords in use."""

    used: frozenset[Flag] = frozenset()

    @property
    def flags(self) -> frozenset[Flag]:
        return (super().flags | self.used) - {Wildcard}


class _Mailbox(MailboxData):
    """A mailbox that accepts any keyword."""

    @property
    def permanent_flags(self) -> frozenset[Flag]:
        return super().permanent_flags | {Wildcard}

    async def snapshot(self) -> MailboxSnapshot:
        plain = await super().snapshot()
        snapshot = _Snapshot(
            plain.mailbox_id,
            plain.readonly,
            plain.uid_validity,
            plain.permanent_flags,
            plain.session_flags,
            plain.exists,
            plain.recent,
            plain.unseen,
            plain.first_unseen,
            plain.next_uid,
        )
        snapshot.used = frozenset(flag for message in self._messages.values() for flag in message.permanent_flags)
        return snapshot


class _Entry(ListEntry):
    @property
    def attributes(self) -> Sequence[bytes]:
        use = SPECIAL_USE.get(self.name)
        return [*super().attributes, use] if use else super().attributes


class _Tree(ListTree):
    def list_matching(self, ref_name: str, filter_: str) -> Iterable[ListEntry]:
        for entry in super().list_matching(ref_name, filter_):
            yield _Entry(entry.name, entry.exists, entry.marked, entry.has_children)


class _Mailboxes(MailboxSet):
    """INBOX plus whatever is created; Archive and Sent bear their special use (RFC 6154)."""

    def __init__(self) -> None:
        super().__init__()
        self._inbox = _Mailbox(self._content_cache, self._thread_cache)

    async def list_mailboxes(self) -> ListTree:
        async with self._set_lock.read_lock():
            return _Tree(self.delimiter).update("INBOX", *self._set)

    async def add_mailbox(self, name: str) -> ObjectId:
        async with self._set_lock.write_lock():
            if name in self._set:
                raise ValueError(name)
            self._set[name] = mailbox = _Mailbox(self._content_cache, self._thread_cache)
            return mailbox.mailbox_id


class _UidSearch(UidSearchCommand):
    """UID SEARCH: plain sequence sets are message numbers (RFC 9051, 6.4.9), where pymap reads them as UIDs."""

    @classmethod
    def parse(cls, buf: memoryview, params: Params) -> tuple[UidSearchCommand, memoryview]:
        command, rest = super(UidSearchCommand, cls).parse(buf, params)
        assert isinstance(command, UidSearchCommand)
        return command, rest


class _Config(Config):
    """One user, no TLS, nothing that asks the network: pymap's own greeting looks the host's name up."""

    @property
    def backend_capability(self) -> BackendCapability:
        return BackendCapability(idle=True, object_id=True, multi_append=True, custom=[b"SPECIAL-USE"])

    @property
    def commands(self) -> Commands:
        commands = super().commands
        commands.register(_UidSearch)
        return commands

    @property
    def greeting(self) -> bytes:
        return b"triage demo server ready"


class DemoServer:
    """The server as a context manager: inside the block it listens and holds `samples`.

    `port` 0 takes a free one; `address` holds the real one inside the block. Raises OSError when the port is taken.
    """

    def __init__(self, samples: Iterable[Sample] = (), *, port: int = 0, password: str | None = None) -> None:
        self._samples = tuple(samples)
        self._port = port
        self._password = password or secrets.token_urlsafe(9)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="demo-imap", daemon=True)

    @property
    def address(self) -> Address:
        return Address(HOST, self._port, USER, self._password)

    def __enter__(self) -> Self:
        self._thread.start()
        if not self._ready.wait(START_TIMEOUT_S):
            raise TimeoutError(f"the demo's IMAP server did not start within {START_TIMEOUT_S:.0f} s")
        if self._error is not None:
            self._thread.join()
            raise self._error
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None and self._stop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits for the start
            self._error = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="demo-password") as pool:
            config = _config(Subsystem.for_threading(pool))
            config.apply_context()
            login = Login(config)
            # the password is random and lives as long as the process: many rounds would only slow each login
            login.users_dict[USER] = UserMetadata(
                config, USER, password=await Passwords(config).hash_password(self._password)
            )
            mailboxes = await _filled(self._samples)
            config.set_cache[USER] = (mailboxes, FilterSet())
            connections = _Connections(IMAPServer(login, config))
            callback = ProxyProtocolReader(config.proxy_protocol).get_callback(connections)
            async with AsyncExitStack() as stack:
                server = await asyncio.start_server(callback, host=HOST, port=self._port)
                await stack.enter_async_context(server)
                stack.push_async_callback(connections.end)
                self._port = server.sockets[0].getsockname()[1]
                self._ready.set()
                await self._stop.wait()
                server.close()


class _Connections:
    """Remembers the open connections, so that stopping can end them and wait for their last words."""

    def __init__(self, imap: IMAPServer) -> None:
        self._imap = imap
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __call__(self, *connection: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._imap(*connection)
        finally:
            self._tasks.discard(task)

    async def end(self) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _config(cpu: Subsystem) -> _Config:
    return _Config(
        Namespace(passlib_cfg=None, proxy_protocol=None),
        demo_data=False,
        demo_user=USER,
        demo_password="",
        host=HOST,
        port=0,
        tls_enabled=False,
        reject_dnsbl=False,
        hash_context=BuiltinHash(rounds=1000),
        cpu_subsystem=cpu,
    )


async def _filled(samples: Iterable[Sample]) -> _Mailboxes:
    mailboxes = _Mailboxes()
    for name in SPECIAL_USE:
        await mailboxes.add_mailbox(name)
    for sample in sorted(samples, key=lambda s: s.received):
        mailbox = await mailboxes.get_mailbox(sample.mailbox)
        flags = frozenset(Flag(flag) for flag in sample.flags)
        await mailbox.append(AppendMessage(sample.raw, sample.received, flags))
    return mailboxes
