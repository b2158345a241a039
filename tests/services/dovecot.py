"""A throw-away Dovecot on the loopback interface, for tests against a real server.

    with Dovecot(storage="sdbox", tls=True) as server:
        server.append("alice", [Mail(subject="Hello")])
        # any user logs in with server.password; each has an own store

Works as root (mail belongs to the system user `mail`) and as a plain user (everything is that user's). Only processes
started here are ended, by their process group.
"""

from __future__ import annotations

import contextlib
import grp
import imaplib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

PASSWORD = "open-sesame"

_CONF = """
base_dir = {base}/run
state_dir = {base}/run
log_path = {base}/dovecot.log
protocols = imap
listen = 127.0.0.1
ssl = {ssl}
{certificates}
disable_plaintext_auth = no
auth_mechanisms = plain login
auth_failure_delay = 0
default_internal_user = {internal_user}
default_internal_group = {internal_group}
default_login_user = {login_user}
first_valid_uid = 1
first_valid_gid = 1
mail_location = {storage}:~/store
mail_max_userip_connections = 100
login_trusted_networks = 127.0.0.0/8
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={base}/mail/%u
}}
namespace inbox {{
  inbox = yes
  prefix = {prefix}
  separator = {separator}
{mailboxes}
}}
{extra}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    address = 127.0.0.1
    port = {port}
  }}
  inet_listener imaps {{
    address = 127.0.0.1
    port = {tls_port}
    ssl = yes
  }}
}}
"""


