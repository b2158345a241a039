"""The package costs nothing until a ledger is opened."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_package_imports_no_database_library() -> None:
    code = "import sys, triage.ledger; print([m for m in ('sqlalchemy', 'alembic', 'psycopg') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_opening_an_up_to_date_ledger_does_not_import_the_migrations(tmp_path: object) -> None:
    code = (
        "import sys; from triage.ledger import open_ledger\n"
        f"open_ledger('sqlite:///{tmp_path}/ledger.db', None).close()\n"
        "print('alembic' in sys.modules)"
    )
    seen = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    assert [done.stdout.strip() for done in seen] == ["True", "False"]
