"""The writer's own connection: a whole batch in two round trips or one, on the bare driver.

`begin_and_read` begins, takes the locks and reads; `write_and_commit` writes, commits durably, and
reads back what is then stored. Between the two the decisions are made in Python, once for both
stores. An ORM session costs eight times the driver here, and a charge must not wait for it. What
the last batch left is remembered (`snapshot.py`), and a batch that is decided on it begins when it
writes.

All of it is spoken by the event loop itself: handing a batch to a thread, and the interpreter's
lock back and forth with every statement, cost more than the statements (decision 0004).
"""

import time
from collections.abc import Sequence
from typing import Any, Protocol

from app.ledger.stamp import StampChain
from app.store.writer.snapshot import LedgerSnapshot

Read = tuple[str, Sequence[Any]]
Write = tuple[str, Sequence[Sequence[Any]]]
Rows = list[Any]


class ConnectionLost(Exception):
    """The connection or the storage failed; whether a commit happened may be unknown."""


class WriteConflict(Exception):
    """A constraint or a lock stopped the batch; nothing of it happened."""


class SnapshotStale(Exception):
    """The ledger is not as it was known to be; nothing of the batch happened."""


class WriterConnection(Protocol):
    """Used from one event loop, for one thing at a time."""

    known: LedgerSnapshot
    stamps: StampChain | None  # of what this connection settles; begun with its first batch

    async def begin(self) -> None:
        """Without reading: where that would be a journey, with the first write."""
        ...

    async def begin_and_read(self, reads: Sequence[Read]) -> list[Rows]: ...

    async def write_and_commit(
        self, writes: Sequence[Write], then: Sequence[Read]
    ) -> list[Rows]: ...

    async def read(self, reads: Sequence[Read]) -> list[Rows]: ...

    async def rollback(self) -> None: ...

    def close(self) -> None: ...


def now_microseconds() -> int:
    return time.time_ns() // 1000
