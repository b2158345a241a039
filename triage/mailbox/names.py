"""Names on the wire: mailboxes in modified UTF-7 and quotes, keywords as atoms, labels as folder names."""

from __future__ import annotations

import re

from imapclient import imap_utf7

from triage.domain.errors import CommandRefused

_KEYWORD = re.compile(r"[A-Za-z0-9/._-]{1,50}")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]")


def quoted(text: str) -> bytes:
    """A quoted string (RFC 9051, 4.3). Raises ValueError for what no quoted string can hold."""
    if _UNSAFE.search(text) or not text.isascii():
        raise ValueError("a quoted string holds printable ASCII only")
    return b'"' + text.replace("\\", "\\\\").replace('"', '\\"').encode("ascii") + b'"'


def mailbox_argument(name: str) -> bytes:
    """A mailbox name as an argument: modified UTF-7 (RFC 3501, 5.1.3), quoted."""
    return quoted(imap_utf7.encode(name).decode("ascii"))


def mailbox_name(wire: bytes) -> str:
    """A mailbox name as a person writes it; undecodable names stay as they are. INBOX is spelled one way."""
    try:
        name = str(imap_utf7.decode(wire))
    except (ValueError, UnicodeError):
        name = wire.decode("latin-1")
    return "INBOX" if name.upper() == "INBOX" else name


def keyword(label: str) -> bytes:
    """A label as an IMAP keyword: what all servers keep, at most 50 of A-Z a-z 0-9 / . _ -

    Raises CommandRefused for anything else.
    """
    if not _KEYWORD.fullmatch(label):
        raise CommandRefused(
            f"the label {label!r} cannot be an IMAP keyword: use 1 to 50 of the characters A-Z a-z 0-9 / . _ -"
        )
    return label.encode("ascii")


def folder_of(label: str, prefix: str, delimiter: str) -> str:
    """The mailbox that stands for a label with a folder store: `Parent/id` under the server's prefix and delimiter.

    A delimiter inside a word would make a level of its own and becomes "-"; a flat name space joins words with "-".
    """
    words = [w.replace(delimiter, "-") if delimiter and delimiter != "/" else w for w in label.split("/") if w]
    return prefix + (delimiter or "-").join(words)
