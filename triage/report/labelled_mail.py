"""Labelled mail to measure a classifier with: JSON lines, or folders of messages named after their category."""

from __future__ import annotations

import gzip
import json
import mailbox
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any

from triage.domain.errors import ConfigError
from triage.domain.mail import MailSource

_LINE_BREAKS = re.compile(r"[\r\n\x00]+")
_SKIPPED = frozenset({"content-type", "content-transfer-encoding", "mime-version", "from", "to", "subject", "date"})


@dataclass(frozen=True, slots=True)
class LabelledMail:
    """One message and the category a person says it has.

    `raw` is the message as it would lie in a mailbox, or what was fetched of it there. `lang` and `source` only serve
    to break figures down; "" if unknown.
    """

    id: str
    category: str
    raw: bytes | MailSource
    lang: str = ""
    source: str = ""


def read_labelled(path: Path) -> Iterator[LabelledMail]:
    """Labelled mail of a `.jsonl` or `.jsonl.gz` file, or of a folder `CATEGORY/*.eml` and `CATEGORY.mbox`.

    Raises ConfigError, with file and line, for what is neither.
    """
    if path.is_dir():
        yield from _read_folder(path)
    elif path.name.endswith((".jsonl", ".jsonl.gz")):
        yield from _read_lines(path)
    else:
        raise ConfigError(f"{path}: labelled mail is a .jsonl or .jsonl.gz file, or a folder of CATEGORY/*.eml.")


def message_of(row: Mapping[str, Any]) -> bytes:
    """The message of one row: `raw` if it is there, else built from its headers, `body_text` and `body_html`."""
    if row.get("raw"):
        return str(row["raw"]).encode("utf-8", "surrogateescape")
    message = EmailMessage(policy=SMTP)
    headers = {"From": row.get("from"), "To": row.get("to"), "Subject": row.get("subject"), "Date": row.get("date")}
    headers |= {k: v for k, v in (row.get("headers") or {}).items() if k.lower() not in _SKIPPED}
    lines = [f"{name}: {_LINE_BREAKS.sub(' ', str(value))}\r\n" for name, value in headers.items() if value]
    message.set_content(_encodable(row.get("body_text")), cte="base64")
    if row.get("body_html"):
        message.add_alternative(_encodable(row["body_html"]), subtype="html", cte="base64")
    for name in row.get("attachments") or ():
        message.add_attachment(b"-", maintype="application", subtype="octet-stream", filename=str(name))
    return "".join(lines).encode("utf-8", "surrogateescape") + message.as_bytes()


def _encodable(text: object) -> str:
    return str(text or "").encode("utf-8", "replace").decode()


def _read_lines(path: Path) -> Iterator[LabelledMail]:
    for number, line in _lines(path):
        try:
            row = json.loads(line)
            mail = LabelledMail(
                id=str(row["id"]),
                category=str(row["category"]),
                raw=message_of(row),
                lang=str(row.get("lang") or ""),
                source=str(row.get("source") or ""),
            )
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            told = f"{type(error).__name__}: {error}"[:200]
            raise ConfigError(f"{path}:{number}: not a labelled mail, it needs id and category ({told})") from error
        yield mail


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, numbered from 1. Raises ConfigError if the file cannot be read to its end."""
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, line
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or "not a whole gzip file"
        where = f"{path}:{number}" if number else str(path)
        raise ConfigError(f"{where}: cannot be read ({why})") from error


def _read_folder(path: Path) -> Iterator[LabelledMail]:
    found = False
    for file in sorted(path.glob("*/*.eml")):
        found = True
        category = file.parent.name
        yield LabelledMail(f"{category}/{file.name}", category, file.read_bytes(), source=path.name)
    for file in sorted(path.glob("*.mbox")):
        found = True
        box = mailbox.mbox(file, create=False)
        try:
            for key in box.iterkeys():
                yield LabelledMail(f"{file.name}/{key}", file.stem, box.get_bytes(key), source=path.name)
        finally:
            box.close()
    if not found:
        raise ConfigError(f"{path}: no mail found; it needs folders named after categories with .eml files in them.")
