"""Whether the files of a dataset are still what was registered, at the price of a look at each.

Bytes are known by their digest, which takes reading them all. Between two readings a file is known
by its state, which the system changes whenever somebody writes, replaces or moves it: as long as
the states are those that were seen when the digests were right, no byte is read.

Rows were copied when they were registered, so that no answer depends on this. It keeps answers
about rows that are no longer there from being taken for answers about those that are.
"""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from app.datasets import Dataset
from app.engines.paths import SourceFiles, registered_sources
from app.engines.sources import source_digest
from app.errors import SourceChanged

# How many files are looked at where a question must not wait; of more, in a thread of its own.
GLANCE_MAX = 64
# A file that was written a moment ago may be written again and have the same times: the coarsest
# file systems count in steps of two seconds. Until they are over, its bytes are read each time.
SETTLED_NS = 2_000_000_000

_State = tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class _Look:
    """All that decides which files are read and what is in them, as it was at one moment."""

    places: tuple[str, ...]
    states: tuple[_State, ...]
    settled: bool

    def still_so(self) -> bool:
        return tuple(map(_state, self.places)) == self.states


class Unchanged:
    """Remembers of each version how its files were when they were last read. Safe to call from many
    threads."""

    def __init__(self, data_roots: tuple[Path, ...]) -> None:
        self._data_roots = data_roots
        self._right: dict[str, _Look] = {}
        self._wrong: dict[str, _Look] = {}
        self._reading: dict[str, Lock] = {}

    def seems_so(self, dataset: Dataset) -> bool:
        """Are they as they were when their bytes were right? No if it is not known, or would take
        long to see: then ask `must_be`. Reads no byte."""
        look = self._right.get(dataset.version.id)
        return look is not None and len(look.places) <= GLANCE_MAX and look.still_so()

    def must_be(self, dataset: Dataset, sources: Sequence[SourceFiles]) -> None:
        """`sources`: where they were found. Raises SourceChanged, and EngineUnavailable or an
        OSError if they are gone."""
        version_id = dataset.version.id
        with self._reading.setdefault(version_id, Lock()):  # one reader for all who wait
            look = self._look(dataset, sources)
            if _same(look, self._right.get(version_id)):
                return
            if not _same(look, self._wrong.get(version_id)):
                right = self._is_right(dataset, sources) and look.still_so()
                self._remember(version_id, look, right=right)
                if right:
                    return
        raise SourceChanged("The source is not what was registered.")

    def _is_right(self, dataset: Dataset, sources: Sequence[SourceFiles]) -> bool:
        if registered_sources(dataset, self._data_roots) != sources:  # moved before the look
            return False
        return [source_digest(source) for source in sources] == dataset.digests

    def forget(self, version_id: str) -> None:
        for each in (self._right, self._wrong, self._reading):
            each.pop(version_id, None)

    def _remember(self, version_id: str, look: _Look, *, right: bool) -> None:
        self._right.pop(version_id, None)
        self._wrong.pop(version_id, None)
        if look.settled:
            (self._right if right else self._wrong)[version_id] = look

    def _look(self, dataset: Dataset, sources: Sequence[SourceFiles]) -> _Look:
        """By the names they are asked for, in every root, so that a link that leads elsewhere now,
        or a file that hides another, is seen too. A folder's own times tell of its list of
        files."""
        places: list[str] = []
        for path, source in zip(dataset.paths, sources, strict=True):
            places += (os.path.join(root, path) for root in self._data_roots)
            places += (os.path.join(source.place, name) for name in source.names)
        now = time.time_ns()
        states = tuple(map(_state, places))
        settled = all(abs(now - max(each[-2:])) > SETTLED_NS for each in states if each)
        return _Look(tuple(places), states, settled)


def _same(look: _Look, known: _Look | None) -> bool:
    return known is not None and (look.places, look.states) == (known.places, known.states)


def _state(place: str) -> _State:
    """Of what a name leads to; the system alone sets the last of it, and nobody can set it back."""
    try:
        found = os.stat(place)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
