"""Reading a source: whatever keeps us from it becomes one error in our own words.

No text of the driver passes, because drivers quote cells: failures are raised after the driver's
exception has been let go, so that not even a traceback holds it.
"""

from collections.abc import Callable
from typing import TypeVar

import duckdb

from app.engines.size_limit import OverSize
from app.engines.sources import Unreadable
from app.errors import EngineUnavailable, Invalid

T = TypeVar("T")


def readable(work: Callable[[], T]) -> T:
    """What the work returns. Raises Invalid or EngineUnavailable."""
    unreadable: str
    try:
        return work()
    except (Invalid, EngineUnavailable):
        raise
    except duckdb.OutOfMemoryException:
        unreadable = (
            "The source needs more memory than BURSAR_ENGINE_MEMORY, or more room aside than 8GB."
        )
    except duckdb.InterruptException:
        unreadable = "Reading the source took longer than BURSAR_INGEST_TIMEOUT_SECONDS."
    except OverSize:
        unreadable = "The source's rows take more room than BURSAR_PREPARED_SIZE_MAX."
    except (duckdb.Error, OSError, Unreadable, ValueError, RuntimeError, MemoryError):
        unreadable = "The source cannot be read as the CSV or Parquet file it should be."
    raise EngineUnavailable(unreadable)
