"""Cancel a query: leave a mark in the ledger, and return the query's state.

Another process or machine may be answering the query. It sees the mark when it next renews its
lease. It refunds the charge if nothing was read; otherwise the charge stays. The reply is the query
as the history shows it, which changes only at points of the time grid.
"""

import asyncio
from dataclasses import dataclass

from app.access import Principal, Role
from app.ledger.orders import CancelOrder, State
from app.ledger.records import QuestionRecord
from app.ports.ledger import History, Ledger

LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class CancelQuery:
    ledger: Ledger
    history: History
    patience_seconds: float

    async def __call__(self, principal: Principal, charge_id: str) -> QuestionRecord:
        """The settled query, or the running one if it is not settled within `patience_seconds`."""
        principal.must_be(Role.ANALYST, Role.ADMIN)
        own = principal.analyst_id if principal.role is Role.ANALYST else None
        await self.ledger.submit(CancelOrder(charge_id, own))
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.patience_seconds
        while True:
            record = await asyncio.to_thread(self.history.one, charge_id, analyst_id=own)
            if record.state is not State.CHARGED or loop.time() >= deadline:
                return record
            await asyncio.sleep(LOOK_SECONDS)
