"""The ledger's tables. `migrations/` builds them; a test holds the two together."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    literal_column,
    text,
)

from triage.ledger.types import BigInt, Key, UtcDateTime

REVISION = "0004"
"""The newest migration: what this program reads and writes."""

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

runs = Table(
    "runs",
    metadata,
    Column("id", Key, primary_key=True),
    Column("account", Key, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("fire_time", UtcDateTime, nullable=False),
    Column("state", Text, nullable=False),
    Column("enqueued_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("finished_at", UtcDateTime),
    Column("lease_owner", Text),
    Column("lease_until", UtcDateTime),
    # The lease itself, in milliseconds of the lease clock (docs in queue.py); lease_until only tells a person.
    Column("lease_renewed_ms", BigInt),
    Column("lease_expires_ms", BigInt),
    Column("reason", Text),
    Column("error", Text),
    Column("counts", Text, nullable=False),
    Column("options", Text, nullable=False),
    UniqueConstraint("account", "fire_time"),
)
# Conditions of partial indexes are written out, without parameters: only so does a planner see that they apply.
RUNNING = runs.c.state == literal_column("'running'")
QUEUED = runs.c.state == literal_column("'queued'")
Index("uq_runs_one_running", runs.c.account, unique=True, sqlite_where=RUNNING, postgresql_where=RUNNING)
Index("ix_runs_queue", runs.c.fire_time, runs.c.id, sqlite_where=QUEUED, postgresql_where=QUEUED)
Index("ix_runs_waiting", runs.c.account, runs.c.fire_time, sqlite_where=QUEUED, postgresql_where=QUEUED)
Index("ix_runs_account_enqueued", runs.c.account, runs.c.enqueued_at, runs.c.id)
Index("ix_runs_enqueued", runs.c.enqueued_at, runs.c.id)

steps = Table(
    "steps",
    metadata,
    Column("id", BigInt, primary_key=True, autoincrement=True),
    Column("run_id", Key, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("duration_ms", BigInt, nullable=False),
    Column("counts", Text, nullable=False),
)
Index("ix_steps_run", steps.c.run_id)

decisions = Table(
    "decisions",
    metadata,
    Column("id", Key, primary_key=True),
    # No foreign key to runs: retention may take a run's record before the last of its decisions is closed.
    Column("run_id", Key, nullable=False),
    Column("account", Key, nullable=False),
    Column("mailbox", Text, nullable=False),
    Column("uidvalidity", BigInt, nullable=False),
    Column("uid", BigInt, nullable=False),
    Column("message_key", Key, nullable=False),
    Column("message_id_key", Key, nullable=False),
    Column("category_set", Key, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("label_id", Text, nullable=False),
    Column("choice", Text),
    Column("confidence", Float(53), nullable=False),
    Column("floor", Float(53), nullable=False),
    Column("archive_floor", Float(53), nullable=False),
    Column("archive", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("decided_at", UtcDateTime, nullable=False),
    Column("probabilities", Text, nullable=False),
    Column("provider", Text),
    Column("model", Text),
    Column("chain_position", Integer),
    Column("provider_confidence", Float(53)),
    Column("latency_ms", BigInt, nullable=False),
    Column("input_tokens", BigInt, nullable=False),
    Column("output_tokens", BigInt, nullable=False),
    Column("question_tokens", BigInt, nullable=False),
    Column("cost_usd", Float(53), nullable=False),
    Column("inherited_from", Text),
    Column("inherited_rule", Text),
    Column("inherited_source", Text),
    Column("participation", Text),
    Column("warnings", Text, nullable=False),
    Column("repaired", Text, nullable=False),
    Column("flags", Text, nullable=False),
    Column("sender_domain", Text, nullable=False),
    Column("subject", Text),
    Column("received_at", UtcDateTime),
    Column("body_chars", BigInt, nullable=False),
    Column("links_removed", BigInt, nullable=False),
    # State: all above is written once, all below is filled in as the work gets done.
    Column("labelled_at", UtcDateTime),
    Column("archived_at", UtcDateTime),
    Column("archived_mailbox", Text),
    Column("archived_uidvalidity", BigInt),
    Column("archived_uid", BigInt),
    Column("closed_reason", Text),
    Column("recovered_by", Key),
    # Deleted with the row, so that the digests that stay in the chain cannot be matched against guesses.
    Column("salt", LargeBinary(16), nullable=False),
)
UNAPPLIED = (decisions.c.labelled_at.is_(None)) & (decisions.c.closed_reason.is_(None))
UNFINISHED = text("closed_reason IS NULL AND (labelled_at IS NULL OR (archive AND archived_at IS NULL))")
_recovered = decisions.c.recovered_by.is_not(None)
Index(
    "uq_decisions_unapplied",
    decisions.c.account,
    decisions.c.mailbox,
    decisions.c.uidvalidity,
    decisions.c.uid,
    decisions.c.category_set,
    unique=True,
    sqlite_where=UNAPPLIED,
    postgresql_where=UNAPPLIED,
)
Index(
    "ix_decisions_unfinished",
    decisions.c.account,
    decisions.c.decided_at,
    decisions.c.id,
    sqlite_where=UNFINISHED,
    postgresql_where=UNFINISHED,
)
Index("ix_decisions_run", decisions.c.run_id)
Index("ix_decisions_recovered", decisions.c.recovered_by, sqlite_where=_recovered, postgresql_where=_recovered)
Index("ix_decisions_account_decided", decisions.c.account, decisions.c.decided_at, decisions.c.id)
Index("ix_decisions_decided", decisions.c.decided_at, decisions.c.id)
Index("ix_decisions_message", decisions.c.message_key)
Index("ix_decisions_message_id", decisions.c.account, decisions.c.message_id_key, decisions.c.decided_at)
# What breaks an invariant is in an index of its own, nearly always empty: the audit need not read what is in order.
DOUBTFUL = text(
    "archived_at IS NOT NULL AND (confidence < floor OR confidence < archive_floor OR NOT archive "
    "OR labelled_at IS NULL)"
)
UNANSWERED = text(
    "((outcome IN ('applied', 'below_floor') AND (provider IS NULL OR model IS NULL OR chain_position IS NULL "
    "OR probabilities = '{}' OR confidence < 0 OR confidence > 1)) "
    "OR (outcome = 'inherited' AND (inherited_from IS NULL OR inherited_source IS NULL)))"
)
HEIRS = text("outcome = 'inherited' AND inherited_source = 'decision' AND archived_at IS NOT NULL")
for _name, _what in (("doubtful", DOUBTFUL), ("unanswered", UNANSWERED), ("heirs", HEIRS)):
    Index(
        f"ix_decisions_{_name}",
        decisions.c.account,
        decisions.c.decided_at,
        sqlite_where=_what,
        postgresql_where=_what,
    )
# All that reports sum up, so that a million decisions are counted from the index alone.
_FIGURES = (
    "account", "decided_at", "label_id", "choice", "outcome", "provider", "chain_position", "confidence", "latency_ms",
    "input_tokens", "question_tokens", "output_tokens", "cost_usd", "links_removed", "labelled_at", "archived_at",
    "recovered_by", "closed_reason", "sender_domain", "run_id", "archived_mailbox", "model",
)  # fmt: skip
Index("ix_decisions_figures", *(decisions.c[name] for name in _FIGURES))

events = Table(
    "events",
    metadata,
    Column("account", Key, nullable=False),
    Column("seq", BigInt, nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("kind", Text, nullable=False),
    Column("subject", Key, nullable=False),  # the decision or run it tells of
    Column("digest", LargeBinary(32), nullable=False),
    Column("hash", LargeBinary(32), nullable=False),
    PrimaryKeyConstraint("account", "seq"),
)
FINISHED = text("kind = 'run_finished'")
Index("ix_events_finished", events.c.account, events.c.subject, sqlite_where=FINISHED, postgresql_where=FINISHED)

chains = Table(
    "chains",
    metadata,
    Column("account", Key, primary_key=True),
    Column("seq", BigInt, nullable=False),
    Column("hash", LargeBinary(32), nullable=False),
    # Retention cuts a chain's oldest links; what is left hangs on this one.
    Column("base_seq", BigInt, nullable=False),
    Column("base_hash", LargeBinary(32), nullable=False),
)

# What a block of links, and the records they introduce, looked like when they bore each other out (seals.py).
seals = Table(
    "seals",
    metadata,
    Column("account", Key, nullable=False),
    Column("block", BigInt, nullable=False),
    Column("digest", LargeBinary(32), nullable=False),
    Column("sealed_at", UtcDateTime, nullable=False),
    PrimaryKeyConstraint("account", "block"),
)

corrections = Table(
    "corrections",
    metadata,
    Column("id", Key, primary_key=True),
    Column("account", Key, nullable=False),
    # No foreign key to decisions, as above.
    Column("decision_id", Key, nullable=False),
    Column("message_key", Key, nullable=False),
    Column("message_id_key", Key, nullable=False),
    Column("kind", Text, nullable=False),
    Column("from_label", Text, nullable=False),
    Column("to_label", Text),
    Column("at", UtcDateTime, nullable=False),
    Column("mailbox", Text),
    Column("uidvalidity", BigInt),
    Column("uid", BigInt),
    Column("salt", LargeBinary(16), nullable=False),
)
Index("ix_corrections_account_at", corrections.c.account, corrections.c.at, corrections.c.id)
Index("ix_corrections_decision", corrections.c.decision_id)
Index("ix_corrections_message_id", corrections.c.account, corrections.c.message_id_key)

states = Table(
    "states",
    metadata,
    Column("kind", Key, nullable=False),  # breaker | account | learning | meta | day
    Column("key", Key, nullable=False),
    Column("value", Text, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    PrimaryKeyConstraint("kind", "key"),
)
