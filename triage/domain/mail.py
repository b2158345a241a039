"""Mail as the program sees it: where a message is, how it is built, and what a model may read of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

HEADER_FIELDS = (
    "From", "To", "Cc", "Subject", "Date", "Message-ID", "In-Reply-To", "References", "Reply-To", "Sender",
    "Return-Path", "List-Id", "List-Unsubscribe", "List-Unsubscribe-Post", "List-Post", "Feedback-ID", "Precedence",
    "Auto-Submitted", "X-Auto-Response-Suppress", "X-Priority", "Importance", "Content-Type",
    "Content-Transfer-Encoding",
)  # fmt: skip
"""The only header fields the program ever fetches."""

THREAD_FIELDS = (
    "From", "Subject", "Message-ID", "In-Reply-To", "References", "Precedence", "Auto-Submitted", "List-Id",
    "List-Unsubscribe", "List-Post",
)  # fmt: skip
"""Those of them that tell of a mail's thread: all that is fetched of a mail that is not sorted itself."""


@dataclass(frozen=True, slots=True, order=True)
class MessageRef:
    """The identity of a message in a mailbox: name, UIDVALIDITY and UID (RFC 9051, 2.3.1.1)."""

    mailbox: str
    uidvalidity: int
    uid: int

    def __str__(self) -> str:
        return f"{self.mailbox}:{self.uidvalidity}:{self.uid}"


@dataclass(frozen=True, slots=True)
class Part:
    """One node of a message's MIME structure (RFC 9051, 7.5.2 BODYSTRUCTURE), without its bytes.

    `path` is the IMAP section ("1", "1.2"; "" is the root of a multipart message), `size` counts encoded octets.
    Type, subtype, encoding and disposition are lower case.
    """

    path: str
    type: str
    subtype: str
    params: Mapping[str, str] = field(default_factory=dict)
    encoding: str = "7bit"
    size: int = 0
    disposition: str = ""
    filename: str = ""
    children: tuple[Part, ...] = ()

    @property
    def mime_type(self) -> str:
        return f"{self.type}/{self.subtype}"

    def walk(self) -> Iterator[Part]:
        """This part and all below it, in the order of the message."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class PartBytes:
    """The transfer-encoded bytes of one leaf part; `cut` says that the server held more than was fetched."""

    part: Part
    data: bytes
    cut: bool = False


@dataclass(frozen=True, slots=True)
class MailSource:
    """What preparation works on: the raw header block, the structure, and the bytes of the chosen text parts."""

    headers: bytes
    structure: Part
    texts: tuple[PartBytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Head:
    """What one FETCH of a batch says of a message: no text yet.

    `flags` holds flags and keywords as the server spells them. `modseq` is 0 without CONDSTORE. `received` is
    INTERNALDATE, aware. `thread_id` is X-GM-THRID or OBJECTID THREADID where the server has one, else "".
    `headers` holds only the header fields the program asks for (HEADER_FIELDS).
    """

    ref: MessageRef
    headers: bytes
    structure: Part
    flags: frozenset[str] = frozenset()
    modseq: int = 0
    received: datetime | None = None
    size: int = 0
    thread_id: str = ""


@dataclass(frozen=True, slots=True)
class Signals:
    """Facts about a mail's build that its text does not show. Never sent to a model server.

    The embedded classifier reads them; the hijack rule reads `hidden_chars` (a count, never the text).
    `headers` maps lower-case names to decoded, unfolded values of the fields that tell bulk and automatic mail
    from personal mail (list-id, list-unsubscribe, list-unsubscribe-post, list-post, feedback-id, precedence,
    auto-submitted, in-reply-to, references, reply-to, return-path, x-priority, importance, x-auto-response-suppress).
    """

    headers: Mapping[str, str] = field(default_factory=dict)
    has_html: bool = False
    html_chars: int = 0
    links: int = 0
    address_links: int = 0  # links whose host is a bare IP address
    link_hosts: int = 0  # distinct hosts
    images: int = 0
    attachments: int = 0
    quoted_lines: int = 0
    hidden_chars: int = 0  # visible to a machine, not to a person


@dataclass(frozen=True, slots=True)
class PreparedMail:
    """Exactly what a model reads (sender, recipient, subject, body) and what was taken out on the way.

    All strings are valid UTF-8 without control characters; `body` is within the configured number of characters.
    `warnings` are short codes, sorted, without any text of the mail ("hidden_text", "truncated", "bad_charset",
    "encrypted", "empty", ...).
    """

    sender: str
    recipient: str
    subject: str
    body: str
    links_removed: int = 0
    truncated: bool = False
    warnings: tuple[str, ...] = ()
    signals: Signals = field(default_factory=Signals)
