"""Run by Alembic: migrate on the connection that the caller has opened and locked."""

from alembic import context

from triage.ledger.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
