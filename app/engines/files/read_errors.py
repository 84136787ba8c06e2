"""Reading a source: whatever keeps us from it becomes one error in our own words.

No text of the driver passes, because drivers quote cells: failures are raised after the driver's
exception has been let go, so that not even a traceback holds it.
"""

from collections.abc import Callable
from typing import TypeVar

import duckdb

from app.engines.files.size_limit import OverSize
from app.engines.files.sources import Unreadable
from app.errors import AppError, EngineUnavailable, Invalid

T = TypeVar("T")

NOT_SO = "The source cannot be read as the CSV or Parquet file it should be."
WELL_FORMED = (
    "a file that is what its name says: CSV in UTF-8, where every row has as many fields as the "
    "header, or Parquet"
)


def hide_driver_errors(work: Callable[[], T], *, at: str | None = None) -> T:
    """What the work returns. Raises Invalid or EngineUnavailable: for files that are not what they
    should be Invalid where `at` says which field of a request named them, so that whoever sent it
    can mend them; and EngineUnavailable for all that lies with us, or where nobody is asking.
    """
    failure: AppError
    try:
        return work()
    except (Invalid, EngineUnavailable):
        raise
    except duckdb.OutOfMemoryException:
        failure = EngineUnavailable(
            "The source needs more memory than BURSAR_ENGINE_MEMORY, or more room aside than 8GB."
        )
    except duckdb.InterruptException:
        failure = EngineUnavailable(
            "Reading the source took longer than BURSAR_INGEST_TIMEOUT_SECONDS."
        )
    except OverSize:
        failure = EngineUnavailable(
            "The source's rows take more room than BURSAR_PREPARED_SIZE_MAX."
        )
    except (duckdb.IOException, duckdb.FatalException, OSError, MemoryError):
        # Of damaged Parquet some is told so too; what it is cannot be seen but in the text.
        failure = EngineUnavailable(NOT_SO)
    except (duckdb.Error, Unreadable, ValueError, RuntimeError):
        failure = EngineUnavailable(NOT_SO) if at is None else Invalid.field(at, WELL_FORMED)
    raise failure
