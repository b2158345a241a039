"""A whole installation with the mail tool on a test server: the three files, an App, the command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from services.dovecot import Dovecot, Mail
from support.mail_tool import POLICY, mail
from triage.bootstrap import App
from triage.config.load import load
from triage.ports import Clock

REPOSITORY = Path(__file__).parents[2]
_TRIAGE = """
ledger: sqlite:///triage.db
http: false
accounts:
  - name: team
    host: 127.0.0.1
    port: {port}
    security: plain
    username: {user}
    password: {{env: TOOL_TEST_PASSWORD}}
    since: 2020-01-01
    schedule: {{enabled: false}}
"""


class Site:
    """The configuration directory of a test, the server behind it, and what applications deliver."""

    def __init__(self, directory: Path, server: Dovecot, user: str = "desk", **changes: Any) -> None:
        self.directory, self.server, self.user = directory, server, user
        self.environ = {**os.environ, "TOOL_TEST_PASSWORD": server.password}
        self.write_settings(server.port)
        shutil.copy(REPOSITORY / "config" / "categories.yaml", directory)
        self.write_policy(**changes)

    def write_settings(self, port: int) -> None:
        """The account, on the server or on something that stands before it."""
        (self.directory / "triage.yaml").write_text(_TRIAGE.format(port=port, user=self.user))

    def write_policy(self, **changes: Any) -> None:
        """The tests' policy, with IDLE on and shorter settling unless told otherwise."""
        tree = yaml.safe_load(yaml.safe_dump(POLICY))
        settled = {"runs__settle_seconds": 0.3, "runs__idle": "early_slot"}
        for path, value in (settled | changes).items():
            *way, last = path.split("__")
            at = tree
            for name in way:
                at = at.setdefault(name, {})
            at[last] = value
        (self.directory / "policy.yaml").write_text(yaml.safe_dump(tree))

    def app(self, clock: Clock | None = None) -> App:
        return App(load(self.directory, self.environ), clock)

    def deliver(self, address: str, received: datetime | None = None, **more: Any) -> int:
        stored = Mail(raw=mail(address, **more), received=received or datetime.now(UTC))
        return self.server.append(self.user, [stored])[0]

    def triage(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run the command line."""
        return subprocess.run(
            [sys.executable, "-m", "triage", *arguments, "--config", str(self.directory)],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=REPOSITORY,
            env=self.environ,
            timeout=120,
            check=False,
        )


def wait_request(run: Any, **changes: Any) -> dict[str, Any]:
    """A good request for a run as opening it returned it."""
    return {
        "run_id": run.mailbox_scope,
        "mailbox_id": run.mailbox_id,
        "after": run.opened_at.isoformat(),
        "deadline_seconds": 20,
        "max_polls": 9,
        **changes,
    }
