"""UID SEARCH in the form whose answer names its command, where the server has it (ESEARCH, RFC 4731).

Dovecot answers pipelined commands first and completes them together: two plain SEARCH lines could not be told apart.
"""

from __future__ import annotations

import re

from triage.domain.errors import MailboxLost
from triage.mailbox import sets
from triage.mailbox.answers import Reply

_ALL = re.compile(rb"\bALL ([\d:,]+)", re.IGNORECASE)
_MIN = re.compile(rb"\bMIN (\d+)", re.IGNORECASE)
_PARTIAL = re.compile(rb"\bPARTIAL \(\S+ ([\d:,]+)\)", re.IGNORECASE)


def search_command(capabilities: frozenset[str], keys: str) -> bytes:
    """UID SEARCH for all UIDs that match `keys` (ASCII)."""
    form = "RETURN (ALL) " if "ESEARCH" in capabilities else ""
    return f"UID SEARCH {form}{keys}".encode("ascii")


def partial_command(first: int, last: int, keys: str) -> bytes:
    """UID SEARCH for the matches number `first` to `last`, lowest UIDs first (RFC 5267, 4.4; RFC 9394)."""
    return f"UID SEARCH RETURN (PARTIAL {first}:{last}) {keys}".encode("ascii")


def lowest_command(keys: str) -> bytes:
    """UID SEARCH for the lowest UID that matches (RFC 4731, 3.1)."""
    return f"UID SEARCH RETURN (MIN) {keys}".encode("ascii")


def lowest_of(reply: Reply) -> int:
    """The UID of an ESEARCH answer with MIN, 0 if nothing matched."""
    matches = (_MIN.search(line) for line in reply.lines("ESEARCH"))
    return next((int(match[1]) for match in matches if match), 0)


def hits_of(reply: Reply) -> list[int]:
    """The UIDs of a SEARCH answer, in any form: several lines, a (MODSEQ n) at the end, ESEARCH with ALL or PARTIAL.

    Raises MailboxLost for a set that cannot be read.
    """
    plain = [int(word) for line in reply.lines("SEARCH") for word in line.partition(b"(")[0].split() if word.isdigit()]
    matches = (_ALL.search(line) or _PARTIAL.search(line) for line in reply.lines("ESEARCH"))
    try:
        return plain + [uid for match in matches if match for uid in sets.parse(match[1].decode("ascii"))]
    except ValueError as exc:
        raise MailboxLost(f"a SEARCH answer could not be read: {exc}") from None
