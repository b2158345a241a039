"""Corrections: what became of decisions afterwards; indexes for the audit and the report."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

KEY = sa.String().with_variant(sa.String(collation="C"), "postgresql")
BIG_INT = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
DOUBTFUL = (
    "archived_at IS NOT NULL AND (confidence < floor OR confidence < archive_floor OR NOT archive "
    "OR labelled_at IS NULL)"
)
UNANSWERED = (
    "((outcome IN ('applied', 'below_floor') AND (provider IS NULL OR model IS NULL OR chain_position IS NULL "
    "OR probabilities = '{}' OR confidence < 0 OR confidence > 1)) "
    "OR (outcome = 'inherited' AND (inherited_from IS NULL OR inherited_source IS NULL)))"
)
HEIRS = "outcome = 'inherited' AND inherited_source = 'decision' AND archived_at IS NOT NULL"


def where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def upgrade() -> None:
    op.create_table(
        "corrections",
        sa.Column("id", KEY, nullable=False),
        sa.Column("account", KEY, nullable=False),
        sa.Column("decision_id", KEY, nullable=False),
        sa.Column("message_key", KEY, nullable=False),
        sa.Column("message_id_key", KEY, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("from_label", sa.Text(), nullable=False),
        sa.Column("to_label", sa.Text()),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("mailbox", sa.Text()),
        sa.Column("uidvalidity", BIG_INT),
        sa.Column("uid", BIG_INT),
        sa.Column("salt", sa.LargeBinary(length=16), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_corrections"),
    )
    op.create_index("ix_corrections_account_at", "corrections", ["account", "at", "id"])
    op.create_index("ix_corrections_decision", "corrections", ["decision_id"])
    op.create_index("ix_corrections_message_id", "corrections", ["account", "message_id_key"])
    op.create_index(
        "ix_decisions_figures",
        "decisions",
        [
            "account", "decided_at", "label_id", "choice", "outcome", "provider", "chain_position",
            "confidence", "latency_ms", "input_tokens", "question_tokens", "output_tokens", "cost_usd", "links_removed",
            "labelled_at", "archived_at", "recovered_by", "closed_reason", "sender_domain", "run_id",
            "archived_mailbox",
        ],
    )  # fmt: skip
    op.create_index("ix_decisions_doubtful", "decisions", ["account", "decided_at"], **where(DOUBTFUL))
    op.create_index("ix_decisions_unanswered", "decisions", ["account", "decided_at"], **where(UNANSWERED))
    op.create_index("ix_decisions_heirs", "decisions", ["account", "decided_at"], **where(HEIRS))
