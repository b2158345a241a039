"""What a process loads: libraries that only some installations need wait until they are needed."""

from __future__ import annotations

import subprocess
import sys

import pytest


def loaded_by(module: str) -> set[str]:
    code = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("module", "needless"),
    [
        ("triage.bootstrap", {"httpx", "alembic", "pydantic", "jinja2", "prometheus_client", "mcp", "psycopg"}),
        ("triage.agent.watch", {"pydantic", "yaml", "httpx"}),
        ("triage.cli.main", {"sqlalchemy", "imapclient", "pydantic", "httpx", "structlog", "rich", "yaml"}),
    ],
)
def test_only_what_every_installation_needs_is_loaded_at_once(module: str, needless: set[str]) -> None:
    assert not loaded_by(module) & needless
