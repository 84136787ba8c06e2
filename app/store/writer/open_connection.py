"""Which connection the writer of a ledger uses."""

import asyncio

from app.store.connect import Database
from app.store.writer.connection import HotConnection
from app.store.writer.postgresql import HotPostgres
from app.store.writer.sqlite import HotSQLite


async def open_hot(database: Database) -> HotConnection:
    if database.is_sqlite:
        return HotSQLite(database)
    return await asyncio.to_thread(HotPostgres, database)  # connecting may wait for seconds
