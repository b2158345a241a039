"""`triage serve`: the daemon in the foreground."""

from __future__ import annotations

import os
import signal
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

import structlog

from triage.bootstrap import App
from triage.cli import open as parts
from triage.config.load import find_config_dir, reload
from triage.config.settings import Settings
from triage.domain.errors import ConfigError
from triage.schedule.cron import Cron
from triage.schedule.daemon import Daemon
from triage.schedule.worker import Workplace


def serve_command(config: str | None) -> int:
    """Serve until SIGTERM or Ctrl-C; 0 if every run under way was finished, 1 if one had to be left."""
    settings = parts.load_settings(config)
    directory = find_config_dir(config, os.environ)
    log = structlog.get_logger()
    office = Office(App(settings))
    daemon = Daemon(lambda: office, office.app.ledger, office.app.clock, office.app.stop, log)
    reread = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: office.app.stop.set())
    signal.signal(signal.SIGINT, lambda *_: office.app.stop.set())
    signal.signal(signal.SIGHUP, lambda *_: reread.set())

    def on_tick() -> None:
        if reread.is_set():
            reread.clear()
            _reread(directory, office, daemon, log)

    try:
        return 0 if daemon.run(on_tick) else 1
    finally:
        office.app.close()


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
    else:
        daemon.reload()
        log.info("configuration_reread", accounts=len(new.accounts))


class Office:
    """`triage.schedule.daemon.Office` over an App; a reload swaps the settings and keeps ledger and stop signal."""

    def __init__(self, app: App) -> None:
        self.app = app
        self._crons = crons(app.settings)

    def take(self, settings: Settings) -> None:
        self.app = self.app.with_settings(settings)
        self._crons = crons(settings)

    @property
    def crons(self) -> dict[str, Cron]:
        return self._crons

    @property
    def accounts(self) -> list[str]:
        return [account.name for account in self.app.settings.accounts]

    def workplace(self) -> Workplace:
        return self.app.workplace()

    def keep_house(self, now: datetime) -> None:
        self.app.ledger.enforce_retention(now - self.app.settings.retention.records)


def crons(settings: Settings) -> dict[str, Cron]:
    """The schedules of the enabled accounts."""
    return {a.name: Cron(a.schedule.cron, a.schedule.timezone) for a in settings.accounts if a.schedule.enabled}
