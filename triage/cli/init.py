"""`triage init`: a commented configuration to start from, written only where it overwrites nothing."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from string import Template

from triage.config.load import CATEGORIES_FILE, SETTINGS_FILE, load
from triage.config.problems import shown
from triage.domain.errors import ConfigError

PRESETS = ("en", "es")
SINCE_DAYS_AGO = 7


def init_command(
    directory: Path,
    preset: str = "en",
    force: bool = False,
    *,
    host: str = "imap.example.com",
    username: str = "team@example.com",
    name: str = "team",
    today: date | None = None,
    environ: Mapping[str, str] | None = None,
    echo: Callable[[str], None] | None = None,
) -> int:
    """Write triage.yaml and categories.yaml into `directory` and say what to do next; 0, as it raises otherwise.

    Raises ConfigError, with nothing written, when a file is there already (unless `force`), when the preset is
    unknown, or when what was given as host, username or name cannot be used.
    """
    environ = os.environ if environ is None else environ
    texts = render(preset, host=host, username=username, name=name, today=today, timezone=local_timezone(environ))
    targets = {directory / file: text for file, text in texts.items()}
    taken = [shown(path) for path in targets if path.exists() or path.is_symlink()]
    if taken and not force:
        raise ConfigError(f"{' and '.join(taken)} would be overwritten; use --force, or another directory")
    _prove(texts)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path, text in targets.items():
            _replace(path, text)
    except OSError as error:
        raise ConfigError(f"{shown(directory)}: cannot be written ({error.strerror or error})") from None
    for line in _next_steps(directory, list(targets), _password_env(name), environ):
        (echo or _stdout)(line)
    return 0


def render(preset: str, *, host: str, username: str, name: str, today: date | None, timezone: str) -> dict[str, str]:
    """The text of both files by name. Raises ConfigError for an unknown preset."""
    if preset not in PRESETS:
        raise ConfigError(f"--preset {preset}: is not known; there are {', '.join(PRESETS)}")
    presets = files("triage.config") / "presets"
    day = (today or datetime.now(UTC).date()) - timedelta(days=SINCE_DAYS_AGO)
    settings = Template((presets / "triage.yaml.in").read_text("utf-8")).substitute(
        name=_scalar(name),
        host=_scalar(host),
        username=_scalar(username),
        password_env=_password_env(name),
        since=day.isoformat(),
        timezone=_scalar(timezone),
    )
    return {SETTINGS_FILE: settings, CATEGORIES_FILE: (presets / f"{preset}.yaml").read_text("utf-8")}


def local_timezone(environ: Mapping[str, str], localtime: Path = Path("/etc/localtime")) -> str:
    """The machine's time zone by name, UTC where it has none."""
    named = environ.get("TZ", "").removeprefix(":")
    if not named:
        named = str(localtime.resolve()).rpartition("/zoneinfo/")[2] if localtime.is_symlink() else ""
    named = re.sub(r"^(posix|right)/", "", named)
    return named if re.fullmatch(r"[A-Z][A-Za-z_+-]+(/[A-Za-z0-9_+-]+){1,2}", named) else "UTC"


def _scalar(text: str) -> str:
    """Text as YAML takes it literally: bare where nothing in it could mean anything else."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9._@+/-]*", text) and text.casefold() not in {"true", "false", "null"}:
        return text
    return json.dumps(text, ensure_ascii=False)


def _password_env(name: str) -> str:
    return f"TRIAGE_{re.sub(r'[^A-Z0-9]+', '_', name.upper()).strip('_') or 'IMAP'}_PASSWORD"


def _prove(texts: Mapping[str, str]) -> None:
    """What is about to be written loads, or nothing is written."""
    with tempfile.TemporaryDirectory(prefix="triage-init-") as scratch:
        for file, text in texts.items():
            (Path(scratch) / file).write_text(text, "utf-8")
        try:
            load(Path(scratch), environ={})
        except ConfigError as error:
            raise ConfigError(
                *(f"what was given cannot be used: {p.partition(': ')[2]}" for p in error.problems)
            ) from None


def _replace(path: Path, text: str) -> None:
    """Write a whole file or none of it."""
    handle, scratch = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(scratch).chmod(0o644)
        Path(scratch).replace(path)
    except OSError:
        Path(scratch).unlink(missing_ok=True)
        raise


def _next_steps(directory: Path, written: list[Path], password_env: str, environ: Mapping[str, str]) -> list[str]:
    found_by_itself = directory.absolute() in {
        Path("config").absolute(),
        Path(environ.get("HOME", "/")) / ".config" / "triage",
        Path("/etc/triage"),
    }
    where = "" if found_by_itself else f"TRIAGE_CONFIG={directory} "
    return [
        *(f"wrote {shown(path)}" for path in written),
        "",
        f"1. Put your server and login into {shown(directory / SETTINGS_FILE)}, and the password into ${password_env}.",
        f"2. {where}triage check      what works with this mailbox, and what to do about the rest",
        f"3. {where}triage preview    decides 20 messages and writes nothing; then `triage run`, then enabled: true",
    ]


def _stdout(line: str) -> None:
    sys.stdout.write(line + "\n")
