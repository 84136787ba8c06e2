"""Interrupt a connection when the database file that it writes has grown too large.

A small file can claim endless rows, and DuckDB does not limit the size of a database. The size is
checked from time to time, so the file may exceed the limit by the bytes written meanwhile.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from app.engines.watchdog import Interruptible

LOOK_SECONDS = 0.05


class OverSize(Exception):
    """The file exceeded its size limit."""


@contextmanager
def limited_size(path: Path, bytes_max: int, connection: Interruptible) -> Iterator[None]:
    """Interrupt the connection repeatedly while the file is too large.

    Raises OverSize at the end if it was.
    """
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
            raise OverSize  # instead of the driver's interruption


def _size(path: Path) -> int:
    """Bytes of the database and its log."""
    parts = (path, path.with_name(f"{path.name}.wal"))
    return sum(part.stat().st_size for part in parts if part.exists())
