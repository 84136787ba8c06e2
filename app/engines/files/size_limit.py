"""Interrupts a connection once the database file that it writes has grown too large.

A small file can claim rows without end, and a DuckDB database has no limit of its own. The file is
looked at from time to time, so that it may pass the limit by what is written meanwhile.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from app.engines.watchdog import Interruptible

LOOK_SECONDS = 0.05


class OverSize(Exception):
    """The file grew over its limit."""


@contextmanager
def limited_size(path: Path, bytes_max: int, connection: Interruptible) -> Iterator[None]:
    """Inside, the connection is interrupted again and again while the file is too large. Raises
    OverSize at the end, if it was."""
    ended, over = Event(), Event()

    def look() -> None:
        while not ended.wait(LOOK_SECONDS):
            if over.is_set() or _size(path) > bytes_max:
                over.set()
                connection.interrupt()

    thread = Thread(target=look, name="engine-size-limit", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        if over.is_set() or _size(path) > bytes_max:
            raise OverSize  # in the place of the driver's interruption


def _size(path: Path) -> int:
    """Of the database and of its log."""
    parts = (path, path.with_name(f"{path.name}.wal"))
    return sum(part.stat().st_size for part in parts if part.exists())
