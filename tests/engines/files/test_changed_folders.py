"""Folders of files are checked before every question, like single files."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.engines.files import change_detection
from tests.engines.files.changing_files import CARD, TICK, folder_of, nest, refused
from tests.engines.remote.tables import Room, write_parquet


def add(folder: Path) -> None:
    write_parquet(folder / "9.parquet", [], {"x": "BIGINT"})


def drop(folder: Path) -> None:
    (folder / "1.parquet").unlink()


def rename(folder: Path) -> None:
    (folder / "1.parquet").rename(folder / "9.parquet")


def change(folder: Path) -> None:
    write_parquet(folder / "1.parquet", [{"x": 7}], {"x": "BIGINT"})


@pytest.mark.parametrize("spoil", [add, drop, rename, change, nest])
def test_a_changed_folder_is_refused(
    room: Room, digests: list[str], spoil: Callable[[Path], None]
) -> None:
    folder = folder_of(room, 3)
    dataset = room.prepared("parts", CARD)
    assert room.engine.ready(dataset)
    time.sleep(TICK)
    spoil(folder)
    assert refused(room, dataset)


def test_ignored_files_of_a_folder_may_change(room: Room, digests: list[str]) -> None:
    folder = folder_of(room, 3)
    dataset = room.prepared("parts", CARD)
    (folder / "_SUCCESS").write_text("")
    assert not refused(room, dataset)
    assert room.engine.ready(dataset)


def test_many_files_are_not_checked_on_the_event_loop(
    room: Room, digests: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_of(room, 3)
    dataset = room.prepared("parts", CARD)
    monkeypatch.setattr(change_detection, "GLANCE_MAX", 3)  # with the folder itself there are more
    assert not room.engine.ready(dataset)
    room.engine.prepare(dataset)
    assert digests == ["parts"]
