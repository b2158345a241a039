"""One command's answer, and what a NO or a BAD means. The only place that reads response codes as errors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from triage.domain.errors import CommandRefused, LoginRefused, MailboxBusy, MailboxError, MailboxLost

Untagged = Mapping[str, Sequence[object]]

TEMPORARY = frozenset({"THROTTLED", "UNAVAILABLE", "LIMIT", "OVERQUOTA", "INUSE", "SERVERBUG"})
"""Response codes after which the same command may succeed later (RFC 5530, RFC 9051 7.1; THROTTLED is Gmail's)."""

ONE_COMMAND_ONLY = frozenset({"LIMIT", "OVERQUOTA"})
"""Of these the ones that speak of what was to be stored, not of the connection, when a write is refused."""

_CODE = re.compile(r"\[([A-Za-z0-9-]+)(?: ([^\]]*))?\]")
_BUSY_WORDS = re.compile(r"too many|try (?:again )?later|temporar|rate limit|throttl", re.IGNORECASE)
_CREDENTIAL_CODES = frozenset({"AUTHENTICATIONFAILED", "AUTHORIZATIONFAILED", "EXPIRED", "PRIVACYREQUIRED"})


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server said to one command: OK, NO or BAD, its text, and the untagged responses by type.

    The values of `untagged` are octets, or pairs (text, literal) where a literal was sent.
    """

    status: str
    text: str
    untagged: Untagged = field(default_factory=dict, repr=False)

    @property
    def ok(self) -> bool:
        return self.status == "OK"

    @property
    def code(self) -> str:
        """The response code in capitals, or ""."""
        return code_of(self.text)

    def lines(self, kind: str) -> list[bytes]:
        """The untagged responses of one type, without literals."""
        return [line for line in self.untagged.get(kind, ()) if isinstance(line, bytes)]

    def code_values(self, code: str) -> list[str]:
        """The arguments of a response code, wherever in the answer it stood (imaplib may leave text behind the "]")."""
        return [line.decode("latin-1").partition("]")[0].strip() for line in self.lines(code)]


def code_of(text: str) -> str:
    match = _CODE.match(text)
    return match[1].upper() if match else ""


def refusal(reply: Reply, what: str) -> MailboxError:
    """The error for a NO or BAD to `what` ("SEARCH", "STORE", ...)."""
    told = f"the server refused {what}: {reply.status} {reply.text}".rstrip()
    if reply.code in TEMPORARY:
        return MailboxBusy(told)
    return CommandRefused(told, reply.code)


def write_refusal(reply: Reply, what: str) -> str:
    """Why a STORE, COPY or MOVE was refused, for the messages it named.

    Raises MailboxBusy where the server asks to come back later: then nothing more should be written now.
    """
    if reply.code in TEMPORARY - ONE_COMMAND_ONLY:
        raise refusal(reply, what)
    return f"the server refused {what}: {reply.status} {reply.text}".rstrip()


def login_refusal(reply: Reply, where: str) -> MailboxError:
    """The error for a NO or BAD to a login. A crowded server is not a wrong password."""
    told = f"{where}: the server refused the login: {reply.status} {reply.text}".rstrip()
    if reply.code in TEMPORARY or (reply.code not in _CREDENTIAL_CODES and _BUSY_WORDS.search(reply.text)):
        return MailboxBusy(told)
    return LoginRefused(f"{told}; check user name and secret, it is not tried again until the configuration changes")


def farewell(text: str, where: str) -> MailboxError:
    """The error for an untagged BYE."""
    told = f"{where}: the server closed the connection: {text}".rstrip(": ")
    if code_of(text) in TEMPORARY or _BUSY_WORDS.search(text):
        return MailboxBusy(told)
    return MailboxLost(told)


def printable(text: str, limit: int = 200) -> str:
    """A server's words made fit for a message: one line, printable, short."""
    flat = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."
