"""The state of a worker, written once a second where every scrape can read it.

Memory is rounded, and processor time is left out: it would show how long private work took, more
finely than slots do.
"""

import asyncio
import logging
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from app.telemetry.counters import Counters

BEAT_SECONDS = 1.0
SUMMARY_BEATS = 60  # between two log lines about overruns
LAG_STEP_MS = 100
MEMORY_STEP = 16 << 20
# WorkerNumbers that the composition root reads from the worker's parts, at every beat.
PARTS = (
    "queued",
    "running",
    "plans_waiting",
    "orders_waiting",
    "writer_lag_ms",
    "watchers",
    "feed_lag_ms",
    "stopped",
)
STATE = (*PARTS, "beat_at", "started_at", "memory_bytes", "open_files")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_log = logging.getLogger("bursar.worker")


class Heartbeat:
    """Writes the state. Used from one event loop."""

    def __init__(self, counters: Counters, parts: Callable[[], Mapping[str, int]]) -> None:
        self._counters = counters
        self._parts = parts
        self._started_at = int(time.time())
        self._timer: asyncio.TimerHandle | None = None
        self._beats = 0
        self._overruns = self._count_overruns()
        self._was_stopped = False

    def start(self) -> None:
        self._repeat()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._sum_up()

    def beat(self) -> None:
        state = dict(self._parts())
        for lag in ("writer_lag_ms", "feed_lag_ms"):
            state[lag] = -(-state[lag] // LAG_STEP_MS) * LAG_STEP_MS
        self._counters.put_state(
            {**state, "beat_at": int(time.time()), "started_at": self._started_at, **_process()}
        )
        if bool(state["stopped"]) != self._was_stopped:
            self._was_stopped = not self._was_stopped
            if self._was_stopped:
                _log.error("charging has stopped: the ledger is behind its anchors")
            else:
                _log.info("charging goes on")

    def _repeat(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(BEAT_SECONDS, self._repeat)
        self.beat()
        self._beats += 1
        if self._beats % SUMMARY_BEATS == 0:
            self._sum_up()

    def _sum_up(self) -> None:
        """Log overruns together: a line for each would show when its work was done."""
        overruns = self._count_overruns()
        new = {kind: many - self._overruns[kind] for kind, many in overruns.items()}
        self._overruns = overruns
        if any(new.values()):
            each = ", ".join(f"{kind} {many}" for kind, many in new.items() if many)
            _log.warning("%d questions overran their slots: %s", sum(new.values()), each)

    def _count_overruns(self) -> dict[str, int]:
        counts = self._counters.read().counts
        return {label[0]: many for (name, *label), many in counts.items() if name == "overruns"}


def _process() -> dict[str, int]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "memory_bytes": -(-_memory(usage.ru_maxrss) // MEMORY_STEP) * MEMORY_STEP,
        "open_files": _open_files(),
    }


def _memory(most: int) -> int:
    """Resident bytes; the most so far where the system does not show the present number."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
    except OSError:
        return most if sys.platform == "darwin" else most * 1024


def _open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0
