"""`triage prepare FILE`: exactly what a model would read of a mail, what was removed, and the warnings."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from triage.domain.mail import PreparedMail

_MBOX_START = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From [^\n]*\n")


def prepare_command(file: str, as_json: bool) -> int:
    """Print the prepared form of an .eml or mbox file, or of standard input (`-`). 0, or 2 if it cannot be read.

    `as_json` prints one object a message, one a line.
    """
    from triage.prepare import prepare, read_message

    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        print(f"triage prepare: cannot read {file}: {error.strerror or error}", file=sys.stderr)  # noqa: T201
        return 2
    for n, message in enumerate(messages(raw)):
        mail = prepare(read_message(message))
        if as_json:
            sys.stdout.write(json.dumps(as_object(mail), ensure_ascii=False) + "\n")
        else:
            _show(mail, first=n == 0)
    return 0


def messages(raw: bytes) -> Iterator[bytes]:
    """The messages of an mbox (RFC 4155; `>From ` lines restored), or the one message that the bytes are."""
    if not raw.startswith(b"From "):
        yield raw
        return
    starts = list(_MBOX_START.finditer(raw))
    for n, found in enumerate(starts):
        end = starts[n + 1].start() if n + 1 < len(starts) else len(raw)
        yield re.sub(rb"(?m)^>(>*From )", rb"\1", raw[found.end() : end])


def as_object(mail: PreparedMail) -> dict[str, object]:
    """The JSON form of a prepared mail."""
    return {
        "from": mail.sender,
        "to": mail.recipient,
        "subject": mail.subject,
        "body": mail.body,
        "links_removed": mail.links_removed,
        "truncated": mail.truncated,
        "warnings": list(mail.warnings),
    }


def _show(mail: PreparedMail, *, first: bool) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    if not first:
        console.rule()
    for name, value in (("From", mail.sender), ("To", mail.recipient), ("Subject", mail.subject)):
        console.print(Text.assemble((f"{name}: ", "bold"), value))
    console.print()
    console.print(Text(mail.body))
    console.print()
    signals = mail.signals
    removed = [
        f"{count} {noun if count > 1 else noun.removesuffix('s')}"
        for count, noun in (
            (mail.links_removed, "links"),
            (signals.hidden_chars, "hidden characters"),
            (signals.quoted_lines, "quoted lines"),
            (signals.attachments, "attachments"),
        )
        if count
    ]
    console.print(Text.assemble(("Not read: ", "bold"), ", ".join(removed) or "nothing"))
    console.print(Text.assemble(("Warnings: ", "bold"), ", ".join(mail.warnings) or "none"))
    console.print(Text.assemble(("Size: ", "bold"), f"{len(mail.body)} characters of body"))
