"""Delete prepared versions that nobody needs any more: at the start, and when another follows.

Whatever keeps a version from being deleted leaves it for the next time; nobody waits for this.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from app.errors import AppError, Conflict, Invalid
from app.ports import Engine, Engines, OldVersions

_log = logging.getLogger("bursar.versions")
PREPARES = "duckdb"  # the engine that keeps files of its own; others ask the rows where they are


@dataclass(slots=True)
class ClearVersions:
    versions: OldVersions
    engines: Engines

    def __call__(self) -> list[str]:
        """Those that were deleted."""
        try:
            engine = self.engines.engine(PREPARES)
            unneeded = self.versions.unneeded(engine.prepared())
            return [version_id for version_id in unneeded if engine.drop(version_id)]
        except (AppError, OSError):
            _log.warning("old versions could not be cleared")
            return []


@contextmanager
def dropped_if_refused(engine: Engine, version_id: str) -> Iterator[None]:
    """A version is prepared before it is stored; one that is refused is nobody's. Where it is not
    known whether it was stored, it stays."""
    try:
        yield
    except (Conflict, Invalid):
        engine.drop(version_id)
        raise
