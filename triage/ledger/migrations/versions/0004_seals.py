"""Seals of verified links, an index of the links that close runs, and the model in the index that reports sum up."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
BIG_INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
FIGURES = [
    "account", "decided_at", "label_id", "choice", "outcome", "provider", "chain_position", "confidence", "latency_ms",
    "input_tokens", "question_tokens", "output_tokens", "cost_usd", "links_removed", "labelled_at", "archived_at",
    "recovered_by", "closed_reason", "sender_domain", "run_id", "archived_mailbox", "model",
]  # fmt: skip
FINISHED = sa.text("kind = 'run_finished'")


def upgrade() -> None:
    op.create_table(
        "seals",
        sa.Column("account", KEY, nullable=False),
        sa.Column("block", BIG_INT, nullable=False),
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("sealed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("account", "block", name="pk_seals"),
    )
    op.create_index(
        "ix_events_finished", "events", ["account", "subject"], sqlite_where=FINISHED, postgresql_where=FINISHED
    )
    op.drop_index("ix_decisions_figures", "decisions")
    op.create_index("ix_decisions_figures", "decisions", FIGURES)
