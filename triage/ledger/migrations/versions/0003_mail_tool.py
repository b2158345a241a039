"""The mail tool's tables."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
BIG_INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
OPEN = sa.text("ended_at IS NULL")


def upgrade() -> None:
    op.create_table(
        "tool_runs",
        sa.Column("id", KEY, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("account", KEY, nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("mailbox_id", KEY, nullable=False),
        sa.Column("strategy", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("folder", sa.Text(), nullable=False),
        sa.Column("lease_key", KEY, nullable=False),
        sa.Column("uidvalidity", BIG_INT, nullable=False),
        sa.Column("baseline_uid", BIG_INT, nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("watch_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("policy_version", sa.Text(), nullable=False),
        sa.Column("policy_digest", sa.Text(), nullable=False),
        sa.Column("reuse_reason", sa.Text()),
        sa.Column("prompt_version", sa.Text()),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("end_reason", sa.Text()),
        sa.Column("attempts_used", sa.Integer(), nullable=False),
        sa.Column("reads_used", sa.Integer(), nullable=False),
        sa.Column("requests_used", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", "generation", name="pk_tool_runs"),
    )
    op.create_index("ix_tool_runs_opened", "tool_runs", ["opened_at"])
    op.create_index("ix_tool_runs_watch", "tool_runs", ["account", "watch_until"])
    op.create_index(
        "uq_tool_runs_lease",
        "tool_runs",
        ["account", "lease_key"],
        unique=True,
        sqlite_where=OPEN,
        postgresql_where=OPEN,
    )
    op.create_table(
        "tool_waits",
        sa.Column("id", KEY, nullable=False),
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("account", KEY, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("terms", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("start_delay_ms", BIG_INT, nullable=False),
        sa.Column("spent_ms", BIG_INT, nullable=False),
        sa.Column("slots_done", sa.Integer(), nullable=False),
        sa.Column("polls_used", sa.Integer(), nullable=False),
        sa.Column("polls_failed", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("cancelled", sa.Boolean(), nullable=False),
        sa.Column("receipt_id", KEY),
        sa.Column("mark_epoch", sa.Text(), nullable=False),
        sa.Column("mark_ms", BIG_INT, nullable=False),
        sa.Column("mark_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("holder", sa.Text()),
        sa.Column("held_until_ms", BIG_INT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tool_waits"),
        sa.UniqueConstraint("run_id", "generation", "attempt", name="uq_tool_waits_run_id_generation_attempt"),
        sa.ForeignKeyConstraint(
            ["run_id", "generation"],
            ["tool_runs.id", "tool_runs.generation"],
            name="fk_tool_waits_run_id",
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "tool_claims",
        sa.Column("account", KEY, nullable=False),
        sa.Column("message_key", KEY, nullable=False),
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("wait_id", KEY),
        sa.Column("message_id", KEY, nullable=False),
        sa.Column("mailbox", sa.Text(), nullable=False),
        sa.Column("uidvalidity", BIG_INT, nullable=False),
        sa.Column("uid", BIG_INT, nullable=False),
        sa.Column("fingerprint", KEY, nullable=False),
        sa.Column("matched_rule", sa.Text(), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("receipt_id", KEY, nullable=False),
        sa.PrimaryKeyConstraint("account", "message_key", name="pk_tool_claims"),
    )
    op.create_index("ix_tool_claims_run", "tool_claims", ["run_id", "generation"])
    op.create_table(
        "tool_takings",
        sa.Column("account", KEY, nullable=False),
        sa.Column("message_key", KEY, nullable=False),
        sa.Column("kind", KEY, nullable=False),
        sa.Column("delivery", sa.Text(), nullable=False),
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("receipt_id", KEY, nullable=False),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("host", sa.Text()),
        sa.Column("length", sa.Integer()),
        sa.Column("handle_key", KEY),
        sa.Column("redeemed_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("account", "message_key", "kind", name="pk_tool_takings"),
        sa.UniqueConstraint("handle_key", name="uq_tool_takings_handle_key"),
        sa.ForeignKeyConstraint(
            ["account", "message_key"],
            ["tool_claims.account", "tool_claims.message_key"],
            name="fk_tool_takings_account",
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "tool_requests",
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "generation", "number", name="pk_tool_requests"),
        sa.ForeignKeyConstraint(
            ["run_id", "generation"],
            ["tool_runs.id", "tool_runs.generation"],
            name="fk_tool_requests_run_id",
            ondelete="CASCADE",
        ),
    )
    op.create_table(
        "tool_receipts",
        sa.Column("id", KEY, nullable=False),
        sa.Column("account", KEY, nullable=False),
        sa.Column("run_id", KEY),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("wait_id", KEY),
        sa.Column("call", sa.Text(), nullable=False),
        sa.Column("surface", sa.Text(), nullable=False),
        sa.Column("intent", sa.Text()),
        sa.Column("state", KEY, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("elapsed_ms", BIG_INT, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("polls_used", sa.Integer(), nullable=False),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.Column("stages", sa.Text(), nullable=False),
        sa.Column("polls", sa.Text(), nullable=False),
        sa.Column("candidates", sa.Text(), nullable=False),
        sa.Column("message_id", KEY),
        sa.Column("fingerprint", KEY),
        sa.Column("mailbox_id", sa.Text()),
        sa.Column("cursor", sa.Text()),
        sa.Column("retryable", sa.Boolean(), nullable=False),
        sa.Column("next_action", sa.Text(), nullable=False),
        sa.Column("policy_version", sa.Text()),
        sa.Column("policy_digest", sa.Text()),
        sa.Column("request_digest", sa.Text()),
        sa.Column("request_text", sa.Text()),
        sa.Column("prompt_version", sa.Text()),
        sa.Column("salt", sa.LargeBinary(length=16), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tool_receipts"),
    )
    op.create_index("ix_tool_receipts_at", "tool_receipts", ["account", "at", "id"])
    op.create_index("ix_tool_receipts_run", "tool_receipts", ["run_id", "at"])
    op.create_table(
        "tool_tokens",
        sa.Column("token_key", KEY, nullable=False),
        sa.Column("runs", sa.Text(), nullable=False),
        sa.Column("issued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("token_key", name="pk_tool_tokens"),
    )
