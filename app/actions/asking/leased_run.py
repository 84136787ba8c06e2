"""A run in a thread under a lease: the lease is renewed, and its progress is stored.

The thread reports each move; the event loop checks once a second. A hanging run is not renewed, so
another attempt takes it over, as if its server had vanished. A run that waits for its slot is
renewed. The same check notices a cancellation. A run ends early if another attempt took over, if it
takes too long, or if the server stops. It continues if its client disconnects: the answer waits for
the next request under its key.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from app.errors import EngineFailed, StoreUnavailable
from app.ledger.orders import Charged, LeaseRenewed, ProgressOrder
from app.ports.ledger import Ledger

LOOK_SECONDS = 1.0
TENTHS = 10


class LeasedRun:
    """Progress of a run, written by its thread and read by the event loop.

    Implements `ports.Stop`. A run is alive while it moves. `quiet_seconds`: how long a run with
    long steps may be silent.
    """

    def __init__(self, steps: int | None, limit_seconds: float, quiet_seconds: float = 0.0) -> None:
        self.steps = steps
        self.step = 0
        self.moves = 0
        self.done = False  # True if the work is over and the answer waits for the end of the slot
        self.progress: Callable[[int], int] | None = None  # maps the step count to a public step
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
        """Wait for the event or for `seconds`; False, at once, if the run is cancelled."""
        if self._cancelled is None:
            self._cancelled = asyncio.get_running_loop().create_future()
        waited_for = {self._cancelled} if event is None else {self._cancelled, event}
        if not self._cancelled.done() and (event is None or not event.done()):
            await asyncio.wait(waited_for, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return not self._cancelled.done()

    def checkpoint(self, step: int) -> None:
        """Note a move; the thread calls this often. Raises EngineFailed if the run must end."""
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self._limit_seconds
        if self._ended or now > self._deadline:
            raise EngineFailed("The question could not be answered.")
        self.step = step
        self.moves += 1
        self._moved_at = now

    def cancel(self) -> None:
        """End the run because it was cancelled; called from the event loop."""
        if self._cancelled is None:
            self._cancelled = asyncio.get_running_loop().create_future()
        if not self._cancelled.done():
            self._cancelled.set_result(None)
        self.end()

    def end(self) -> None:
        """End the run: its read is interrupted, and its next checkpoint raises."""
        self._ended = True
        for listener in tuple(self._listeners):
            listener()

    @property
    def ended(self) -> bool:
        return self._ended

    @contextmanager
    def notifying(self, listener: Callable[[], None]) -> Iterator[None]:
        self._listeners.append(listener)
        try:
            if self._ended:
                listener()
            yield
        finally:
            self._listeners.remove(listener)

    @property
    def shown(self) -> tuple[int, int] | tuple[None, None]:
        """Step and steps, in tenths of the run.

        With public times it is the step of the slot, because the speed of the run would reveal the
        number of rows.
        """
        if self.steps is None:
            return None, None
        step = self.step if self.progress is None else self.progress(self.steps)
        return step * TENTHS // self.steps * self.steps // TENTHS, self.steps

    def is_alive(self, moves_seen: int) -> bool:
        """True if the run is alive, so that its lease is renewed.

        It waits for its slot or for its end, has moved since the last check, or may still be
        silent.
        """
        if self._deadline is None or self.done or self.moves != moves_seen:
            return True
        return time.monotonic() - self._moved_at < self._quiet_seconds


@asynccontextmanager
async def kept_alive(
    run: LeasedRun, ledger: Ledger, charge: Charged, lease_seconds: float, grid_seconds: float = 0.0
) -> AsyncIterator[None]:
    """Renew the lease and store the progress meanwhile; end the thread with the run."""
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
    if run.steps is None:  # most end before the first check, and report no progress
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
                # The lease may outlast the outage. If not, the writer refuses to store the answer.
                pass
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
