"""Ends the process within its grace period, whatever its threads wait for.

Nobody can end a thread that waits for a server that is gone, and Python joins such threads before
it exits. So the first stop signal starts a clock, and when the time is over the process exits
without joining anybody. That loses nothing: what the ledger acknowledged is durable, and everything
else is left as by a crash.
"""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import Any

_log = logging.getLogger("bursar.stopping")
SIGNALS = (signal.SIGINT, signal.SIGTERM)
REQUESTS_SHARE = 0.5  # of the grace period; open requests may use it up
RELEASE_SHARE = 0.3  # for engines to let go of what they hold; the rest is for the ledger
TEARDOWN_SECONDS = 1.0  # for the interpreter, when everything else is done
_LOOK_SECONDS = 0.02


class Stopping:
    """The clock of one process. It uses no lock, because a signal handler starts it."""

    def __init__(self, grace_seconds: float) -> None:
        self._grace_seconds = grace_seconds
        self._deadline: float | None = None
        self._settled = False

    def listen(self) -> None:
        """Start the clock at the first stop signal, before the present handler runs."""
        if current_thread() is not main_thread():  # others hear no signals
            return
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                signal.signal(number, self._begin_before(handler))

    def _begin_before(
        self, handler: Callable[[int, FrameType | None], Any]
    ) -> Callable[[int, FrameType | None], None]:
        def handle(number: int, frame: FrameType | None) -> None:
            self.begin()
            handler(number, frame)

        return handle

    def begin(self) -> None:
        if self._deadline is None:
            self._deadline = time.monotonic() + self._grace_seconds
            Thread(target=self._exit_when_due, name="stop-clock", daemon=True).start()

    def settled(self) -> None:
        """The ledger has settled everything that it was given."""
        self._settled = True

    def hurry(self) -> None:
        """All work is done: what is left takes a moment, or is a thread that never ends."""
        if self._deadline is not None:
            self._deadline = min(self._deadline, time.monotonic() + TEARDOWN_SECONDS)

    def release(self, *steps: Callable[[], object]) -> None:
        """Run the steps one after another, and stop waiting for them after their share of time."""

        def run() -> None:
            for step in steps:
                step()

        thread = Thread(target=run, name="release", daemon=True)
        thread.start()
        thread.join(self._grace_seconds * RELEASE_SHARE)

    def _exit_when_due(self) -> None:
        while self._deadline is not None and time.monotonic() < self._deadline:
            time.sleep(_LOOK_SECONDS)
        if not self._settled:
            _log.error("stopped before the ledger settled what it was given")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0 if self._settled else 1)
