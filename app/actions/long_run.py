"""A run of many steps that is kept alive: its progress is stored, and its lease renewed.

The thread that runs says how far it is; the event loop looks once a second and stores it. A run
that has not moved since the last look is not renewed, so that one which hangs is taken over like
one that vanished; a run that still waits for a thread is. A run whose attempt was taken over is
ended, and so is one that has lasted too long, or whose server is shut down; one whose client has
hung up goes on, and its answer waits for the next asking under its key.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.errors import EngineFailed, StoreUnavailable
from app.interfaces import Ledger
from app.ledger.protocol import Charged, Noted, ProgressOrder

LOOK_SECONDS = 1.0
TENTHS = 10


class LongRun:
    """How far a run is. Written by its thread, read by the event loop."""

    def __init__(self, steps: int, limit_seconds: float) -> None:
        self.steps = steps
        self.step = 0
        self.moves = 0
        self._limit_seconds = limit_seconds
        self._deadline: float | None = None
        self._ended = False

    def reached(self, step: int) -> None:
        """Called often by the thread. Raises EngineFailed if the run is to end."""
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self._limit_seconds
        if self._ended or now > self._deadline:
            raise EngineFailed("The question could not be answered.")
        self.step = step
        self.moves += 1

    def end(self) -> None:
        """The thread stops where it next says how far it is."""
        self._ended = True

    @property
    def told_step(self) -> int:
        """In tenths of the run: how long each step takes tells how many rows there are."""
        return self.step * TENTHS // self.steps * self.steps // TENTHS

    @property
    def waits(self) -> bool:
        return self._deadline is None


@asynccontextmanager
async def kept_alive(
    run: LongRun, ledger: Ledger, charge: Charged, lease_seconds: float
) -> AsyncIterator[None]:
    """Meanwhile the ledger hears how far the run is; however it ends, so does its thread."""
    keeper = asyncio.create_task(_keep(run, ledger, charge, lease_seconds))
    try:
        yield
    finally:
        keeper.cancel()
        run.end()


async def _keep(run: LongRun, ledger: Ledger, charge: Charged, lease_seconds: float) -> None:
    seen = -1
    while True:
        if run.waits or run.moves != seen:
            seen = run.moves
            order = ProgressOrder(
                charge.charge_id, charge.attempt, run.told_step, run.steps, lease_seconds
            )
            try:
                noted = await ledger.submit(order)
            except StoreUnavailable:
                pass  # the lease may last until it is back; if not, storing the answer is fenced
            else:
                assert isinstance(noted, Noted)
                if not noted.held:
                    run.end()
                    return
        await asyncio.sleep(min(LOOK_SECONDS, lease_seconds / 3))
