"""A configuration on disk as an operator writes it, and real `triage` processes that work with it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fakes.http_stub import Behaviour, Seen, reply
from support.office import CATEGORIES
from triage.clock import SystemClock
from triage.ledger.ledger import SqlLedger, open_ledger

ROOT = Path(__file__).resolve().parent.parent.parent

_TRIAGE_YAML = """\
ledger: sqlite:///triage.db
http: false
log: {{level: {level}, format: json}}
decision:
  chain:
    - {{provider: systemone, base_url: "{model_url}", model: table-1, retries: 1, api_key: {{file: key}}}}
accounts:
"""
_ACCOUNT = """\
  - name: {name}
    host: 127.0.0.1
    port: {port}
    security: plain
    username: {user}
    password: {{file: password}}
    since: {since}
    schedule: {{cron: "{cron}", timezone: UTC, enabled: {enabled}}}
"""


class Premises:
    """A configuration directory with its ledger in it."""

    def __init__(self, directory: Path, port: int, password: str, model_url: str) -> None:
        self.directory, self._port, self._model_url = directory, port, model_url
        _private(directory / "password", password)
        _private(directory / "key", "test-key")
        categories = [
            {"id": c.id, "name": c.name, "criteria": c.criteria, "action": str(c.action)} for c in CATEGORIES.categories
        ]
        fallback = {"id": CATEGORIES.fallback_id, "name": CATEGORIES.fallback_name}
        told = {"parent": CATEGORIES.parent, "fallback": fallback, "categories": categories}
        (directory / "categories.yaml").write_text(json.dumps(told))

    def write(
        self,
        users: Mapping[str, str],
        *,
        enabled: Sequence[str] = (),
        cron: str = "*/5 * * * *",
        level: str = "info",
        since: str = "2020-01-01",
    ) -> None:
        """Write triage.yaml with these accounts (name -> user), those of `enabled` with a schedule."""
        text = _TRIAGE_YAML.format(level=level, model_url=self._model_url)
        for name, user in users.items():
            on = str(name in enabled).lower()
            text += _ACCOUNT.format(name=name, port=self._port, user=user, cron=cron, enabled=on, since=since)
        self.path.write_text(text)

    @property
    def path(self) -> Path:
        return self.directory / "triage.yaml"

    @contextmanager
    def ledger(self) -> Iterator[SqlLedger]:
        ledger = open_ledger(f"sqlite:///{self.directory}/triage.db", SystemClock())
        try:
            yield ledger
        finally:
            ledger.close()

    @contextmanager
    def process(self, *arguments: str) -> Iterator[Process]:
        """`triage ARGUMENTS --config here`, killed at the end if it still runs."""
        log = self.directory / f"{arguments[0]}.log"
        with log.open("wb") as out:
            popen = subprocess.Popen(
                [sys.executable, "-m", "triage", *arguments, "--config", str(self.directory)],
                cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=out, text=True,
            )  # fmt: skip
        try:
            yield Process(popen, log)
        finally:
            popen.kill()
            popen.communicate()

    def in_fork(self, *arguments: str) -> int:
        """The same in a forked child that has everything imported already; its pid, to be waited for."""
        pid = os.fork()
        if pid:
            return pid
        code = 70
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
            from triage.cli.main import run_cli

            code = run_cli([*arguments, "--config", str(self.directory)])
        finally:
            os._exit(code)


class Process:
    """A running `triage`. `lines` are its log so far."""

    def __init__(self, popen: subprocess.Popen[str], log: Path) -> None:
        self.popen, self._log = popen, log

    @property
    def lines(self) -> list[dict[str, Any]]:
        found = []
        for line in self._log.read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line.get("event") == name]

    def wait_for(self, name: str, times: int = 1) -> None:
        wait_until(lambda: len(self.events(name)) >= times or self.popen.poll() is not None)
        assert len(self.events(name)) >= times, self._log.read_text(errors="replace")[-2000:]

    def end(self, number: signal.Signals = signal.SIGTERM, within_s: float = 30.0) -> tuple[int, float]:
        """Send the signal; the exit status and the seconds it took. Raises TimeoutExpired."""
        started = time.monotonic()
        self.popen.send_signal(number)
        code = self.popen.wait(within_s)
        return code, time.monotonic() - started


def wait_until(true: Callable[[], object], within_s: float = 30.0) -> None:
    """Wait for something that will come true; an AssertionError if it does not."""
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)


def exit_status(pid: int, within_s: float = 30.0) -> int | None:
    """The exit status of a forked child, None if it had to be killed."""
    ended: list[int] = []

    def gone() -> bool:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            ended.append(os.waitstatus_to_exitcode(status))
        return bool(found)

    try:
        wait_until(gone, within_s)
    except AssertionError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return None
    return ended[0]


def answers(
    table: Mapping[str, tuple[str, float]], default: tuple[str, float] | None = None, delay_s: float = 0.0
) -> Callable[[Seen], Behaviour]:
    """A System One server that goes by the subject."""

    def script(seen: Seen) -> Behaviour:
        asked = seen.json
        subject = asked["state"]["subject"]
        choice, p = table.get(subject, default or ("conversation", 0.97))
        options = list(asked["questions"]["category"]["criteria"])
        rest = (1 - p) / (len(options) - 1)
        answer = {
            "type": "choice", "choice": choice, "confidence": p,
            "probabilities": {o: p if o == choice else rest for o in options},
        }  # fmt: skip
        usage = {"input_tokens": 100, "output_tokens": 1}
        return reply({"model": "table-1", "answers": {"category": answer}, "usage": usage}, delay_s=delay_s)

    return script


def _private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text)
