"""A clock that goes by itself, and jumps when a test says that the time is over."""

import time

from app.engines.watchdog import WATCHDOG
from tests.server import wait_until

HOUR = 3600.0  # longer than the time limit of any question


class Clock:
    """Stands in for the module `time`."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead

    def jump(self) -> None:
        self._ahead += HOUR


class WatchdogClock(Clock):
    def end_the_time(self) -> None:
        """Returns when the watchdog has interrupted all that it watches."""
        self.jump()
        WATCHDOG._look_now()
        wait_until(lambda: WATCHDOG._wakes_at >= self.monotonic() - 1, 60, "nobody looks")
