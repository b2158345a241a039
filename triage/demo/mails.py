"""The sample mailbox: mail of an invented coffee roaster's shared inbox, from `sample/`, dated relative to now."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from importlib.resources import files

_PLACEHOLDER = re.compile(rb"\{\{(date|day|stamp)([+-]\d+)?\}\}")


@dataclass(frozen=True, slots=True)
class Sample:
    """One message of the sample.

    `raw` is the message as it would come over the wire (CRLF line ends, RFC 5322, section 2.1; broken where it is
    meant to be broken), `received` its INTERNALDATE. `category` is what a person would choose. `reply_to` is the id
    of the sample it answers or claims to answer. `labelled` says that a person labelled it before the demo starts.
    """

    id: str
    raw: bytes
    received: datetime
    mailbox: str
    flags: tuple[str, ...]
    category: str
    reply_to: str | None
    shows: str

    @property
    def labelled(self) -> bool:
        return any(not flag.startswith("\\") for flag in self.flags)

    @property
    def unsorted(self) -> bool:
        """Is this one of the messages that the demo's runs are to sort?"""
        return self.mailbox == "INBOX" and not self.labelled


def sample_mails(now: datetime) -> tuple[Sample, ...]:
    """The sample, oldest first, the newest a few hours before `now` (aware). The same bytes for the same `now`."""
    if now.tzinfo is None:
        raise ValueError("now must be aware")
    folder = files(__package__).joinpath("sample")
    index = tomllib.loads(folder.joinpath("index.toml").read_text(encoding="utf-8"))
    samples = []
    for row in index["mail"]:
        received = (now - timedelta(hours=row["hours"])).replace(microsecond=0)
        template = folder.joinpath(f"{row['id']}.eml").read_bytes()
        samples.append(
            Sample(
                id=row["id"],
                raw=_dated(template, received).replace(b"\n", b"\r\n"),
                received=received,
                mailbox=row.get("mailbox", "INBOX"),
                flags=tuple(row.get("flags", ())),
                category=row["category"],
                reply_to=row.get("reply_to"),
                shows=row["shows"],
            )
        )
    return tuple(sorted(samples, key=lambda sample: sample.received))


def _dated(template: bytes, received: datetime) -> bytes:
    def put(match: re.Match[bytes]) -> bytes:
        kind, offset = match[1], int(match[2] or 0)
        if kind == b"day":
            return (received + timedelta(days=offset)).date().isoformat().encode()
        if kind == b"stamp":
            hour = (received + timedelta(hours=offset)).replace(minute=0, second=0)
            return hour.strftime("%Y%m%dT%H%M%SZ").encode()
        return format_datetime(received).encode()

    return _PLACEHOLDER.sub(put, template)
