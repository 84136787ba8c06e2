"""Questions that take far longer than any time limit here, so that they end only when they are
interrupted. They end at last, so that a test fails if they were not."""

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from app.data.card import Dataset
from app.engines.files.prepare import version_path
from app.queries.tally import Compare, CountRows, SumSteps, Tally
from tests.engines.remote.tables import Room, card_of

X_CARD = card_of({"name": "x", "type": "number", "low": 0, "high": 1000})
ENDLESS_X = ("700.0", "0")  # and the number of its step
LIGHT = Tally(Compare("x", "<", 500), (), (CountRows(),))
ENDLESS = Tally(Compare("x", ">", 500), (), (CountRows(), SumSteps("x")))


def never_end(room: Room, dataset: Dataset, *values: str, rows: int = 3 * 10**11) -> None:
    """After its own rows the version has so many of these values. A question whose condition
    excludes constant values is not slowed: the planner leaves out what cannot match."""
    room.engine.close()
    with duckdb.connect(str(version_path(room.home, dataset))) as connection:
        connection.execute("ALTER TABLE rows RENAME TO real")
        connection.execute(
            "CREATE VIEW rows AS SELECT rowid, * FROM real "
            f"UNION ALL SELECT 0, {', '.join(values)} FROM range({rows})"
        )


@contextmanager
def no_time(room: Room) -> Iterator[None]:
    """Inside, every question is overdue a moment after it began."""
    patient = room.engine._timeout_seconds
    room.engine._timeout_seconds = 0.01
    try:
        yield
    finally:
        room.engine._timeout_seconds = patient
