"""Delete prepared versions that nobody needs: at the start, and when a newer one replaces them.

If a version cannot be deleted, it stays until the next time; nobody waits for this.
"""

import logging
from dataclasses import dataclass

from app.errors import AppError
from app.ports.engines import Engines
from app.ports.registry import OldVersions

_log = logging.getLogger("bursar.versions")
PREPARES = "duckdb"  # the engine with its own files; other engines query the rows in place


@dataclass(slots=True)
class ClearVersions:
    versions: OldVersions
    engines: Engines

    def __call__(self) -> list[str]:
        """Delete unneeded versions, and return the deleted ones."""
        try:
            engine = self.engines.engine(PREPARES)
            unneeded = self.versions.unneeded(engine.prepared())
            return [version_id for version_id in unneeded if engine.drop(version_id)]
        except (AppError, OSError):
            _log.warning("cannot delete old prepared versions")
            return []
