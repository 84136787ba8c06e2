from collections.abc import Iterator
from pathlib import Path

import pytest

from app.data.card import Dataset
from app.engines import watchdog
from tests.engines.clock import WatchdogClock
from tests.engines.endless import ENDLESS_X, X_CARD, never_end
from tests.engines.remote.tables import Room, room_in, write_csv


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    with room_in(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Room, Dataset]]:
    """LIGHT counts 500 of its rows; ENDLESS ends only when it is interrupted."""
    with room_in(tmp_path_factory.mktemp("endless"), timeout_seconds=60.0) as room:
        write_csv(room.data / "t.csv", [{"x": number} for number in range(1000)])
        dataset = room.prepared("t.csv", X_CARD)
        never_end(room, dataset, *ENDLESS_X)
        yield room, dataset


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> WatchdogClock:
    made = WatchdogClock()
    monkeypatch.setattr(watchdog, "time", made)
    return made
