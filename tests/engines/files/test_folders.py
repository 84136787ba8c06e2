"""A folder of Parquet files is one table, and is recognized as such."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.data.card import Dataset, Epoch, Source, Version
from app.errors import EngineUnavailable, Invalid
from app.queries.tally import CountRows, Tally
from tests.engines.remote.tables import Room, card_of, stored, write_csv, write_parquet

CARD = card_of(
    {"name": "n", "type": "integer", "low": 0, "high": 9},
    {"name": "t", "type": "category", "values": ["a", "b"]},
)
TYPES = {"n": "BIGINT", "t": "VARCHAR"}
ROWS: list[dict[str, Any]] = [{"n": i, "t": "ab"[i % 2]} for i in range(10)]
COUNT = Tally(None, (), (CountRows(),))


def write_folder(folder: Path, *parts: list[dict[str, Any]]) -> Path:
    folder.mkdir()
    for i, rows in enumerate(parts):
        write_parquet(folder / f"part-{i}.parquet", rows, TYPES)
    return folder


@pytest.fixture
def folder(room: Room) -> Path:
    return write_folder(room.data / "parts", ROWS[:3], [], ROWS[3:])


def test_the_table_holds_all_rows_of_its_files(room: Room, folder: Path) -> None:
    (folder / "_SUCCESS").write_text("")
    (folder / "notes.txt").write_text("not rows")
    dataset = room.prepared("parts", CARD)
    assert sorted(stored(room, dataset)) == [(row["n"], int(row["t"] == "b")) for row in ROWS]
    assert room.ask(dataset, COUNT) == ((10,),)


def test_the_same_rows_in_one_file_have_the_same_fingerprint(room: Room, folder: Path) -> None:
    write_parquet(room.data / "one.parquet", ROWS[::-1], TYPES)
    write_csv(room.data / "one.csv", ROWS)
    write_folder(room.data / "others", ROWS[5:], ROWS[:5])
    sources = ("parts", "others", "one.parquet", "one.csv")
    found = [room.engine.inspect(Source("duckdb", path), CARD) for path in sources]
    assert len({each.content for each in found}) == 1
    assert len({each.digest for each in found}) == 4
    assert found[0].place == str(folder)


def test_each_file_may_have_its_own_column_order(room: Room) -> None:
    folder = write_folder(room.data / "parts", ROWS[:5])
    write_parquet(folder / "z.parquet", ROWS[5:], dict(reversed(TYPES.items())))
    dataset = room.prepared("parts", CARD)
    assert sorted(stored(room, dataset)) == [(row["n"], int(row["t"] == "b")) for row in ROWS]


@pytest.mark.parametrize(
    "types",
    [
        {"n": "BIGINT"},
        {"n": "BIGINT", "t": "VARCHAR", "more": "BIGINT"},
        {"n": "BIGINT", "T": "VARCHAR"},
        {"n": "INTEGER", "t": "VARCHAR"},
        {"n": "VARCHAR", "t": "VARCHAR"},
    ],
)
def test_files_with_other_columns_are_named_at_registration(
    room: Room, folder: Path, types: dict[str, str]
) -> None:
    write_parquet(folder / "part-9.parquet", [], types)
    with pytest.raises(Invalid) as refused:
        room.engine.inspect(Source("duckdb", "parts"), CARD)
    assert [field.pointer for field in refused.value.fields] == ["/source/path"]
    assert "part-9.parquet has other names or types" in refused.value.detail


def test_a_file_that_is_not_parquet_makes_the_folder_unreadable(room: Room, folder: Path) -> None:
    (folder / "part-9.parquet").write_bytes(b"PAR1 SECRET PAR1")
    with pytest.raises(Invalid, match="/source/path") as refused:
        room.register("parts", CARD)
    assert "SECRET" not in str(refused.value)
    assert refused.value.__context__ is None


def add(folder: Path) -> None:
    write_parquet(folder / "part-9.parquet", [], TYPES)


def remove(folder: Path) -> None:
    (folder / "part-1.parquet").unlink()


def rename(folder: Path) -> None:
    (folder / "part-1.parquet").rename(folder / "part-9.parquet")


def change(folder: Path) -> None:
    write_parquet(folder / "part-1.parquet", ROWS[:1], TYPES)


def replace_all(folder: Path) -> None:
    folder.rename(folder.with_name("before"))
    write_folder(folder, ROWS)


def nest(folder: Path) -> None:
    (folder / "year=2026").mkdir()


SPOILERS = [add, remove, rename, change, replace_all, nest]


@pytest.mark.parametrize("spoil", SPOILERS)
def test_a_changed_folder_is_refused(
    room: Room, folder: Path, spoil: Callable[[Path], None]
) -> None:
    dataset = room.register("parts", CARD)
    spoil(folder)
    with pytest.raises(EngineUnavailable):
        room.engine.prepare(dataset)
    assert not list(room.home.glob("versions/*.duckdb"))


@pytest.mark.parametrize("spoil", SPOILERS)
def test_a_change_during_the_read_is_noticed(
    room: Room, folder: Path, spoil: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def content_hash(*_: object) -> str:
        spoil(folder)
        return ""

    monkeypatch.setattr("app.engines.files.duckdb.content_hash", content_hash)
    with pytest.raises(EngineUnavailable):
        room.register("parts", CARD)


def test_a_changed_folder_can_be_registered_anew(room: Room, folder: Path) -> None:
    first = room.prepared("parts", CARD)
    write_parquet(folder / "part-9.parquet", [{"n": 5_000, "t": "z"}, {"n": -1, "t": "a"}], TYPES)
    again = room.prepared("parts", CARD, version_id="again")
    assert room.ask(first, COUNT) == ((10,),)  # its rows were copied and stay
    added = sorted(stored(room, again), key=str)
    assert len(added) == 12
    assert {(9, None), (0, 0)} <= set(added)  # clamped, and missing


def test_an_epoch_may_be_a_folder_and_a_folder_may_have_epochs(room: Room, folder: Path) -> None:
    write_folder(room.data / "later", ROWS[:2], ROWS[:1])
    write_csv(room.data / "last.csv", ROWS[:4])
    dataset = appended(room, room.prepared("parts", CARD), "later")
    dataset = appended(room, dataset, "last.csv")
    assert room.engine.epochs(dataset, None) == (10, 3, 4)
    spoiled = replace(dataset, version=replace(dataset.version, id="again"))
    add(room.data / "later")
    with pytest.raises(EngineUnavailable, match="not what was registered"):
        room.engine.prepare(spoiled)


def appended(room: Room, dataset: Dataset, path: str) -> Dataset:
    found = room.engine.inspect_epoch(dataset, path)
    before = dataset.version
    epochs = (*before.appended, Epoch(path, found.digest))
    made = Version(f"v{len(epochs)}", before.number + 1, before.digest, before.seed, epochs)
    grown = replace(dataset, version=made)
    room.engine.prepare(grown)
    return grown


def test_an_invalid_folder_is_refused_as_an_epoch_by_its_own_field(
    room: Room, folder: Path
) -> None:
    dataset = room.prepared("parts", CARD)
    later = write_folder(room.data / "later", ROWS[:2])
    write_parquet(later / "part-9.parquet", [], {"n": "DOUBLE", "t": "VARCHAR"})
    with pytest.raises(Invalid, match=r"/append/path: .* part-9.parquet has other"):
        room.engine.inspect_epoch(dataset, "later")
    with pytest.raises(Invalid, match=r"/append/path: .* under a data root"):
        room.engine.inspect_epoch(dataset, "nowhere")
