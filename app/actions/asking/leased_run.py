"""A run in a thread that is kept alive: its lease is renewed, and its progress, if any, is stored.

The thread reports each move; the event loop looks once a second. A run that hangs is not renewed,
so another attempt takes it over, as if its server had vanished. A run that waits for its slot is
renewed. The same look finds out that the question was cancelled. A run ends early if another
attempt took over, if it has lasted too long, or if the server stops. It goes on if its client has
hung up: the answer waits for the next request under its key.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from app.errors import EngineFailed, StoreUnavailable
from app.ledger.orders import Charged, LeaseRenewed, ProgressOrder
from app.ports import Ledger

LOOK_SECONDS = 1.0
TENTHS = 10


class LeasedRun:
    """How far a run is. Written by its thread, read by the event loop; implements
    `interfaces.Stop`.

    It is alive while it moves: `quiet_seconds` is how long it may be silent, if its steps are long.
    """

    def __init__(self, steps: int | None, limit_seconds: float, quiet_seconds: float = 0.0) -> None:
        self.steps = steps
        self.step = 0
        self.moves = 0
        self.done = False  # the work is over, and its answer waits for the end of the slot
        self.progress: Callable[[int], int] | None = None  # public steps to show, of so many
        self._limit_seconds = limit_seconds
        self._quiet_seconds = quiet_seconds
        self._deadline: float | None = None
        self._moved_at = 0.0
        self._ended = False
        self._listeners: list[Callable[[], None]] = []
        self._cancelled: asyncio.Future[None] | None = None

    async def unless_cancelled(
        self, event: "asyncio.Future[Any] | None" = None, seconds: float | None = None
    ) -> bool:
        """Wait for the event, or for so long; False, at once, if the run is cancelled."""
        if self._cancelled is None:
            self._cancelled = asyncio.get_running_loop().create_future()
        waited_for = {self._cancelled} if event is None else {self._cancelled, event}
        if not self._cancelled.done() and (event is None or not event.done()):
            await asyncio.wait(waited_for, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return not self._cancelled.done()

    def checkpoint(self, step: int) -> None:
        """Called often by the thread. Raises EngineFailed if the run is to end."""
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self._limit_seconds
        if self._ended or now > self._deadline:
            raise EngineFailed("The question could not be answered.")
        self.step = step
        self.moves += 1
        self._moved_at = now

    def cancel(self) -> None:
        """End the run because nobody wants its answer; called from the event loop."""
        if self._cancelled is None:
            self._cancelled = asyncio.get_running_loop().create_future()
        if not self._cancelled.done():
            self._cancelled.set_result(None)
        self.end()

    def end(self) -> None:
        """The thread stops where it next says how far it is; what it reads is interrupted."""
        self._ended = True
        for listener in tuple(self._listeners):
            listener()

    @property
    def ended(self) -> bool:
        return self._ended

    @contextmanager
    def telling(self, listener: Callable[[], None]) -> Iterator[None]:
        self._listeners.append(listener)
        try:
            if self._ended:
                listener()
            yield
        finally:
            self._listeners.remove(listener)

    @property
    def shown(self) -> tuple[int, int] | tuple[None, None]:
        """Step and steps in tenths of the run. With public times it is the step of the slot: how
        fast the run itself moves shows how many rows there are."""
        if self.steps is None:
            return None, None
        step = self.step if self.progress is None else self.progress(self.steps)
        return step * TENTHS // self.steps * self.steps // TENTHS, self.steps

    def is_alive(self, moves_seen: int) -> bool:
        """It waits for its slot or, done, for the end of it; it has moved since the last look; or
        it may be silent for so long."""
        if self._deadline is None or self.done or self.moves != moves_seen:
            return True
        return time.monotonic() - self._moved_at < self._quiet_seconds


@asynccontextmanager
async def kept_alive(
    run: LeasedRun, ledger: Ledger, charge: Charged, lease_seconds: float, grid_seconds: float = 0.0
) -> AsyncIterator[None]:
    """Meanwhile the ledger hears how far the run is; however it ends, so does its thread."""
    keeper = asyncio.create_task(_keep(run, ledger, charge, lease_seconds, grid_seconds))
    try:
        yield
    finally:
        keeper.cancel()
        run.end()


async def _keep(
    run: LeasedRun, ledger: Ledger, charge: Charged, lease_seconds: float, grid_seconds: float
) -> None:
    look_seconds = min(LOOK_SECONDS, lease_seconds / 3)
    if run.steps is None:  # most are over before the first look, and nothing is told of them
        await asyncio.sleep(look_seconds)
    seen = -1
    while True:
        pause = look_seconds
        if run.is_alive(seen):
            seen = run.moves
            step, steps = run.shown
            order = ProgressOrder(
                charge.charge_id, charge.attempt, step, steps, lease_seconds, grid_seconds
            )
            try:
                noted = await ledger.submit(order)
            except StoreUnavailable:
                pass  # the lease may last until it is back; if not, storing the answer is fenced
            else:
                assert isinstance(noted, LeaseRenewed)
                if not noted.held:
                    run.end()
                    return
                if noted.cancelled_in_seconds is not None:
                    pause = min(pause, noted.cancelled_in_seconds)
                    if not noted.cancelled_in_seconds:
                        run.cancel()
                        return
        await asyncio.sleep(pause)
