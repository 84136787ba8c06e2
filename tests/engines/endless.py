"""Questions that run far longer than any time limit here, so that only an interruption ends them.

They are finite, so that a test fails if they were not interrupted.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from app.data.card import Dataset
from app.engines.files.prepare import version_path
from app.queries.tally import Compare, CountRows, SumSteps, Tally
from tests.engines.remote.tables import Room, card_of

X_CARD = card_of({"name": "x", "type": "number", "low": 0, "high": 1000})
ENDLESS_X = ("700.0", "0")  # with its number of steps
LIGHT = Tally(Compare("x", "<", 500), (), (CountRows(),))
ENDLESS = Tally(Compare("x", ">", 500), (), (CountRows(), SumSteps("x")))


def never_end(room: Room, dataset: Dataset, *values: str, rows: int = 3 * 10**11) -> None:
    """Append this many rows of these values to the version.

    A question whose condition excludes constant values is not slowed: the planner skips rows that
    cannot match.
    """
    room.engine.close()
    with duckdb.connect(str(version_path(room.home, dataset))) as connection:
        connection.execute("ALTER TABLE rows RENAME TO real")
        connection.execute(
            "CREATE VIEW rows AS SELECT rowid, * FROM real "
            f"UNION ALL SELECT 0, {', '.join(values)} FROM range({rows})"
        )


@contextmanager
def no_time(room: Room) -> Iterator[None]:
    """Make every question in the block overdue shortly after it starts."""
    patient = room.engine._timeout_seconds
    room.engine._timeout_seconds = 0.01
    try:
        yield
    finally:
        room.engine._timeout_seconds = patient
