"""The first tables."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
BIG_INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def upgrade() -> None:
    op.create_table(
        "chains",
        sa.Column("account", KEY, nullable=False),
        sa.Column("seq", BIG_INT, nullable=False),
        sa.Column("hash", sa.LargeBinary(length=32), nullable=False),
        sa.Column("base_seq", BIG_INT, nullable=False),
        sa.Column("base_hash", sa.LargeBinary(length=32), nullable=False),
        sa.PrimaryKeyConstraint("account", name="pk_chains"),
    )
    op.create_table(
        "decisions",
        sa.Column("id", KEY, nullable=False),
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("account", KEY, nullable=False),
        sa.Column("mailbox", sa.Text(), nullable=False),
        sa.Column("uidvalidity", BIG_INT, nullable=False),
        sa.Column("uid", BIG_INT, nullable=False),
        sa.Column("message_key", KEY, nullable=False),
        sa.Column("message_id_key", KEY, nullable=False),
        sa.Column("category_set", KEY, nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("label_id", sa.Text(), nullable=False),
        sa.Column("choice", sa.Text()),
        sa.Column("confidence", sa.Float(precision=53), nullable=False),
        sa.Column("floor", sa.Float(precision=53), nullable=False),
        sa.Column("archive_floor", sa.Float(precision=53), nullable=False),
        sa.Column("archive", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("probabilities", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text()),
        sa.Column("model", sa.Text()),
        sa.Column("chain_position", sa.Integer()),
        sa.Column("provider_confidence", sa.Float(precision=53)),
        sa.Column("latency_ms", BIG_INT, nullable=False),
        sa.Column("input_tokens", BIG_INT, nullable=False),
        sa.Column("output_tokens", BIG_INT, nullable=False),
        sa.Column("question_tokens", BIG_INT, nullable=False),
        sa.Column("cost_usd", sa.Float(precision=53), nullable=False),
        sa.Column("inherited_from", sa.Text()),
        sa.Column("inherited_rule", sa.Text()),
        sa.Column("inherited_source", sa.Text()),
        sa.Column("participation", sa.Text()),
        sa.Column("warnings", sa.Text(), nullable=False),
        sa.Column("repaired", sa.Text(), nullable=False),
        sa.Column("flags", sa.Text(), nullable=False),
        sa.Column("sender_domain", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text()),
        sa.Column("received_at", sa.DateTime(timezone=True)),
        sa.Column("body_chars", BIG_INT, nullable=False),
        sa.Column("links_removed", BIG_INT, nullable=False),
        sa.Column("labelled_at", sa.DateTime(timezone=True)),
        sa.Column("archived_at", sa.DateTime(timezone=True)),
        sa.Column("archived_mailbox", sa.Text()),
        sa.Column("archived_uidvalidity", BIG_INT),
        sa.Column("archived_uid", BIG_INT),
        sa.Column("closed_reason", sa.Text()),
        sa.Column("recovered_by", KEY),
        sa.Column("salt", sa.LargeBinary(length=16), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_decisions"),
    )
    op.create_index("ix_decisions_account_decided", "decisions", ["account", "decided_at", "id"])
    op.create_index("ix_decisions_decided", "decisions", ["decided_at", "id"])
    op.create_index("ix_decisions_message", "decisions", ["message_key"])
    op.create_index("ix_decisions_message_id", "decisions", ["account", "message_id_key", "decided_at"])
    op.create_index("ix_decisions_recovered", "decisions", ["recovered_by"], **where("recovered_by IS NOT NULL"))
    op.create_index("ix_decisions_run", "decisions", ["run_id"])
    op.create_index(
        "ix_decisions_unfinished",
        "decisions",
        ["account", "decided_at", "id"],
        **where("closed_reason IS NULL AND (labelled_at IS NULL OR (archive AND archived_at IS NULL))"),
    )
    op.create_index(
        "uq_decisions_unapplied",
        "decisions",
        ["account", "mailbox", "uidvalidity", "uid", "category_set"],
        unique=True,
        **where("labelled_at IS NULL AND closed_reason IS NULL"),
    )
    op.create_table(
        "events",
        sa.Column("account", KEY, nullable=False),
        sa.Column("seq", BIG_INT, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", KEY, nullable=False),
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("hash", sa.LargeBinary(length=32), nullable=False),
        sa.PrimaryKeyConstraint("account", "seq", name="pk_events"),
    )
    op.create_table(
        "runs",
        sa.Column("id", KEY, nullable=False),
        sa.Column("account", KEY, nullable=False),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("fire_time", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("enqueued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True)),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("lease_owner", sa.Text()),
        sa.Column("lease_until", sa.DateTime(timezone=True)),
        sa.Column("lease_renewed_ms", BIG_INT),
        sa.Column("lease_expires_ms", BIG_INT),
        sa.Column("reason", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.UniqueConstraint("account", "fire_time", name="uq_runs_account_fire_time"),
    )
    op.create_index("ix_runs_account_enqueued", "runs", ["account", "enqueued_at", "id"])
    op.create_index("ix_runs_enqueued", "runs", ["enqueued_at", "id"])
    op.create_index("ix_runs_queue", "runs", ["fire_time", "id"], **where("state = 'queued'"))
    op.create_index("ix_runs_waiting", "runs", ["account", "fire_time"], **where("state = 'queued'"))
    op.create_index("uq_runs_one_running", "runs", ["account"], unique=True, **where("state = 'running'"))
    op.create_table(
        "states",
        sa.Column("kind", KEY, nullable=False),
        sa.Column("key", KEY, nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("kind", "key", name="pk_states"),
    )
    op.create_table(
        "steps",
        sa.Column("id", BIG_INT, autoincrement=True, nullable=False),
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("duration_ms", BIG_INT, nullable=False),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_steps_run_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_steps"),
    )
    op.create_index("ix_steps_run", "steps", ["run_id"])
