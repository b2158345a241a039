"""`triage classify FILE`."""

from __future__ import annotations

from triage.cli import open as parts
from triage.cli.classify import classification_json, render_classification
from triage.cli.deciding import bench, read_input
from triage.cli.theme import make_console
from triage.prepare import prepare, read_message


def classify_command(file: str, config: str | None, account: str | None, *, as_json: bool) -> int:
    """Decide one message from a file, as a run would; 0 with an answer, 1 without. Raises ConfigError."""
    raw = read_input(file)
    table = bench(config, account)
    try:
        mail = prepare(read_message(raw), max_chars=table.decision.body_chars)
        ruling, verdict = table.rule(mail)
    finally:
        table.chain.close()
    label = table.categories.label(verdict.label_id)
    if as_json:
        parts.print_json(classification_json(ruling.answer, verdict, label))
    else:
        make_console().print(render_classification(ruling.answer, verdict, label))
    return 0 if ruling.answer else 1
