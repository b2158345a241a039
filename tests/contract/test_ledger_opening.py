"""Opening a ledger, on SQLite and on PostgreSQL: made, upgraded, or refused with what to do."""

from __future__ import annotations

import sqlite3
import stat
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from services.ledger import START, HandClock, make_decision, run_sql
from triage.domain.errors import LedgerError
from triage.domain.record import Trigger
from triage.ledger import open_ledger
from triage.ledger.migrate import _SCRIPTS, upgrade
from triage.ledger.schema import REVISION, metadata

pytest_plugins = ["conftest_ledger"]


def scripts() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS))
    return ScriptDirectory.from_config(config)


REVISIONS = [script.revision for script in scripts().walk_revisions()][::-1]


def test_the_program_expects_the_newest_migration() -> None:
    assert scripts().get_current_head() == REVISION


def test_migrations_build_exactly_the_tables_of_the_program(empty_url: str) -> None:
    upgrade(empty_url)
    engine = create_engine(empty_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_opening_an_empty_database_makes_the_ledger(empty_url: str) -> None:
    ledger = open_ledger(empty_url, HandClock())
    assert ledger.enqueue("support", Trigger.MANUAL, START) is not None
    ledger.close()
    again = open_ledger(empty_url, HandClock())
    assert again.depth() == 1
    again.close()


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_upgrade_from_any_revision_keeps_every_record(empty_url: str, revision: str) -> None:
    upgrade(empty_url, revision)
    run_sql(
        empty_url,
        "INSERT INTO runs (id, account, trigger, fire_time, state, enqueued_at, counts, options) "
        "VALUES ('r1', 'support', 'manual', '2026-11-30 09:00:00', 'queued', '2026-11-30 09:00:00', '{}', '{}')",
        "INSERT INTO states (kind, key, value, updated_at) VALUES ('breaker', 'jev', :value, '2026-11-30 09:00:00')",
        value='{"failures": 2}',
    )
    ledger = open_ledger(empty_url, HandClock())
    run = ledger.run("r1")
    assert run is not None
    assert run.account == "support"
    assert ledger.load_breaker("jev") == {"failures": 2}
    ledger.record_decisions([make_decision(1)])
    assert ledger.verify_chain("support") == []
    ledger.close()


def test_a_ledger_of_a_newer_program_is_refused(empty_url: str) -> None:
    upgrade(empty_url)
    run_sql(empty_url, "UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(LedgerError, match=r"newer triage.*9999.*upgrade triage"):
        open_ledger(empty_url, HandClock())
    assert run_sql(empty_url, "SELECT version_num FROM alembic_version") == [("9999",)]


def test_a_migration_that_fails_changes_nothing(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from alembic import op

    create_index = op.create_index

    def fail_late(name: str, *rest: object, **more: object) -> None:
        if name == "ix_steps_run":
            raise RuntimeError("the power went out")
        create_index(name, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(op, "create_index", fail_late)
    with pytest.raises(RuntimeError):
        upgrade(empty_url)
    monkeypatch.undo()
    upgrade(empty_url)
    assert run_sql(empty_url, "SELECT count(*) FROM steps") == [(0,)]


def test_a_ledger_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "ledger.db"
    ledger = open_ledger(f"sqlite:///{path}", HandClock())
    ledger.record_decisions([make_decision(1)])
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    ledger.close()
    assert modes["ledger.db"] == 0o600
    assert set(modes.values()) == {0o600}, "the write-ahead log holds the same records"


def test_a_ledger_file_keeps_a_durable_write_ahead_log(tmp_path: Path) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}", HandClock())
    with ledger._reading() as connection:
        pragmas = [
            connection.exec_driver_sql(f"PRAGMA {p}").scalar() for p in ("journal_mode", "synchronous", "foreign_keys")
        ]
    ledger.close()
    assert pragmas == ["wal", 2, 1]


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://localhost/x", "no url", ""])
def test_what_cannot_be_a_ledger_is_refused(url: str) -> None:
    with pytest.raises(LedgerError, match="sqlite:///FILE"):
        open_ledger(url, HandClock())


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear all, this is no database at all. " * 50)
    with pytest.raises(LedgerError, match="not an SQLite database"):
        open_ledger(f"sqlite:///{path}", HandClock())
    assert path.read_text().startswith("Dear all")


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match="cannot be created"):
        open_ledger(f"sqlite:///{tmp_path}/file/ledger.db", HandClock())


def test_a_file_on_a_network_file_system_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triage.ledger.engine.network_filesystem", lambda path: "nfs4")
    with pytest.raises(LedgerError, match=r"network file system.*nfs4.*PostgreSQL"):
        open_ledger(f"sqlite:///{tmp_path}/ledger.db", HandClock())


def test_a_postgresql_that_is_not_there_is_a_temporary_failure_without_the_password() -> None:
    with pytest.raises(LedgerError) as caught:
        open_ledger("postgresql://triage:open-sesame@127.0.0.1:1/triage?connect_timeout=1", HandClock())
    assert caught.value.temporary
    assert "open-sesame" not in str(caught.value)


def test_without_the_driver_postgresql_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "psycopg"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(LedgerError, match=r"triage\[postgres\]"):
        open_ledger("postgresql://localhost/triage", HandClock())


def test_a_locked_file_is_a_temporary_failure_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triage.ledger.engine.BUSY_TIMEOUT_S", 0.1)
    path = tmp_path / "ledger.db"
    ledger = open_ledger(f"sqlite:///{path}", HandClock())
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="another process keeps it locked") as caught:
        ledger.record_decisions([make_decision(1)])
    assert caught.value.temporary
    other.execute("ROLLBACK")
    other.close()
    assert ledger.decision("d000001") is None
    ledger.record_decisions([make_decision(1)])
    assert ledger.verify_chain("support") == []
    ledger.close()


def test_a_full_disk_is_a_temporary_failure_and_nothing_is_half_written(tmp_path: Path) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path / 'ledger.db'}", HandClock())
    with ledger._reading() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
    ledger._engine.dispose()
    from sqlalchemy import event

    def no_more_room(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages}")

    event.listen(ledger._engine, "connect", no_more_room)
    written = 0
    with pytest.raises(LedgerError, match="disk is full") as caught:  # noqa: PT012 (how many fit is SQLite's business)
        for written in range(1, 1000):
            ledger.record_decisions([make_decision(written, why="x" * 500)])
    assert caught.value.temporary
    assert len(ledger.decisions("20261130-090000-aaaaaa")) == written - 1
    assert ledger.verify_chain("support") == []
    event.remove(ledger._engine, "connect", no_more_room)
    ledger.close()
