"""The writer's own connection: a whole batch in one or two round trips, on the bare driver.

`begin_and_read` begins, takes the locks and reads. `write_and_commit` writes, commits durably, and
reads back the stored rows. Between the two Python code decides, the same for both stores. An ORM
session costs eight times as much as the driver here, and a charge must not wait for it. The state
after the last batch is cached (`snapshot.py`). A batch decided on the cache begins with its writes.

All statements run on the event loop. Handing a batch to a thread, and passing the interpreter lock
with every statement, would cost more than the statements (decision 0004).
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
    """The connection or the storage failed; it may be unknown whether a commit happened."""


class WriteConflict(Exception):
    """A constraint or a lock stopped the batch; nothing was written."""


class SnapshotStale(Exception):
    """The cached snapshot is outdated; nothing was written."""


class WriterConnection(Protocol):
    """Used from one event loop, by one caller at a time."""

    known: LedgerSnapshot
    stamps: StampChain | None  # stamps of what this connection settles; starts with a batch

    async def begin(self) -> None:
        """Begin without reading; PostgreSQL sends BEGIN with the first write."""
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
