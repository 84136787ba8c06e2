"""Check whether the files of a dataset are still the registered ones, with one stat for each file.

A digest identifies the bytes, but computing it reads them all. Between two reads a file is
identified by its state, which the system changes when somebody writes, replaces or moves it. While
all states are those of the files whose bytes were right, no byte is read. (The system may report
writes through a shared memory mapping late.)

Rows were copied at registration, so no answer depends on this check. It keeps answers about old
rows from being mistaken for answers about the present ones.
"""

import os
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

from app.data.card import Dataset
from app.engines.files.paths import SourceFiles, registered_sources
from app.engines.files.sources import FileState, digest_and_states, file_state
from app.errors import SourceChanged

# Number of files to check on the event loop; more are checked in a thread.
GLANCE_MAX = 64
# A file written a moment ago may be written again with the same times: the coarsest file systems
# count in steps of two seconds. Until these have passed, its bytes are read each time.
SETTLED_NS = 2_000_000_000
KEPT_MAX = 4096  # versions in the cache; for others the bytes are read again


@dataclass(frozen=True, slots=True)
class _Look:
    """States of all paths that decide which files are read and their content, at one moment."""

    states: dict[str, FileState | None]  # by path; None: nothing is there
    settled: bool

    @classmethod
    def at(cls, places: Sequence[str]) -> "_Look":
        now = time.time_ns()
        states = {path: _state(path) for path in places}
        settled = all(abs(now - each[-1]) > SETTLED_NS for each in states.values() if each)
        return cls(states, settled)

    def still_so(self) -> bool:
        return all(_state(path) == state for path, state in self.states.items())


@dataclass(frozen=True, slots=True)
class Found:
    """Files that were read, and their states at that time."""

    sources: list[SourceFiles]
    look: _Look
    right: bool  # their bytes were the registered ones

    def still_so(self) -> bool:
        """True if the files that were read are still there and unwritten."""
        return self.look.still_so()


class SourceMonitor:
    """Cache of the file states of each version when it was last read.

    Safe to call from many threads.
    """

    def __init__(self, data_roots: tuple[Path, ...]) -> None:
        self._data_roots = data_roots
        self._known: OrderedDict[str, Found] = OrderedDict()
        self._reading: WeakValueDictionary[str, Lock] = WeakValueDictionary()
        self._lock = Lock()

    def unchanged_fast(self, dataset: Dataset) -> bool:
        """True if the files are in the state in which their bytes were right. Reads no byte.

        False if that is unknown or would take long to check.
        """
        known = self._known.get(dataset.version.id)
        if known is None or len(known.look.states) > GLANCE_MAX:
            return False
        return known.right and known.still_so()

    def require_unchanged(self, dataset: Dataset) -> Found:
        """The files of a version. Raises SourceChanged if they differ from the registered ones.

        Raises EngineUnavailable or an OSError if they are gone.
        """
        version_id = dataset.version.id
        with self._lock:
            reading = self._reading.setdefault(version_id, Lock())
        with reading:  # one reader for all waiting callers
            last_read = self._known.get(version_id)
            if last_read is None or not last_read.still_so():
                last_read = self._read(dataset)
        if last_read.right:
            return last_read
        raise SourceChanged("The source is not what was registered.")

    def forget(self, version_id: str) -> None:
        with self._lock:
            self._known.pop(version_id, None)

    def _read(self, dataset: Dataset) -> Found:
        sources = registered_sources(dataset, self._data_roots)
        look = _Look.at(self._places(dataset, sources))
        digests, seen = [], True
        for source in sources:
            digest, states = digest_and_states(source)
            digests.append(digest)
            seen = seen and states == [look.states[name] for name in _names(source)]
        # The states belong to the bytes only if every name led to the very file that was read: a
        # link may have pointed elsewhere for a moment.
        seen = seen and look.still_so()
        seen = seen and registered_sources(dataset, self._data_roots) == sources
        last_read = Found(sources, look, seen and digests == dataset.digests)
        with self._lock:
            self._known.pop(dataset.version.id, None)
            if seen and look.settled:
                self._known[dataset.version.id] = last_read
                while len(self._known) > KEPT_MAX:
                    self._known.popitem(last=False)
        return last_read

    def _places(self, dataset: Dataset, sources: Sequence[SourceFiles]) -> list[str]:
        """Paths to check: the registered names in every root, and the real paths.

        So a link that points elsewhere now, or a file that hides another, is noticed too. The times
        of a folder change with its list of files.
        """
        places = [str(root / path) for path in dataset.paths for root in self._data_roots]
        for source in sources:
            places += (*_names(source), *map(str, source.files))
        return places


def _names(source: SourceFiles) -> list[str]:
    """The path under which each of its files was found."""
    assert source.asked is not None
    if not source.is_folder:
        return [str(source.asked)]
    return [str(source.asked / name) for name in source.names]


def _state(path: str) -> FileState | None:
    """State of the file that a path leads to."""
    try:
        return file_state(os.stat(path))
    except OSError:
        return None
