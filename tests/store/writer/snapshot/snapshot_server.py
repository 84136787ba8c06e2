"""One server's connection to a ledger, with its snapshot."""

import asyncio
from collections.abc import Sequence

from app.ledger.orders import WriterOrder
from app.store.writer.batch import Result, settle
from app.store.writer.connection import Read, Rows, WriterConnection
from app.store.writer.snapshot import MARGIN_MICROSECONDS
from app.store.writer.statements import statements
from app.store.writer.writer import open_connection
from tests.store.ledgers import Ledger


class Server:
    """One server's connection, which counts its reads before writes."""

    def __init__(self, ledger: Ledger) -> None:
        self._hot: WriterConnection = asyncio.run(open_connection(ledger.database))
        self._sql = statements(sqlite=ledger.database.is_sqlite)
        self.asked = 0
        ask = self._hot.begin_and_read

        async def counted(reads: Sequence[Read]) -> list[Rows]:
            self.asked += 1
            return await ask(reads)

        self._hot.begin_and_read = counted  # type: ignore[method-assign]

    def settle(self, *orders: WriterOrder) -> list[Result]:
        return asyncio.run(settle(orders, self._hot, self._sql))

    def mistake_the_clock(self, error: int) -> None:
        known = self._hot.known
        known.read_clock(known.now() + MARGIN_MICROSECONDS + error)

    def always_ask(self) -> None:
        self._hot.known.can_decide = lambda orders: False  # type: ignore[method-assign]

    def close(self) -> None:
        self._hot.close()
