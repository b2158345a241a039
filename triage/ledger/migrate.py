"""Bring a ledger's tables up to date, whoever comes first, everybody else waiting."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from triage.domain.errors import LedgerError
from triage.ledger.engine import make_engine, place_of, writer_of
from triage.ledger.errors import translated
from triage.ledger.schema import REVISION

_SCRIPTS = Path(__file__).parent / "migrations"
_LOCK = 0x7472696167650001  # "triage" and 1: the advisory lock of those who upgrade


def upgrade(url: str, revision: str = "head") -> None:
    """Upgrade the ledger at `url` in one transaction. Raises LedgerError if it is newer than this program."""
    engine = make_engine(url)
    try:
        upgrade_engine(engine, revision)
    finally:
        engine.dispose()


def upgrade_engine(engine: Engine, revision: str = "head") -> None:
    """As `upgrade`. A ledger that is up to date is only looked at, without any lock."""
    where = place_of(engine)
    with translated(where):
        with engine.connect() as connection:
            if revision == "head" and current_revision(connection) == REVISION:
                return
        with writer_of(engine).begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SET LOCAL lock_timeout = 0"))
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            _upgrade(connection, revision, where)


def current_revision(connection: Connection) -> str | None:
    """The revision the ledger is at; None for an empty database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _upgrade(connection: Connection, revision: str, where: str) -> None:
    # Alembic takes 0.2 s to import, and a ledger is up to date nearly always.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    current = current_revision(connection)
    if current is not None and current not in known:
        raise LedgerError(
            f"{where}: written by a newer triage (revision {current}; this one knows up to {REVISION}): "
            "upgrade triage on this machine"
        )
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
