"""The hash chain: one per account, written in the same transaction as what it tells of.

A link's hash covers the link before it, so that an edited, missing, inserted or reordered record is found. Links hold
digests, never content: what a decision said can be forgotten and the chain still verifies. A decision's digests are
salted; the salt goes with the row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, bindparam, insert, select, text, update

from triage.ledger.backend import Backend
from triage.ledger.schema import chains, events

GENESIS = bytes(32)
"""The hash that an account's first link hangs on."""
RECEIPTS = "tool:"
"""What the name of a chain of receipts begins with; no account's name holds a colon."""
HOLDS_RECEIPTS = chains.c.account.startswith(RECEIPTS, autoescape=True)

_OF_ACCOUNT = chains.c.account == bindparam("of")
_END = select(chains.c.seq, chains.c.hash).where(_OF_ACCOUNT).with_for_update()
_ADD = insert(events)
_MOVE_END = update(chains).where(_OF_ACCOUNT).values(seq=bindparam("to_seq"), hash=bindparam("to_hash"))


def end_of(account: str) -> tuple[ColumnElement[int], ColumnElement[bytes]]:
    """The end of an account's chain, read and locked by a statement that returns rows of the account; NULLs before its
    first link. `account` is that statement's column, written out: for SQLite, SQLAlchemy writes columns in RETURNING
    without their table, and would compare a column with itself."""
    ours = text(f"chains.account = {account}")
    seq, last = (select(c).where(ours).with_for_update().scalar_subquery() for c in (chains.c.seq, chains.c.hash))
    return seq.label("chain_seq"), last.label("chain_hash")


class Kind(StrEnum):
    """What a link tells of its subject (a run, a decision, a correction)."""

    RUN_FINISHED = "run_finished"  # done, failed or cut; covers its start too
    DECIDED = "decided"
    LABELLED = "labelled"
    ARCHIVED = "archived"
    CLOSED = "closed"
    RECOVERED = "recovered"
    CORRECTED = "corrected"  # its subject is a correction by a person
    CONFIRMED = "confirmed"
    UNDOING = "undoing"
    UNDONE = "undone"
    FORGOTTEN = "forgotten"
    PRUNED = "pruned"  # retention cut the chain up to the link that is its subject
    RECEIPT = "receipt"  # a call of the mail tool; in a chain of its own beside the account's


def receipts_chain(account: str) -> str:
    """The chain that an account's receipts hang on, beside its own: they are kept for another time."""
    return RECEIPTS + account


@dataclass(frozen=True, slots=True)
class Link:
    """One fact to be chained: what happened to whom, and the digest of what was written."""

    kind: Kind
    subject: str
    digest: bytes


_canonical = json.JSONEncoder(default=datetime.isoformat, ensure_ascii=True, separators=(",", ":")).encode


def digest(values: Sequence[Any], salt: bytes = b"") -> bytes:
    """SHA-256 of a row's values in their order."""
    return hashlib.sha256(salt + _canonical(values).encode()).digest()


def link_hash(before: bytes, account: str, seq: int, at: datetime, kind: str, subject: str, content: bytes) -> bytes:
    """The hash of one link, given the hash of the one before it."""
    told = f"{seq}\n{at.isoformat()}\n{kind}\n{account}\n{subject}\n"
    return hashlib.sha256(before + told.encode() + content).digest()


def begin(connection: Connection, backend: Backend, account: str) -> tuple[int, bytes]:
    """Lock the end of a chain that has no link yet, or of one that another transaction has begun meanwhile."""
    begun = connection.execute(_first(backend.insert), {"account": account}).one_or_none()
    seq, last = begun or connection.execute(_END, {"of": account}).one()
    return seq, last


@lru_cache(maxsize=4)
def _first(insert_into: Callable[[Table], Any]) -> Any:
    first = insert_into(chains).values(account=bindparam("account"), seq=0, hash=GENESIS, base_seq=0, base_hash=GENESIS)
    return first.on_conflict_do_nothing().returning(chains.c.seq, chains.c.hash)


def append(
    connection: Connection,
    backend: Backend,
    account: str,
    at: datetime,
    links: Sequence[Link],
    end: tuple[int, bytes] | None = None,
) -> None:
    """Chain `links` to the account's end. Locks the account's chain until the transaction ends.

    `end` is that end where the caller has read and locked it already (`end_of`).
    """
    if not links:
        return
    at = at.astimezone(UTC)
    if end is None:
        end = connection.execute(_END, {"of": account}).one_or_none() or begin(connection, backend, account)
    seq, last = end
    rows = []
    for link in links:
        seq += 1
        last = link_hash(last, account, seq, at, link.kind, link.subject, link.digest)
        rows.append(
            {
                "account": account,
                "seq": seq,
                "at": at,
                "kind": str(link.kind),
                "subject": link.subject,
                "digest": link.digest,
                "hash": last,
            }
        )
    connection.execute(_ADD, rows if len(rows) > 1 else rows[0])
    connection.execute(_MOVE_END, {"of": account, "to_seq": seq, "to_hash": last})
