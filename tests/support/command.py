"""The command line as an operator uses it: a configuration in a folder, one call, what it said."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

from services.dovecot import Dovecot
from triage.cli.main import run_cli


def configure(directory: Path, server: Dovecot, user: str) -> Path:
    """What `triage init` writes, pointed at a test server in plain text on loopback, for mail of any age."""
    run_cli(["init", str(directory), "--host", "127.0.0.1", "--username", user])
    change(directory, "port: 993", f"port: {server.port}")
    change(directory, "security: tls", "security: plain")
    change(directory, "since: ", "since: 2020-01-01  # ")
    return directory


def change(directory: Path, old: str, new: str, file: str = "triage.yaml") -> None:
    """Replace a text of one file, which must hold it."""
    text = (directory / file).read_text()
    assert old in text, old
    (directory / file).write_text(text.replace(old, new, 1))


def triage(directory: Path, *arguments: str, password: str | None) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    out, err = io.StringIO(), io.StringIO()
    before = os.environ.pop("TRIAGE_TEAM_PASSWORD", None)
    if password is not None:
        os.environ["TRIAGE_TEAM_PASSWORD"] = password
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run_cli([*arguments, "--config", str(directory)])
    finally:
        os.environ.pop("TRIAGE_TEAM_PASSWORD", None)
        if before is not None:
            os.environ["TRIAGE_TEAM_PASSWORD"] = before
    return code, out.getvalue(), err.getvalue()
