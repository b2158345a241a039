"""A whole message, or the leading bytes of one, brought to the same form that comes from the server in pieces."""

from __future__ import annotations

from triage.domain.mail import MailSource, PartBytes
from triage.prepare.choose import choose_parts
from triage.prepare.headers import MAX_BLOCK
from triage.prepare.mime import split_message


def read_message(raw: bytes) -> MailSource:
    """Split `raw` (RFC 5322) and take what would be fetched of it: the chosen text parts, each up to its cap.

    Never raises; costs what the text parts cost, however large the message is.
    """
    if b"\r" in raw[:2000] and b"\n" not in raw[:MAX_BLOCK]:
        raw = raw.replace(b"\r", b"\n")  # line ends of an old Macintosh
    message = split_message(raw)
    texts: list[PartBytes] = []
    for part, cap in choose_parts(message.structure):
        start, end = message.spans.get(part.path, (0, 0))
        texts.append(PartBytes(part, raw[start : min(end, start + cap)], cut=end - start > cap))
    return MailSource(message.headers, message.structure, tuple(texts))
