"""The clock of a SQLite ledger, which jumps on request: a lease ends without a wait."""

import asyncio
import time
from collections.abc import Callable

import pytest

from app.store.writer import connection as hot


class LedgerClock:
    """A replacement for the module `time`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._ahead_ns = 0
        monkeypatch.setattr(hot, "time", self)

    def time_ns(self) -> int:
        return time.time_ns() + self._ahead_ns

    def jump(self, seconds: float) -> None:
        self._ahead_ns += int(seconds * 1e9)


async def until(true: Callable[[], bool]) -> None:
    """Wait for a condition; the caller's time limit ends it."""
    while not true():
        await asyncio.sleep(0.005)
