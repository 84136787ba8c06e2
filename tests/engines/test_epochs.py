"""Epochs: immutable, counted separately, and with no more rows per person than the card allows."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from app.data.card import Card, Dataset, Epoch, Source, Version
from app.errors import EngineUnavailable, Invalid
from app.mechanisms.streams.tree_counter import nodes
from app.queries.tally import Compare, CountRows, Tally
from tests.engines.remote.tables import Room, card_of, room_in, stored, write_csv, write_parquet

N = {"name": "n", "type": "integer", "low": 0, "high": 9}
BY_ROW = card_of(N)
BY_PERSON = card_of(N, person={"kind": "column", "column": "who", "rows_max": 2})
COUNT = Tally(None, (), (CountRows(),))


def rows_of(*numbers: int, who: str = "a") -> list[dict[str, Any]]:
    return [{"n": number, "who": who} for number in numbers]


def appended(room: Room, dataset: Dataset, name: str) -> Dataset:
    found = room.engine.inspect_epoch(dataset, name)
    version = dataset.version
    epochs = (*version.appended, Epoch(name, found.digest))
    number = version.number + 1
    made = Version(f"v{name.replace('.', '_')}", number, version.digest, version.seed, epochs)
    grown = replace(dataset, version=made)
    room.engine.prepare(grown)
    return grown


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    write_csv(path, rows, ["n", "who"])
    return path.name


def test_each_version_has_all_rows_up_to_its_epoch_and_older_ones_stay(room: Room) -> None:
    first = room.prepared(write(room.data / "a.csv", rows_of(1, 2, 3)), BY_ROW)
    second = appended(room, first, write(room.data / "b.csv", rows_of(3, 9)))
    third = appended(room, second, write(room.data / "c.csv", []))
    small = Compare("n", "<", 5)
    for version, counts, few in (
        (first, (3,), (3,)),
        (second, (3, 2), (3, 1)),
        (third, (3, 2, 0), (3, 1, 0)),
    ):
        assert room.engine.epochs(version, None) == counts
        assert room.engine.epochs(version, small) == few
        assert room.ask(version, COUNT) == ((sum(counts),),)


def test_an_epoch_may_have_another_format_and_column_order(room: Room) -> None:
    first = room.prepared(write(room.data / "a.csv", rows_of(1, 2, 3)), BY_ROW)
    types = {"who": "VARCHAR", "n": "BIGINT"}
    write_parquet(room.data / "b.parquet", rows_of(4, 5), types)
    assert room.engine.epochs(appended(room, first, "b.parquet"), Compare("n", ">=", 4)) == (0, 2)


def test_all_epochs_together_are_recognized_in_one_file(room: Room) -> None:
    first = room.prepared(write(room.data / "a.csv", rows_of(1, 2, 3)), BY_ROW)
    write(room.data / "b.csv", rows_of(3, 9, who="b"))
    epoch = room.engine.inspect_epoch(first, "b.csv")
    whole = write(room.data / "c.csv", rows_of(9, 3, who="b") + rows_of(3, 2, 1))
    assert room.engine.inspect(Source("duckdb", whole), BY_ROW).content == epoch.together
    alone = room.engine.inspect(Source("duckdb", "b.csv"), BY_ROW)
    assert (alone.content, alone.digest, alone.place) == (
        epoch.content,
        epoch.digest,
        epoch.place,
    )
    assert not epoch.empty
    write(room.data / "d.csv", [])
    assert room.engine.inspect_epoch(first, "d.csv").empty


@pytest.mark.parametrize("seed", ["one", "two", "three"])
def test_a_kept_row_stays_when_more_rows_arrive(room: Room, seed: str) -> None:
    rows = rows_of(1, 2, 3, 4) + rows_of(5, who="b")
    first = room.prepared(write(room.data / "a.csv", rows), BY_PERSON, seed=seed)
    kept = sorted((n, position) for n, *_, position in stored(room, first))
    second = appended(
        room, first, write(room.data / "b.csv", rows_of(6, 7) + rows_of(8, 9, who="b"))
    )
    late = sorted(stored(room, second))
    assert [(n, position) for n, epoch, *_, position in late if epoch == 1] == kept
    assert room.engine.epochs(second, None) == (3, 1), "no new row of a, one new row of b"


NEIGHBOURS_EPOCHS = 3


def spread(places: tuple[int, ...], who: str) -> list[list[dict[str, Any]]]:
    """All ways to put each row of a person in one of the epochs."""
    return [
        [{"n": i, "who": who} for i, place in enumerate(places) if place == epoch]
        for epoch in range(NEIGHBOURS_EPOCHS)
    ]


def counts_of(room: Room, card: Card, epochs: list[list[dict[str, Any]]], tag: str) -> list[int]:
    files = [write(room.data / f"{tag}-{i}.csv", rows) for i, rows in enumerate(epochs)]
    return list(room.engine.epochs(room.prepared(files[0], card, appended=files[1:]), None))


def test_one_person_moves_each_level_of_the_tree_by_at_most_their_rows(tmp_path: Path) -> None:
    """All ways to spread up to three rows of a person over three epochs, beside another person.

    At most two rows of each are kept. The nodes of each level move by at most two together.
    """
    with room_in(tmp_path) as room:
        other = spread((0, 2, 2), "b")
        without = counts_of(room, BY_PERSON, other, "without")
        worst = 0
        for rows in range(4):
            for places in product(range(NEIGHBOURS_EPOCHS), repeat=rows):
                mine = spread(places, "a")
                both = [a + b for a, b in zip(mine, other, strict=True)]
                tag = "with" + "".join(map(str, places))
                moved = [
                    a - b
                    for a, b in zip(counts_of(room, BY_PERSON, both, tag), without, strict=True)
                ]
                levels: dict[int, int] = {}
                every = {n for t in range(1, NEIGHBOURS_EPOCHS + 1) for n in nodes(t)} | {(2, 2)}
                for low, high in every:
                    change = abs(sum(moved[low - 1 : high]))
                    levels[high - low] = levels.get(high - low, 0) + change
                assert max(levels.values()) <= BY_PERSON.person.rows_max
                worst = max(worst, sum(levels.values()))
        assert worst == BY_PERSON.person.rows_max * NEIGHBOURS_EPOCHS.bit_length()


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("../b.csv", ["n", "who"]),
        ("gone.csv", None),
        ("b.txt", ["n", "who"]),
        ("b.csv", ["n"]),
        ("b.csv", ["n", "who", "more"]),
        ("b.csv", ["m", "who"]),
        ("b.csv", ["n", "n"]),
    ],
)
def test_an_unsuitable_file_is_refused(room: Room, name: str, header: list[str] | None) -> None:
    first = room.prepared(write(room.data / "a.csv", rows_of(1)), BY_ROW)
    if header is not None:
        (room.data / name).write_text(",".join(header) + "\n")
    with pytest.raises(Invalid) as refused:
        room.engine.inspect_epoch(first, name)
    assert [field.pointer for field in refused.value.fields] == ["/append/path"]


def test_a_person_written_in_another_type_is_refused(room: Room) -> None:
    first = room.prepared(write(room.data / "a.csv", rows_of(1)), BY_PERSON)
    write_parquet(room.data / "b.parquet", [{"n": 1, "who": 7}], {"n": "BIGINT", "who": "BIGINT"})
    with pytest.raises(Invalid, match="/append/path"):
        room.engine.inspect_epoch(first, "b.parquet")


def test_a_version_is_rebuilt_only_from_the_same_files(room: Room, tmp_path: Path) -> None:
    first = room.prepared(write(room.data / "a.csv", rows_of(1)), BY_ROW)
    second = appended(room, first, write(room.data / "b.csv", rows_of(2)))
    with room_in(tmp_path / "other") as elsewhere:
        for name in ("a.csv", "b.csv"):
            (elsewhere.data / name).write_bytes((room.data / name).read_bytes())
        elsewhere.engine.prepare(second)
        assert sorted(stored(elsewhere, second)) == sorted(stored(room, second))
    with room_in(tmp_path / "third") as changed:
        (changed.data / "a.csv").write_bytes((room.data / "a.csv").read_bytes())
        write(changed.data / "b.csv", rows_of(3))
        with pytest.raises(EngineUnavailable):
            changed.engine.prepare(second)
