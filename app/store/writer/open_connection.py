"""Open the writer's connection for a ledger."""

import asyncio

from app.store.connect import Database
from app.store.writer.connection import WriterConnection
from app.store.writer.postgresql import PostgresWriterConnection
from app.store.writer.sqlite import SQLiteWriterConnection


async def open_hot(database: Database) -> WriterConnection:
    if database.is_sqlite:
        return SQLiteWriterConnection(database)
    return await asyncio.to_thread(
        PostgresWriterConnection, database
    )  # connecting may wait for seconds
