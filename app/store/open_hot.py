"""Which connection the writer of a ledger uses."""

import asyncio

from app.store.connect import Database
from app.store.hot import HotConnection
from app.store.hot_postgres import HotPostgres
from app.store.hot_sqlite import HotSQLite


async def open_hot(database: Database) -> HotConnection:
    if database.is_sqlite:
        return HotSQLite(database)
    return await asyncio.to_thread(HotPostgres, database)  # connecting may wait for seconds
