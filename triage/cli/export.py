"""`triage export`: every decision of a period, as JSON lines or CSV, for other tools."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any, TextIO

from triage.bootstrap import App
from triage.cli import open as parts
from triage.cli import period
from triage.cli.jsonview import decision_json
from triage.config.settings import Settings
from triage.domain.errors import ConfigError

FORMATS = ("jsonl", "csv")


def export_command(config: str | None, account: str | None, *, since: str, form: str) -> int:
    """Write the decisions of a period to stdout, oldest first, in bounded memory."""
    if form not in FORMATS:
        raise ConfigError(f"--format {form}: write {' or '.join(FORMATS)}")
    with parts.opened(config) as app:
        began = period.since(since, app.clock.now())
        name = app.account(account).name if account else None
        export(app, name, began, form, sys.stdout)
    return 0


def export(app: App, account: str | None, since: datetime, form: str, out: TextIO) -> None:
    rows = _rows(app, account, since)
    if form == "jsonl":
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n")
        return
    writer: csv.DictWriter[str] | None = None
    for row in rows:
        flat = {k: _cell(v) for k, v in row.items()}
        if writer is None:
            writer = csv.DictWriter(out, list(flat), lineterminator="\n")
            writer.writeheader()
        writer.writerow(flat)


def _rows(app: App, account: str | None, since: datetime) -> Iterator[dict[str, Any]]:
    for decision in app.ledger.iter_decisions(account, since):
        parent = _parent(app.settings, decision.account)
        told = {"account": decision.account, "run": decision.run_id, **decision_json(decision, parent=parent)}
        told |= {
            "output_tokens": decision.output_tokens,
            "question_tokens": decision.question_tokens,
            "category_set": decision.category_set,
            "body_chars": decision.body_chars,
            "links_removed": decision.links_removed,
        }
        yield told


def _parent(settings: Settings, account: str) -> str:
    known = settings.account(account)
    return known.categories.parent if known else "Triage"


def _cell(value: object) -> object:
    """A cell for a spreadsheet: lists and maps as JSON; text that begins like a formula is quoted."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return value
