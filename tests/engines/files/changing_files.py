"""Small source files and folders, and the check before a question."""

import time
from pathlib import Path

from app.data.card import Dataset
from app.errors import EngineUnavailable
from app.queries.tally import CountRows, Tally
from tests.engines.remote.tables import Room, card_of, write_csv, write_parquet

COUNT = Tally(None, (), (CountRows(),))
CARD = card_of({"name": "x", "type": "integer", "low": 0, "high": 9})
TICK = 0.02  # clocks of file systems advance in steps of at most 10 ms
LONG_AGO = 10**18  # nanoseconds; the change time of a file cannot be set


def some(room: Room, name: str = "t.csv", *, value: int = 1) -> str:
    time.sleep(TICK)
    write_csv(room.data / name, [{"x": value}])
    return name


def folder_of(room: Room, size: int) -> Path:
    folder = room.data / "parts"
    folder.mkdir()
    for i in range(size):
        write_parquet(folder / f"{i}.parquet", [{"x": i}], {"x": "BIGINT"})
    return folder


def nest(folder: Path) -> None:
    (folder / "more").mkdir()


def refused(room: Room, dataset: Dataset) -> bool:
    """Check as `refusal` does: first by file attributes, then by content."""
    if room.engine.ready(dataset):
        return False
    try:
        room.engine.prepare(dataset)
    except EngineUnavailable:
        return True
    return False
