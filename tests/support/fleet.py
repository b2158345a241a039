"""Many servers of one triage: real daemons in forked processes on one ledger, and what befalls them."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import structlog

from fakes.table_provider import TableProvider
from services.dovecot import Dovecot
from support.office import TestApp
from triage.config.settings import Settings
from triage.domain.decision import Answer, Failure, Question
from triage.domain.mail import PreparedMail
from triage.schedule import daemon as daemon_module
from triage.schedule import worker as worker_module
from triage.schedule.daemon import Daemon
from triage.schedule.timetable import FireTimes
from triage.schedule.worker import Workplace

LEASE = timedelta(seconds=3)
MAIL_LOG = """
mail_plugins = notify mail_log
plugin {
  mail_log_events = expunge copy flag_change
  mail_log_fields = uid box flags
}
"""
"""Dovecot settings that make it log every change of a mailbox, with the session that made it."""


@dataclass(frozen=True)
class EverySeconds:
    """Fire times every few seconds, counted from midnight."""

    seconds: int

    def next_after(self, instant: datetime) -> datetime:
        return datetime.fromtimestamp((int(instant.timestamp()) // self.seconds + 1) * self.seconds, UTC)


class WitnessProvider(TableProvider):
    """A TableProvider that also writes each ask to a file that all processes share."""

    def __init__(self, path: Path) -> None:
        super().__init__({}, default=("newsletter", 0.97))
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def ask(
        self, question: Question, mail: PreparedMail, deadline: float, stop: threading.Event | None = None
    ) -> Answer | Failure:
        os.write(self._file, f"{mail.subject}\n".encode())
        return super().ask(question, mail, deadline, stop)


class FleetOffice:
    """`triage.schedule.daemon.Office` with the test's fire times and a short lease."""

    def __init__(self, app: TestApp, times: FireTimes) -> None:
        self._app = app
        self._times = times

    @property
    def times(self) -> Mapping[str, FireTimes]:
        return dict.fromkeys(self.accounts, self._times)

    @property
    def accounts(self) -> list[str]:
        return [account.name for account in self._app.settings.accounts]

    def workplace(self) -> Workplace:
        return self._app.workplace(lease=LEASE)

    def keep_house(self, now: datetime) -> None:
        self._app.ledger.enforce_retention(now - timedelta(days=90))


def serve(settings: Settings, witness: Path, every_s: int) -> None:
    """What one server of the fleet does until SIGTERM. Exit 0 if it ended in order."""
    daemon_module.EXPIRE_EVERY = timedelta(seconds=1)
    worker_module.FINISH_PAUSE_S = 0.2
    app = TestApp(settings, [WitnessProvider(witness)])
    signal.signal(signal.SIGTERM, lambda *_: app.stop.set())
    office = FleetOffice(app, EverySeconds(every_s))
    log = structlog.get_logger()
    while True:
        try:
            ended = Daemon(lambda: office, app.ledger, app.clock, app.stop, log).run()
            break
        except Exception:
            if app.stop.is_set():
                raise
            time.sleep(0.3)  # the database was away just then; a supervisor would start the daemon again
    os._exit(0 if ended else 1)


@dataclass
class Fleet:
    """`count` servers; `harm` does one thing to one of them at random."""

    settings: Settings
    witness: Path
    every_s: int
    seed: int = 7
    pids: list[int] = field(default_factory=list)
    paused: dict[int, float] = field(default_factory=dict)
    """When each paused server is woken, on the monotonic clock."""
    done: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def start(self) -> None:
        pid = os.fork()
        if not pid:
            try:
                serve(self.settings, self.witness, self.every_s)
            finally:
                os._exit(70)
        self.pids.append(pid)

    def harm(self) -> None:
        self._wake()
        if not self.pids:
            return
        pid = self._random.choice(self.pids)
        if self._random.random() < 0.5:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self.pids.remove(pid)
            self.done["killed"] += 1
            self.start()
        else:
            os.kill(pid, signal.SIGSTOP)
            self.pids.remove(pid)
            self.paused[pid] = time.monotonic() + LEASE.total_seconds() * 1.6
            self.done["paused"] += 1

    def wake_all(self) -> None:
        """Wait until nobody is paused any more."""
        while self.paused:
            time.sleep(0.1)
            self._wake()

    def end(self) -> list[int]:
        """SIGTERM to all; their exit statuses."""
        self.wake_all()
        for pid in self.pids:
            os.kill(pid, signal.SIGTERM)
        return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in self.pids]

    def _wake(self) -> None:
        for pid in [pid for pid, when in self.paused.items() if time.monotonic() >= when]:
            del self.paused[pid]
            os.kill(pid, signal.SIGCONT)
            self.pids.append(pid)


_WRITE = re.compile(
    r"imap\((?P<user>[^)]*)\)<\d+><(?P<session>[^>]*)>: Info: (?P<what>\w+)[^:]*: box=(?P<box>[^,]*), uid=(?P<uid>\d+)"
)


@dataclass(frozen=True)
class Write:
    """One change that Dovecot logged."""

    user: str
    session: str
    what: str
    box: str
    uid: int


def writes_of(server: Dovecot) -> list[Write]:
    """Every change of any mailbox, in the server's own order."""
    found = (_WRITE.search(line) for line in server.log().splitlines())
    return [Write(m["user"], m["session"], m["what"], m["box"], int(m["uid"])) for m in found if m]


def overlaps(writes: list[Write]) -> Iterator[str]:
    """Sessions of one user whose writes interleave."""
    spans: dict[tuple[str, str], list[int]] = defaultdict(list)
    for at, write in enumerate(writes):
        spans[write.user, write.session].append(at)
    last: dict[str, tuple[int, str]] = {}
    for (user, session), ats in sorted(spans.items(), key=lambda item: item[1][0]):
        until, other = last.get(user, (-1, ""))
        if ats[0] < until:
            yield f"{user}: session {session} wrote while {other} was writing"
        last[user] = max(last.get(user, (-1, "")), (ats[-1], session))


def settings_with(settings: Settings, users: list[str]) -> Settings:
    """The settings with one account for each user, instead of their own one."""
    first = settings.accounts[0]
    return replace(settings, accounts=tuple(replace(first, name=user, username=user) for user in users))
