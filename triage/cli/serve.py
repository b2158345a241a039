"""`triage serve`: the daemon in the foreground."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog

from triage import logs
from triage.bootstrap import App
from triage.cli import open as parts
from triage.config.load import find_config_dir, reload
from triage.config.settings import Settings
from triage.domain.errors import ConfigError
from triage.domain.record import Run
from triage.pipeline.plan import AccountPlan, Tools
from triage.schedule.cron import Cron
from triage.schedule.daemon import Daemon
from triage.schedule.worker import Workplace


def serve_command(config: str | None) -> int:
    """Serve until SIGTERM or Ctrl-C; 0 if every run under way was finished, 1 if one had to be left."""
    settings = parts.load_settings(config)
    directory = find_config_dir(config, os.environ)
    log = structlog.get_logger()
    office = Office(App(settings))
    app = office.app
    reread = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: app.stop.set())
    signal.signal(signal.SIGINT, lambda *_: app.stop.set())
    signal.signal(signal.SIGHUP, lambda *_: reread.set())
    daemon = Daemon(lambda: office, app.ledger, app.clock, app.stop, log)

    def on_tick() -> None:
        if reread.is_set():
            reread.clear()
            _reread(directory, office, daemon, log)

    with _web(office, log):
        clean = daemon.run(on_tick)
    if not clean:
        # A thread that outlasted the grace period would keep the interpreter from ending. Its lease runs out by itself.
        os._exit(1)
    office.close()
    return 0


def _web(office: Office, log: Any) -> AbstractContextManager[object]:
    """The pages, /healthz and /metrics beside the daemon; their libraries are loaded only where they are wanted."""
    if office.app.settings.http is None:
        return nullcontext()
    from triage.web.server import web_server

    return web_server(lambda: office.app, log)


def _reread(directory: Path, office: Office, daemon: Daemon, log: Any) -> None:
    """Take the files as they are now, or keep what is in force and say what is wrong."""
    new, problems = reload(directory, office.app.settings)
    if not problems:
        try:
            office.take(new)
        except ConfigError as error:
            problems = error.problems
    for problem in problems:
        log.error("configuration_refused", detail=problem)
    if problems:
        log.warning("configuration_kept", detail="the configuration as it was stays in force")
        return
    logs.configure(new.log.level, new.log.format)
    daemon.reload()
    for warning in new.warnings:
        log.warning("configuration_warning", detail=warning)
    log.info("configuration_reread", accounts=len(new.accounts))


class Office:
    """`triage.schedule.daemon.Office` over an App; a reload swaps the settings and keeps ledger and stop signal."""

    def __init__(self, app: App) -> None:
        self._tenancy = Tenancy(app)
        self._times = fire_times(app.settings)

    @property
    def app(self) -> App:
        return self._tenancy.app

    def take(self, settings: Settings) -> None:
        """Work with these settings from now on; runs under way finish with the old ones. Raises ConfigError."""
        old, self._tenancy = self._tenancy, Tenancy(self.app.with_settings(settings))
        self._times = fire_times(settings)
        old.leave()

    @property
    def times(self) -> dict[str, Cron]:
        return self._times

    @property
    def accounts(self) -> list[str]:
        return [account.name for account in self.app.settings.accounts]

    def workplace(self) -> Workplace:
        tenancy = self._tenancy
        return replace(tenancy.app.workplace(), desk=tenancy.desk)

    def keep_house(self, now: datetime) -> None:
        self.app.ledger.enforce_retention(now - self.app.settings.retention.records)
        self.app.ledger.forget_receipts(now - self.app.settings.retention.receipts)

    def close(self) -> None:
        self.app.close()


class Tenancy:
    """An App and the runs that work with it. Once left, its connections to model servers close with its last run."""

    def __init__(self, app: App) -> None:
        _ = app.chain  # made here, so that a key that cannot be read is told at once and no run meets it
        self.app = app
        self._lock = threading.Lock()
        self._runs = 0
        self._left = False

    @contextmanager
    def desk(self, run: Run) -> Iterator[tuple[AccountPlan, Tools]]:
        """`App.desk`, counted."""
        self._count(+1)
        try:
            with self.app.desk(run) as desk:
                yield desk
        finally:
            self._count(-1)

    def leave(self) -> None:
        """No new run is begun here, but for one that was just being claimed."""
        self._left = True
        self._count(0)

    def _count(self, change: int) -> None:
        with self._lock:
            self._runs += change
            if self._left and not self._runs:
                self.app.close_chain()


def fire_times(settings: Settings) -> dict[str, Cron]:
    """The schedules of the enabled accounts."""
    return {a.name: Cron(a.schedule.cron, a.schedule.timezone) for a in settings.accounts if a.schedule.enabled}
