"""From the command line's --config and --account to working parts."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from typing import Any

from triage import logs
from triage.bootstrap import App
from triage.config.load import find_config_dir, load
from triage.config.settings import AccountSettings, Settings
from triage.domain.errors import ConfigError

EVER = date(1970, 1, 1)


def load_settings(config: str | None, *, quiet: bool = False) -> Settings:
    """The settings, logging set up after them, warnings told. Raises ConfigError.

    `quiet` is for commands that tell a person what they did anyway: of the log only errors, unless debug is asked for.
    """
    settings = load(find_config_dir(config, os.environ))
    level = settings.log.level
    logs.configure("error" if quiet and level != "debug" else level, settings.log.format)
    for warning in settings.warnings:
        say(warning)
    return settings


@contextmanager
def opened(config: str | None) -> Iterator[App]:
    """An App for one command, closed at its end. Raises ConfigError, LedgerError."""
    app = App(load_settings(config, quiet=True))
    try:
        yield app
    finally:
        app.close()


def chosen(app: App, name: str | None) -> tuple[AccountSettings, ...]:
    """The account named, or all. Raises ConfigError."""
    return (app.account(name),) if name else app.settings.accounts


def one_account(app: App, name: str | None) -> AccountSettings:
    """The account named, or the only one. Raises ConfigError if there are several and none was named."""
    accounts = chosen(app, name)
    if len(accounts) > 1:
        names = ", ".join(a.name for a in accounts)
        raise ConfigError(f"{app.settings.file}: there are several accounts; name one with --account: {names}")
    return accounts[0]


def say(line: str) -> None:
    """One line for a person on stderr, so that stdout stays data."""
    print(line, file=sys.stderr)  # noqa: T201


def print_json(value: Any) -> None:
    import json

    json.dump(value, sys.stdout, ensure_ascii=False, indent=2)
    sys.stdout.write("\n")
