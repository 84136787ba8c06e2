"""Read a source: every failure becomes one of our own errors.

No driver text passes, because drivers quote cells. Failures are raised after the driver's exception
has been released, so that not even a traceback holds it.
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
    """Run `work`, and replace its errors by Invalid or EngineUnavailable.

    `at`: JSON pointer of the request's field that named the files. With it, unusable files raise
    Invalid, so that the sender can correct them. Without it, and for failures on our side, the
    error is EngineUnavailable.
    """
    failure: AppError
    try:
        return work()
    except (Invalid, EngineUnavailable):
        raise
    except duckdb.OutOfMemoryException:
        failure = EngineUnavailable(
            "The source needs more memory than BURSAR_ENGINE_MEMORY, or more than 8GB of "
            "temporary space."
        )
    except duckdb.InterruptException:
        failure = EngineUnavailable(
            "Reading the source took longer than BURSAR_INGEST_TIMEOUT_SECONDS."
        )
    except OverSize:
        failure = EngineUnavailable(
            "The source's rows take more space than BURSAR_PREPARED_SIZE_MAX."
        )
    except (duckdb.IOException, duckdb.FatalException, OSError, MemoryError):
        # Some damaged Parquet files end here too; only the driver's text could distinguish them.
        failure = EngineUnavailable(NOT_SO)
    except (duckdb.Error, Unreadable, ValueError, RuntimeError):
        failure = EngineUnavailable(NOT_SO) if at is None else Invalid.field(at, WELL_FORMED)
    raise failure
