"""Ctrl-C and SIGTERM during a command that has to clean up."""

import signal
from typing import Any


class StopSignals:
    """Handle Ctrl-C and SIGTERM alike: unfinished work is removed first."""

    def __init__(self) -> None:
        self.heard = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        for each in (signal.SIGINT, signal.SIGTERM):
            self._before[each] = signal.signal(each, self._stop)

    def __exit__(self, *_: object) -> None:
        for each, before in self._before.items():
            signal.signal(each, before)

    def _stop(self, *_: object) -> None:
        if not self.heard:  # a second signal would only disturb the cleanup
            self.heard = True
            raise KeyboardInterrupt
