"""Fixtures for tests of the ledger: one suite, both databases.

A test module takes them with `pytest_plugins = ["conftest_ledger"]`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.ledger import Bench, HandClock, postgres_or_reason, run_sql
from services.postgres import PostgresServer
from triage.ledger import SqlLedger, open_ledger
from triage.ledger.migrate import upgrade
from triage.ledger.schema import metadata


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with PostgresServer(postgres_or_reason()) as server:
        yield server


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: PostgresServer) -> str:
    """The URL of a database with the ledger's tables; each test finds them empty."""
    url = postgres_server.create_database()
    upgrade(url)
    return url


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with the ledger's tables, to be copied."""
    path = tmp_path_factory.mktemp("ledger") / "migrated.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty ledger whose tables are there, on each database."""
    if request.param == "sqlite":
        path = tmp_path / "ledger.db"
        shutil.copyfile(request.getfixturevalue("migrated_file"), path)
        return f"sqlite:///{path}"
    url: str = request.getfixturevalue("migrated_postgres")
    run_sql(url, *(f"DELETE FROM {table.name}" for table in reversed(metadata.sorted_tables)))
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without any table, on each database."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    url = server.create_database()
    yield url
    server.drop_database(url)


@pytest.fixture
def bench(ledger_url: str) -> Iterator[Bench]:
    clock = HandClock()
    ledger = open_ledger(ledger_url, clock)
    yield Bench(ledger, ledger_url, clock)
    ledger.close()


@pytest.fixture
def ledger(bench: Bench) -> SqlLedger:
    return bench.ledger
