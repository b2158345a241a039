"""The mail tool's tables: runs, waits, claims, takings, requests, receipts, tokens. None has room for mail content."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from triage.ledger.schema import metadata
from triage.ledger.types import BigInt, Key, UtcDateTime

tool_runs = Table(
    "tool_runs",
    metadata,
    Column("id", Key, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("account", Key, nullable=False),
    Column("purpose", Text, nullable=False),
    Column("mailbox_id", Key, nullable=False),
    Column("strategy", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("folder", Text, nullable=False),
    Column("lease_key", Key, nullable=False),
    Column("uidvalidity", BigInt, nullable=False),
    Column("baseline_uid", BigInt, nullable=False),
    Column("opened_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("watch_until", UtcDateTime, nullable=False),
    Column("policy_version", Text, nullable=False),
    Column("policy_digest", Text, nullable=False),
    Column("reuse_reason", Text),
    Column("prompt_version", Text),
    Column("ended_at", UtcDateTime),
    Column("end_reason", Text),
    Column("attempts_used", Integer, nullable=False),
    Column("reads_used", Integer, nullable=False),
    Column("requests_used", Integer, nullable=False),
    PrimaryKeyConstraint("id", "generation"),
)
OPEN = text("ended_at IS NULL")
Index(
    "uq_tool_runs_lease",
    tool_runs.c.account,
    tool_runs.c.lease_key,
    unique=True,
    sqlite_where=OPEN,
    postgresql_where=OPEN,
)
Index("ix_tool_runs_watch", tool_runs.c.account, tool_runs.c.watch_until)
Index("ix_tool_runs_opened", tool_runs.c.opened_at)

_OF_RUN = ("run_id", "generation")


def _run_key() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(_OF_RUN, ["tool_runs.id", "tool_runs.generation"], ondelete="CASCADE")


tool_waits = Table(
    "tool_waits",
    metadata,
    Column("id", Key, primary_key=True),
    Column("run_id", Key, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("account", Key, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("terms", Text, nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("start_delay_ms", BigInt, nullable=False),
    Column("spent_ms", BigInt, nullable=False),
    Column("slots_done", Integer, nullable=False),
    Column("polls_used", Integer, nullable=False),
    Column("polls_failed", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("cancelled", Boolean, nullable=False),
    Column("receipt_id", Key),
    # The shared clock when `spent_ms` was last counted, and who counts it now.
    Column("mark_epoch", Text, nullable=False),
    Column("mark_ms", BigInt, nullable=False),
    Column("mark_at", UtcDateTime, nullable=False),
    Column("holder", Text),
    Column("held_until_ms", BigInt, nullable=False),
    UniqueConstraint("run_id", "generation", "attempt"),
    _run_key(),
)

tool_claims = Table(
    "tool_claims",
    metadata,
    Column("account", Key, nullable=False),
    Column("message_key", Key, nullable=False),
    Column("run_id", Key, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("wait_id", Key),
    Column("message_id", Key, nullable=False),
    Column("mailbox", Text, nullable=False),
    Column("uidvalidity", BigInt, nullable=False),
    Column("uid", BigInt, nullable=False),
    Column("fingerprint", Key, nullable=False),
    Column("matched_rule", Text, nullable=False),
    Column("received_at", UtcDateTime, nullable=False),
    Column("claimed_at", UtcDateTime, nullable=False),
    Column("receipt_id", Key, nullable=False),
    # The one line that decides who gets a message, however many processes ask.
    PrimaryKeyConstraint("account", "message_key"),
)
Index("ix_tool_claims_run", tool_claims.c.run_id, tool_claims.c.generation)

tool_takings = Table(
    "tool_takings",
    metadata,
    Column("account", Key, nullable=False),
    Column("message_key", Key, nullable=False),
    Column("kind", Key, nullable=False),
    Column("delivery", Text, nullable=False),
    Column("run_id", Key, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("receipt_id", Key, nullable=False),
    Column("taken_at", UtcDateTime, nullable=False),
    Column("host", Text),
    Column("length", Integer),
    Column("handle_key", Key),
    Column("redeemed_at", UtcDateTime),
    PrimaryKeyConstraint("account", "message_key", "kind"),
    UniqueConstraint("handle_key"),
    ForeignKeyConstraint(
        ["account", "message_key"], ["tool_claims.account", "tool_claims.message_key"], ondelete="CASCADE"
    ),
)

tool_requests = Table(
    "tool_requests",
    metadata,
    Column("run_id", Key, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("number", Integer, nullable=False),
    Column("state", Text, nullable=False),  # new | accepted | rejected | unknown
    Column("tries", Integer, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    PrimaryKeyConstraint("run_id", "generation", "number"),
    _run_key(),
)

tool_receipts = Table(
    "tool_receipts",
    metadata,
    Column("id", Key, primary_key=True),
    Column("account", Key, nullable=False),
    Column("run_id", Key),  # no foreign key: a refused call may name no run that exists
    Column("generation", Integer, nullable=False),
    Column("wait_id", Key),
    Column("call", Text, nullable=False),
    Column("surface", Text, nullable=False),
    Column("intent", Text),
    Column("state", Key, nullable=False),
    Column("reason", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("elapsed_ms", BigInt, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("polls_used", Integer, nullable=False),
    Column("counts", Text, nullable=False),
    Column("stages", Text, nullable=False),
    Column("polls", Text, nullable=False),
    Column("candidates", Text, nullable=False),
    Column("message_id", Key),
    Column("fingerprint", Key),
    Column("mailbox_id", Text),
    Column("cursor", Text),
    Column("retryable", Boolean, nullable=False),
    Column("next_action", Text, nullable=False),
    Column("policy_version", Text),
    Column("policy_digest", Text),
    Column("request_digest", Text),
    Column("request_text", Text),
    Column("prompt_version", Text),
    Column("salt", LargeBinary(16), nullable=False),
)
Index("ix_tool_receipts_run", tool_receipts.c.run_id, tool_receipts.c.at)
Index("ix_tool_receipts_at", tool_receipts.c.account, tool_receipts.c.at, tool_receipts.c.id)

tool_tokens = Table(
    "tool_tokens",
    metadata,
    Column("token_key", Key, primary_key=True),
    Column("runs", Text, nullable=False),
    Column("issued_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
)
