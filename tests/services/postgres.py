"""A PostgreSQL of one's own: a fresh cluster in a temporary folder, on a free loopback port, gone afterwards."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

import psycopg

_START_S = 60.0
_PROGRAMS = "/usr/lib/postgresql/*/bin"


def find_programs() -> Path | None:
    """The folder of initdb and postgres: the newest of the Debian folders, or whatever PATH offers."""
    folders = sorted(Path("/").glob(_PROGRAMS.lstrip("/")), key=lambda folder: float(folder.parent.name), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found and shutil.which("postgres") else None


class PostgresServer:
    """A throw-away server. `durable` leaves fsync on, as in production; tests need not wait for a disk."""

    def __init__(self, programs: Path, *, durable: bool = False) -> None:
        self._programs = programs
        self._durable = durable
        self._home = Path(tempfile.mkdtemp(prefix="triage-pg-"))
        self._owner = _unprivileged()
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()
        if self._owner is not None:
            os.chown(self._home, self._owner.pw_uid, self._owner.pw_gid)

    def __enter__(self) -> PostgresServer:
        try:
            initdb = [str(self._programs / "initdb"), "-D", str(self._home / "data"), "-U", "triage"]
            self._run([*initdb, "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"])
            self.start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._remove()

    def url(self, database: str) -> str:
        return f"postgresql+psycopg://triage@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "max_connections": "200"}
        if not self._durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        command = [str(self._programs / "postgres"), "-D", str(self._home / "data"), "-p", str(self.port)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, **self._as_owner(), cwd="/"
            )
        deadline = time.monotonic() + _START_S
        while True:
            try:
                self._connect("postgres").close()
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT closes every connection and shuts down, SIGQUIT crashes it."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait(timeout=_START_S)
        self._process = None

    def create_database(self, template: str | None = None) -> str:
        """A new database, empty or a copy of `template`; its URL."""
        name = f"t_{secrets.token_hex(6)}"
        like = f" TEMPLATE {template}" if template else ""
        self.execute(f"CREATE DATABASE {name}{like}")
        return self.url(name)

    def drop_database(self, url: str) -> None:
        self.execute(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")

    def execute(self, statement: str) -> None:
        with self._connect("postgres") as connection:
            connection.execute(statement)

    def _connect(self, database: str) -> psycopg.Connection:
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="triage", dbname=database, autocommit=True, connect_timeout=5
        )

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(command, capture_output=True, check=False, **self._as_owner(), cwd="/")
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]} failed: {done.stderr.decode(errors='replace')}")

    def _as_owner(self) -> dict[str, object]:
        if self._owner is None:
            return {}
        return {"user": self._owner.pw_uid, "group": self._owner.pw_gid, "extra_groups": []}

    def _remove(self) -> None:
        shutil.rmtree(self._home, ignore_errors=True)


def _unprivileged() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root: whom to run it as then; None if we are somebody else anyway."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("running as root, and there is neither a user postgres nor nobody to run PostgreSQL as")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
