"""Cancel a question: leave a mark in the ledger, and tell what has become of it.

Whoever answers the question may be another process or another machine; it sees the mark at its next
look. It gives the charge back if the engine was not asked, and else it stays charged. What is told
here is what the history tells, on its time grid.
"""

import asyncio
from dataclasses import dataclass

from app.access import Principal, Role
from app.ledger.orders import CancelOrder, State
from app.ledger.records import QuestionRecord
from app.ports import History, Ledger

LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class CancelQuery:
    ledger: Ledger
    history: History
    patience_seconds: float

    async def __call__(self, principal: Principal, charge_id: str) -> QuestionRecord:
        """The question as it is once it is settled, or as it still runs when patience is over."""
        principal.must_be(Role.ANALYST, Role.ADMIN)
        own = principal.analyst_id if principal.role is Role.ANALYST else None
        await self.ledger.submit(CancelOrder(charge_id, own))
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.patience_seconds
        while True:
            asked = await asyncio.to_thread(self.history.one, charge_id, analyst_id=own)
            if asked.state is not State.CHARGED or loop.time() >= deadline:
                return asked
            await asyncio.sleep(LOOK_SECONDS)
