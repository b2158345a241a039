"""What an opened mailbox can do for triage, as findings in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from triage.domain.category import Action, CategorySet
from triage.ports import MailboxFacts
from triage.report.finding import Finding

KEYWORDS_SAFE = 26
"""Dovecot keeps this many keywords of a maildir in its file names; more are lost when its index is rebuilt."""
KEYWORDS_CYRUS = 100


def check_facts(facts: MailboxFacts, categories: CategorySet, mode: str) -> Iterator[Finding]:
    """What the server said of itself, held against what this account asks of it."""
    yield Finding("ok", "inbox", f"{facts.inbox} holds {facts.messages:,} messages (UIDVALIDITY {facts.uidvalidity})")
    yield _labels(facts, mode)
    yield from _keyword_room(facts, categories)
    yield _archive(facts, categories, mode)
    yield _moving(facts, mode)
    yield _condstore(facts)
    yield _threads(facts)
    if facts.sent is None:
        yield Finding("warn", "sent", "no mailbox for sent mail found", "Answers of the owner are seen only in INBOX.")
    else:
        yield Finding("ok", "sent", facts.sent)


def _labels(facts: MailboxFacts, mode: str) -> Finding:
    where = {"keyword": "keywords on the message", "gmail": "Gmail labels", "folder": "folders"}[facts.label_store]
    state: Literal["warn", "fail"] = "warn" if mode == "preview" else "fail"
    if facts.read_only:
        return Finding(
            state, "labels", "the inbox opens read-only", "Give this login the right to write, or use mode: preview."
        )
    if not facts.keeps_keywords:
        return Finding(
            state,
            "labels",
            "the server keeps no custom keywords here (PERMANENTFLAGS lacks \\*)",
            "Give this login the right to write flags, or set labels: folder.",
        )
    return Finding("ok", "labels", f"{where}; each is read back after it was stored")


def _keyword_room(facts: MailboxFacts, categories: CategorySet) -> Iterator[Finding]:
    if facts.label_store != "keyword":
        return
    ours = {label.casefold() for label in categories.labels}
    total = len(ours | {k.casefold() for k in facts.keywords if not k.startswith("\\")})
    if total > KEYWORDS_SAFE:
        yield Finding(
            "warn",
            "keywords",
            f"{total} distinct keywords in this mailbox, ours included",
            f"Dovecot on maildir keeps only {KEYWORDS_SAFE} over an index rebuild, Cyrus stops at {KEYWORDS_CYRUS}: "
            "use fewer categories, or labels: folder.",
        )


def _archive(facts: MailboxFacts, categories: CategorySet, mode: str) -> Finding:
    if facts.archive is not None:
        return Finding("ok", "archive", facts.archive)
    if mode == "act" and any(categories.action(i) is Action.ARCHIVE for i in categories.ids):
        return Finding("warn", "archive", f"none found; {facts.archive_to_create} is created with the first archiving")
    return Finding("ok", "archive", "none found, none needed")


def _moving(facts: MailboxFacts, mode: str) -> Finding:
    if "MOVE" in facts.capabilities:
        return Finding("ok", "moving", "MOVE")
    if "UIDPLUS" in facts.capabilities:
        return Finding("ok", "moving", "no MOVE: COPY, then UID EXPUNGE of just that message (UIDPLUS)")
    state: Literal["warn", "ok"] = "warn" if mode == "act" else "ok"
    return Finding(state, "moving", "neither MOVE nor UIDPLUS", "Nothing can be archived safely here: set mode: label.")


def _condstore(facts: MailboxFacts) -> Finding:
    if "CONDSTORE" in facts.capabilities:
        return Finding("ok", "guarded labels", "CONDSTORE: a label is stored only if nobody touched the message")
    return Finding("warn", "guarded labels", "no CONDSTORE: flags are read again right before each label is stored")


def _threads(facts: MailboxFacts) -> Finding:
    for capability, name in (("X-GM-EXT-1", "X-GM-THRID"), ("OBJECTID", "THREADID")):
        if capability in facts.capabilities:
            return Finding("ok", "threads", f"References and In-Reply-To, and the server's {name}")
    return Finding("ok", "threads", "References and In-Reply-To")
