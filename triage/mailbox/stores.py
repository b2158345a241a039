"""How a label is kept: as a keyword, as a Gmail label, or as the folder a message lies in."""

from __future__ import annotations

from collections.abc import Sequence

from imapclient import imap_utf7

from triage.mailbox.names import keyword, quoted


class KeywordStore:
    """Labels are IMAP keywords (RFC 9051, 2.3.2): kept by COPY and MOVE, case-insensitive."""

    name = "keyword"

    def without(self, label: str) -> str:
        """The search key for messages that do not bear the label."""
        return f"UNKEYWORD {keyword(label).decode('ascii')}"

    def item(self, label: str) -> tuple[str, str]:
        """What STORE changes: the data item and its value."""
        return "FLAGS", keyword(label).decode("ascii")


class GmailStore:
    """Labels are Gmail's own (X-GM-EXT-1)."""

    name = "gmail"

    def without(self, label: str) -> str:
        return f"NOT X-GM-LABELS {_gmail(label)}"

    def item(self, label: str) -> tuple[str, str]:
        return "X-GM-LABELS", _gmail(label)


class FolderStore:
    """A labelled message lies in the label's folder; what is in the inbox is not labelled yet."""

    name = "folder"


Store = KeywordStore | GmailStore | FolderStore


def store_for(name: str, capabilities: frozenset[str]) -> Store:
    """The store of the settings; "auto" is Gmail's labels where the server has them, else keywords."""
    if name == "folder":
        return FolderStore()
    if name == "gmail" or (name == "auto" and "X-GM-EXT-1" in capabilities):
        return GmailStore()
    return KeywordStore()


def missing_label_keys(store: Store, labels: Sequence[str]) -> list[str]:
    """Search keys that together find the messages without any of `labels`.

    Raises CommandRefused for a label that cannot be a keyword.
    """
    return [] if isinstance(store, FolderStore) else [store.without(label) for label in labels]


def bears(flags: frozenset[str], label: str) -> bool:
    """Labels are compared without regard to case, as servers do."""
    wanted = label.casefold()
    return any(flag.casefold() == wanted for flag in flags)


def borne(flags: frozenset[str], labels: Sequence[str]) -> frozenset[str]:
    """Those of `labels` that stand among the flags."""
    folded = {flag.casefold() for flag in flags}
    return frozenset(label for label in labels if label.casefold() in folded)


def _gmail(label: str) -> str:
    return quoted(imap_utf7.encode(label).decode("ascii")).decode("ascii")