def require_dovecot() -> None:
    """Skip the test where Dovecot is not installed; fail instead where CI is set: there it must be."""
    if shutil.which("dovecot", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"):
        return
    reason = "Dovecot is not installed (Debian: apt-get install dovecot-imapd)"
    if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass(frozen=True)
class Mail:
    """A message to put into a mailbox; `raw` (CRLF line ends) replaces what the other fields would make."""

    subject: str = "Note"
    message_id: str = ""
    body: str = "Hello there."
    flags: Sequence[str] = ()
    received: datetime = datetime(2026, 3, 2, 9, 14, tzinfo=UTC)
    raw: bytes = b""
    headers: str = ""

    def octets(self) -> bytes:
        if self.raw:
            return self.raw
        message_id = f"Message-ID: {self.message_id}\r\n" if self.message_id else ""
        return (
            f"From: Dana <dana@sender.example>\r\nTo: desk@desk.example\r\nSubject: {self.subject}\r\n"
            f"Date: Mon, 02 Mar 2026 09:14:00 +0000\r\n{message_id}{self.headers}\r\n{self.body}\r\n"
        ).encode()


class Dovecot:
    """One server. `storage` is maildir or sdbox, `tls` adds a listener with a certificate of an own authority, `extra`
    are lines of configuration."""

    host = "127.0.0.1"
    password = PASSWORD

    def __init__(
        self,
        storage: str = "maildir",
        *,
        tls: bool = False,
        prefix: str = "",
        separator: str = "/",
        special_use: bool = True,
        extra: str = "",
    ) -> None:
        self.storage, self.tls, self.prefix, self.separator = storage, tls, prefix, separator
        self.special_use, self.extra = special_use, extra
        self.port, self.tls_port = _free_port(), _free_port()
        self.ca_file: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._base = Path()

    def __enter__(self) -> Dovecot:
        require_dovecot()
        self._base = Path(tempfile.mkdtemp(prefix="triage-dovecot-"))
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self._base, ignore_errors=True)

    def log(self) -> str:
        path = self._base / "dovecot.log"
        return path.read_text(errors="replace") if path.exists() else ""

    # ------------------------------------------------------------ what tests do behind the program's back

    def client(self, user: str) -> imaplib.IMAP4:
        """Another client of the same account, logged in."""
        connection = imaplib.IMAP4(self.host, self.port, timeout=30)
        connection.login(user, self.password)
        return connection

    def append(self, user: str, mails: Iterable[Mail], mailbox: str = "INBOX") -> list[int]:
        """Deliver messages; their UIDs."""
        uids = []
        connection = self.client(user)
        for mail in mails:
            date = f'"{mail.received:%d-%b-%Y %H:%M:%S +0000}"'
            status, told = connection.append(f'"{mailbox}"', f"({' '.join(mail.flags)})", date, mail.octets())
            assert status == "OK", told
            uids.append(int(told[0].split(b"]")[0].split()[-1]))
        connection.logout()
        return uids

    def flags(self, user: str, mailbox: str = "INBOX") -> dict[int, set[str]]:
        """Flags by UID, as another client sees them."""
        return {uid: flags for uid, (flags, _) in self.state(user, mailbox).items()}

    def state(self, user: str, mailbox: str = "INBOX") -> dict[int, tuple[set[str], int]]:
        """Flags and MODSEQ by UID, as another client sees them; nothing for a mailbox that does not exist."""
        connection = self.client(user)
        status, _ = connection.select(f'"{mailbox}"', readonly=True)
        found: dict[int, tuple[set[str], int]] = {}
        if status == "OK":
            _, lines = connection.uid("FETCH", "1:*", "(UID FLAGS MODSEQ)")
            for line in lines:
                if line:
                    text = line.decode()
                    uid = int(text.split("UID ")[1].split()[0].rstrip(")"))
                    flags = set(text.split("FLAGS (")[1].split(")")[0].split()) - {"\\Recent"}
                    found[uid] = (flags, int(text.split("MODSEQ (")[1].split(")")[0]))
        connection.logout()
        return found

    def copy_store(self, user: str, to: str) -> None:
        """All mail of a user once more, for another one. Neither may be connected."""
        mail = self._base / "mail"
        subprocess.run(["cp", "-a", str(mail / user), str(mail / to)], check=True)

    # ------------------------------------------------------------ setting up

    def _start(self) -> None:
        root = os.geteuid() == 0
        me = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(me.pw_gid).gr_name
        owner = pwd.getpwnam("mail") if root else me
        for directory in (self._base, self._base / "run", self._base / "mail"):
            directory.mkdir(exist_ok=True)
        self._base.chmod(0o755)
        os.chown(self._base / "mail", owner.pw_uid, owner.pw_gid)
        certificates = self._certificates() if self.tls else ""
        special = {"Archive": "\\Archive", "Sent": "\\Sent"} if self.special_use else {}
        conf = self._base / "dovecot.conf"
        conf.write_text(
            _CONF.format(
                base=self._base,
                ssl="yes" if self.tls else "no",
                certificates=certificates,
                internal_user="dovecot" if root else me.pw_name,
                internal_group="dovecot" if root else group,
                login_user="dovenull" if root else me.pw_name,
                storage=self.storage,
                password=self.password,
                uid=owner.pw_uid,
                gid=owner.pw_gid,
                prefix=self.prefix,
                extra=self.extra,
                separator=self.separator,
                mailboxes="\n".join(
                    f"  mailbox {name} {{\n    auto = create\n    special_use = {use}\n  }}"
                    for name, use in special.items()
                ),
                port=self.port,
                tls_port=self.tls_port if self.tls else 0,
            )
        )
        with (self._base / "stdout.log").open("wb") as output:
            self._process = subprocess.Popen(
                ["dovecot", "-F", "-c", str(conf)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"},
            )
        self._wait_until_it_greets()

    def _wait_until_it_greets(self) -> None:
        assert self._process is not None
        for _ in range(500):
            with contextlib.suppress(OSError), socket.create_connection((self.host, self.port), 2) as probe:
                if probe.recv(200).startswith(b"* OK"):
                    return
            if self._process.poll() is not None:
                break
            time.sleep(0.02)
        told = (self._base / "stdout.log").read_text(errors="replace") + self.log()
        raise RuntimeError(f"Dovecot did not start: {told[-1000:]}")

    def _certificates(self) -> str:
        """An own authority and a certificate for 127.0.0.1 and localhost."""
        base = self._base
        (base / "server.ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
        authority = (
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout ca.key -out ca.pem "
            "-days 2 -subj /CN=throw-away -addext keyUsage=critical,keyCertSign"
        )
        request = (
            "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout server.key -out server.csr "
            "-subj /CN=localhost"
        )
        signing = (
            "openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out server.pem -days 2 "
            "-extfile server.ext"
        )
        for command in (authority, request, signing):
            subprocess.run(command.split(), cwd=base, check=True, capture_output=True)
        self.ca_file = base / "ca.pem"
        return f"ssl_cert = <{base}/server.pem\nssl_key = <{base}/server.key"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
