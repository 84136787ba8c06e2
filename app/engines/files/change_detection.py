"""Whether the files of a dataset are still what was registered, at the price of a look at each.

Bytes are known by their digest, which takes reading them all. Between two readings a file is known
by its state, which the system changes whenever somebody writes, replaces or moves it: as long as
the states are those of the files whose bytes were right, no byte is read. (What is written through
a shared memory mapping the system need not tell in time.)

Rows were copied when they were registered, so that no answer depends on this. It keeps answers
about rows that are no longer there from being taken for answers about those that are.
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

# How many files are looked at where a question must not wait; of more, in a thread.
GLANCE_MAX = 64
# A file that was written a moment ago may be written again and have the same times: the coarsest
# file systems count in steps of two seconds. Until they are over, its bytes are read each time.
SETTLED_NS = 2_000_000_000
KEPT_MAX = 4096  # versions; of others the bytes are read again


@dataclass(frozen=True, slots=True)
class _Look:
    """All that decides which files are read and what is in them, as it was at one moment."""

    states: dict[str, FileState | None]  # by name; None: nothing is there
    settled: bool

    @classmethod
    def at(cls, places: Sequence[str]) -> "_Look":
        now = time.time_ns()
        states = {place: _state(place) for place in places}
        settled = all(abs(now - each[-1]) > SETTLED_NS for each in states.values() if each)
        return cls(states, settled)

    def still_so(self) -> bool:
        return all(_state(place) == state for place, state in self.states.items())


@dataclass(frozen=True, slots=True)
class Found:
    """Files that were read, and how they were then."""

    sources: list[SourceFiles]
    look: _Look
    right: bool  # were their bytes those that were registered

    def still_so(self) -> bool:
        """Are they the files that were read, and not written since?"""
        return self.look.still_so()


class SourceMonitor:
    """Remembers of each version how its files were when they were last read. Safe to call from many
    threads."""

    def __init__(self, data_roots: tuple[Path, ...]) -> None:
        self._data_roots = data_roots
        self._known: OrderedDict[str, Found] = OrderedDict()
        self._reading: WeakValueDictionary[str, Lock] = WeakValueDictionary()
        self._lock = Lock()

    def unchanged_fast(self, dataset: Dataset) -> bool:
        """Are they as they were when their bytes were right? No if it is not known, or would take
        long to see. Reads no byte."""
        known = self._known.get(dataset.version.id)
        if known is None or len(known.look.states) > GLANCE_MAX:
            return False
        return known.right and known.still_so()

    def require_unchanged(self, dataset: Dataset) -> Found:
        """Where they are. Raises SourceChanged, and EngineUnavailable or an OSError if they are
        gone."""
        version_id = dataset.version.id
        with self._lock:
            reading = self._reading.setdefault(version_id, Lock())
        with reading:  # one reader for all who wait
            found = self._known.get(version_id)
            if found is None or not found.still_so():
                found = self._read(dataset)
        if found.right:
            return found
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
        # What was read is what was looked at only if every name led to the very file that was read:
        # a link may have led elsewhere for a moment, and back.
        seen = seen and look.still_so()
        seen = seen and registered_sources(dataset, self._data_roots) == sources
        found = Found(sources, look, seen and digests == dataset.digests)
        with self._lock:
            self._known.pop(dataset.version.id, None)
            if seen and look.settled:
                self._known[dataset.version.id] = found
                while len(self._known) > KEPT_MAX:
                    self._known.popitem(last=False)
        return found

    def _places(self, dataset: Dataset, sources: Sequence[SourceFiles]) -> list[str]:
        """By the names they are asked for, in every root, and where they really are, so that a link
        that leads elsewhere now, or a file that hides another, is seen too. A folder's own times
        tell of its list of files."""
        places = [str(root / path) for path in dataset.paths for root in self._data_roots]
        for source in sources:
            places += (*_names(source), *map(str, source.files))
        return places


def _names(source: SourceFiles) -> list[str]:
    """How each of its files was found."""
    assert source.asked is not None
    if not source.is_folder:
        return [str(source.asked)]
    return [str(source.asked / name) for name in source.names]


def _state(place: str) -> FileState | None:
    """Of what a name leads to."""
    try:
        return file_state(os.stat(place))
    except OSError:
        return None
