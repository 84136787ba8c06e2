"""The clock of a SQLite ledger, which jumps on request: a lease ends without a wait."""

import time

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
