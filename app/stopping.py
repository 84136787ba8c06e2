"""End the process within its grace period, even if threads still wait.

Nobody can end a thread that waits for a server that is gone, and Python joins such threads before
it exits. So the first stop signal starts a clock. When the time is over, the process exits without
joining any thread. That loses nothing: what the ledger acknowledged is durable, and everything else
is left as after a crash.

With a drain time the clock starts later. Until then the server still serves, but is not ready any
more, so that proxies and balancers lead new requests to other servers.
"""

import asyncio
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
REQUESTS_SHARE = 0.5  # share of the grace period for open requests
RELEASE_SHARE = 0.3  # share for closing the engines; the rest is for the ledger
TEARDOWN_SECONDS = 1.0  # for the interpreter, after everything else
_LOOK_SECONDS = 0.02


def _do_nothing() -> None:
    pass


class Stopping:
    """The clock of one process. It uses no lock, because a signal handler starts it."""

    def __init__(self, grace_seconds: float, drain_seconds: float = 0.0) -> None:
        self._grace_seconds = grace_seconds
        self._drain_seconds = drain_seconds
        self._draining = False
        self._deadline: float | None = None
        self._settled = False
        self._first: Callable[[], object] = _do_nothing

    def end_streams(self, loop: asyncio.AbstractEventLoop, end: Callable[[], object]) -> None:
        """Call `end` on the event loop as soon as a stop signal comes.

        Without it open streams would keep the server up for its whole grace period.
        """
        self._first = lambda: loop.call_soon_threadsafe(end)

    def listen(self) -> None:
        """Start the clock at the first stop signal, before the existing handler runs."""
        if current_thread() is not main_thread():  # only the main thread may handle signals
            return
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                signal.signal(number, self._begin_before(handler))

    def _begin_before(
        self, handler: Callable[[int, FrameType | None], Any]
    ) -> Callable[[int, FrameType | None], None]:
        def handle(number: int, frame: FrameType | None) -> None:
            if self._drain_seconds and not self._draining:
                self._drain(number)
                return
            self.begin()
            handler(number, frame)

        return handle

    def is_draining(self) -> bool:
        """True from the first stop signal on: proxies should send their requests elsewhere."""
        return self._draining

    def _drain(self, number: int) -> None:
        """Go on serving for a while; then send the signal again. Another signal ends the wait."""
        self._draining = True
        until = time.monotonic() + self._drain_seconds

        def wait() -> None:
            while self._deadline is None:
                if time.monotonic() >= until:
                    os.kill(os.getpid(), number)
                    return
                time.sleep(_LOOK_SECONDS)

        Thread(target=wait, name="drain-clock", daemon=True).start()

    def begin(self) -> None:
        if self._deadline is None:
            self._first()
            self._deadline = time.monotonic() + self._grace_seconds
            Thread(target=self._exit_when_due, name="stop-clock", daemon=True).start()

    def settled(self) -> None:
        """Note that the ledger has settled all submitted orders."""
        self._settled = True

    def hurry(self) -> None:
        """Shorten the deadline: all work is done, and only a hanging thread could take longer."""
        if self._deadline is not None:
            self._deadline = min(self._deadline, time.monotonic() + TEARDOWN_SECONDS)

    def release(self, *steps: Callable[[], object]) -> None:
        """Run the steps one after another; stop waiting for them after their share of time."""

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
            _log.error("stopped before the ledger had settled all submitted orders")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0 if self._settled else 1)
