from collections.abc import Iterator
from pathlib import Path

import pytest

from app.data.card import Dataset
from app.engines import watchdog
from app.engines.files import change_detection
from app.engines.files.paths import SourceFiles
from app.engines.files.sources import FileState, digest_and_states
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


@pytest.fixture
def digests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the sources read so far; files count as settled at once."""
    read: list[str] = []

    def digest(source: SourceFiles) -> tuple[str, list[FileState]]:
        read.append(source.place.name)
        return digest_and_states(source)

    monkeypatch.setattr(change_detection, "digest_and_states", digest)
    monkeypatch.setattr(change_detection, "SETTLED_NS", -1)
    return read
