"""The throw-away configuration of the demo: ordinary files, of which a person could keep a copy."""

from __future__ import annotations

from datetime import date
from importlib.resources import files
from pathlib import Path

from triage.demo.address import Address

ACCOUNT = "demo"
_TRIAGE_YAML = """\
# Written by `triage demo`; everything not named here has its default.
ledger: sqlite:///triage.db
http: {http}
accounts:
  - name: {account}
    host: {host}
    port: {port}
    security: plain
    username: {user}
    password: {{file: password}}
    since: {since}
    schedule: {{enabled: false}}
"""


def write_config(directory: Path, address: Address, since: date, *, dashboard: bool = False) -> None:
    """Put triage.yaml, the English categories and the password into `directory`. The ledger will lie there too.

    With `dashboard` the pages are to be served on a free port of the loopback interface.
    """
    text = _TRIAGE_YAML.format(
        http="{listen: 127.0.0.1:0}" if dashboard else "false",
        account=ACCOUNT,
        host=address.host,
        port=address.port,
        user=address.user,
        since=since.isoformat(),
    )
    (directory / "triage.yaml").write_text(text, encoding="utf-8")
    categories = files("triage.config").joinpath("presets", "en.yaml").read_text(encoding="utf-8")
    (directory / "categories.yaml").write_text(categories, encoding="utf-8")
    password = directory / "password"
    password.touch(mode=0o600)
    password.write_text(address.password, encoding="utf-8")
