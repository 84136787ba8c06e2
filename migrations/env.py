"""Alembic environment: one chain of migrations, valid on SQLite and PostgreSQL.

The service passes a connection that is already inside the ledger's write transaction, so that a
failed migration changes nothing on either store.
"""

from alembic import context

from app.settings import Settings
from app.store.connect import Database
from app.store.tables import metadata

open_connection = context.config.attributes.get("connection")


def run(connection: object) -> None:
    context.configure(
        connection=connection,  # type: ignore[arg-type]  # alembic names no type for it
        target_metadata=metadata,
        render_as_batch=True,
        transactional_ddl=True,
        compare_type=True,
    )
    with context.begin_transaction():
        context.run_migrations()


if open_connection is not None:
    run(open_connection)
else:
    with Database(Settings.from_environment().database_url).writing() as own:
        run(own)
