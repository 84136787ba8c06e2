"""Counts and state of the workers of one server, in files that all its workers can read.

Requests reach any worker, so one worker must answer a scrape for all. Each worker has a file of
64-bit integers, mapped into its memory: adding to a count is one addition, without a lock. The
files lie in a private folder of this server in its home. A worker holds a lock on its file while it
lives. When it dies, the next worker takes its file and goes on counting from there. So the sums
never fall while the server runs (decision 0031).
"""

import fcntl
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

CELL = 8  # bytes
CountName = tuple[str, ...]


class CountLayout:
    """The place of each number in a worker's file: first its state, then its counts.

    Counts are sorted: every worker of a server must find the same numbers in the same places.
    """

    def __init__(self, state: Sequence[str], counts: Sequence[CountName]) -> None:
        self.state = tuple(state)
        self.counts = tuple(sorted(set(counts)))
        self.places = {name: len(state) + i for i, name in enumerate(self.counts)}

    @property
    def cells(self) -> int:
        return len(self.state) + len(self.counts)


class Counters:
    """The numbers of one worker. Only its event loop changes them."""

    def __init__(self, layout: CountLayout, cells: "memoryview[int] | None" = None) -> None:
        self.layout = layout
        self._cells = _cells(bytearray(layout.cells * CELL)) if cells is None else cells
        self._places = layout.places

    def add(self, name: CountName, number: int = 1) -> None:
        place = self._places.get(name)
        if place is not None:
            self._cells[place] += number

    def put_state(self, values: Mapping[str, int]) -> None:
        for place, name in enumerate(self.layout.state):
            self._cells[place] = values[name]

    def read(self) -> "WorkerNumbers":
        layout, cells = self.layout, list(self._cells)
        return WorkerNumbers(
            dict(zip(layout.state, cells, strict=False)),
            dict(zip(layout.counts, cells[len(layout.state) :], strict=True)),
        )


def _cells(memory: bytearray | mmap.mmap) -> "memoryview[int]":
    return memoryview(memory).cast("q")


class WorkerNumbers(NamedTuple):
    """The numbers of a worker at one moment."""

    state: dict[str, int]
    counts: dict[CountName, int]


class Workers(NamedTuple):
    """All workers of a server: the state of each living one, and the sums of all counts."""

    state: dict[int, dict[str, int]]
    counts: dict[CountName, int]


class WorkerFiles:
    """The folder of one server. The first worker that asks gets number 1."""

    def __init__(self, folder: Path, layout: CountLayout) -> None:
        self._folder = folder
        self._layout = layout
        self.number = 0
        self._held = -1

    def claim(self) -> Counters:
        """Take the first file that no living worker has, with what it has counted."""
        with _lock(self._folder / "claims"):
            number = 1
            while (descriptor := self._take(number)) is None:
                number += 1
        self.number, self._held = number, descriptor
        return Counters(self._layout, _cells(mmap.mmap(descriptor, self._layout.cells * CELL)))

    def read(self) -> Workers:
        """The numbers of all workers."""
        state: dict[int, dict[str, int]] = {}
        sums = dict.fromkeys(self._layout.counts, 0)
        with _lock(self._folder / "claims"):
            for number, descriptor in self._opened():
                raw = os.pread(descriptor, self._layout.cells * CELL, 0)
                if len(raw) == self._layout.cells * CELL:
                    numbers = Counters(self._layout, _cells(bytearray(raw))).read()
                    for name, count in numbers.counts.items():
                        sums[name] += count
                    if number == self.number or not _is_free(descriptor):
                        state[number] = numbers.state
                os.close(descriptor)
        return Workers(state, sums)

    def _path(self, number: int) -> Path:
        return self._folder / f"worker-{number}"

    def _opened(self) -> Iterator[tuple[int, int]]:
        for path in sorted(self._folder.glob("worker-*")):
            yield int(path.name.removeprefix("worker-")), os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def _take(self, number: int) -> int | None:
        descriptor = os.open(self._path(number), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        os.ftruncate(descriptor, self._layout.cells * CELL)
        return descriptor


class ServerFolder:
    """A new private folder for the workers of a server that starts.

    Folders of servers that have ended are removed first: a server holds a lock on its own.
    """

    def __init__(self, home: Path) -> None:
        parent = home / "telemetry"
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _lock(parent / "lock"):
            for folder in parent.glob("server-*"):
                if _has_ended(folder):
                    shutil.rmtree(folder, ignore_errors=True)
            self.path = Path(tempfile.mkdtemp(prefix="server-", dir=parent))
            self._held = os.open(self.path / "server", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._held)


def _has_ended(folder: Path) -> bool:
    try:
        descriptor = os.open(folder / "server", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        return _is_free(descriptor)
    finally:
        os.close(descriptor)


def _is_free(descriptor: int) -> bool:
    """True if no process holds the file. The caller closes it, which gives up what this took."""
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    return False


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
