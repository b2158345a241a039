"""Training and evaluation mail, read and prepared exactly as the program does it at run time."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.train.corpus import corpus_rows
from triage.domain.mail import PreparedMail
from triage.prepare import prepare, read_message
from triage.report.labelled_mail import message_of

EVALUATION = "mail_dev.jsonl.gz"
EXTRA = ("mail_written.jsonl.gz", "mail_templates.jsonl.gz")
MAX_CHARS = 6000
_COARSE = ("tpl-", "nl-", "fx-", "own-modern")


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled, prepared mail. `injected` is the words set into a hijack mail, `plain` ordinary words like them set
    into any other; `evaluated` marks the rows of the evaluation file, all others only ever train."""

    id: str
    source: str
    group: str
    category: str
    lang: str
    train_ok: bool
    evaluated: bool
    mail: PreparedMail
    injected: str = ""
    plain: str = ""

    @property
    def family(self) -> str:
        """What is held out together when a source is: hijack mails go with the source of their carriers."""
        return self.source.removeprefix("hijack:")

    @property
    def weighed_as(self) -> str:
        """The source for weighing; the many small template sources count as one."""
        return "templates" if self.source.startswith(_COARSE) else self.source


def load_examples(folder: Path) -> list[Example]:
    """The evaluation file, the two extra files beside it, and the project's own corpus, in this order."""
    examples = [_example(row, evaluated=True) for row in _rows(folder / EVALUATION)]
    for name in EXTRA:
        examples += [_example(row, evaluated=False) for row in _rows(folder / name)]
    return examples + [_example(row, evaluated=False) for row in corpus_rows()]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _example(row: dict[str, Any], *, evaluated: bool) -> Example:
    return Example(
        id=row["id"],
        source=row["source"],
        group=row["group"],
        category=row["category"],
        lang=row["lang"],
        train_ok=bool(row["train_ok"]),
        evaluated=evaluated,
        mail=prepare(read_message(message_of(row)), max_chars=MAX_CHARS),
        injected=row.get("injection") or "",
        plain=row.get("plain") or "",
    )
