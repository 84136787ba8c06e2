"""The hash of whole rows: equal for the same rows in every storage, and for nothing else."""

import datetime
from itertools import pairwise
from typing import Any

import pytest

from app.data.card import Card, Source
from app.data.inspection import Inspection
from tests.engines.remote.tables import Room, card_of, room_in, write_csv, write_parquet

Rows = list[dict[str, Any]]
NAMES = ("id", "sex", "side", "score", "seen", "member")
TYPES = {
    "id": "BIGINT",
    "sex": "VARCHAR",
    "side": "VARCHAR",
    "score": "DOUBLE",
    "seen": "DATE",
    "member": "BOOLEAN",
}
COLUMNS: list[dict[str, Any]] = [
    {"name": "sex", "type": "category", "values": ["f", "m"]},
    {"name": "side", "type": "category", "values": ["f", "m"]},
    {"name": "score", "type": "number", "low": 0, "high": 10},
]
BY_SEX = card_of(*COLUMNS, cells={"column": "sex"})
BY_SCORE = card_of(*COLUMNS, cells={"column": "score", "edges": [0, 0.7, 10]})
ROWS: Rows = [
    {
        "id": 2**62 + i,
        "sex": "fm"[i % 2],
        "side": "fm"[i // 2 % 2],
        "score": [0.1 + 0.2, 1 / 3, 1e-5, 7.0, None, -0.0, 123456789.125, 2.5][i],
        "seen": datetime.date(2020, 1, 1 + i),
        "member": [True, False, None][i % 3],
    }
    for i in range(8)
]


def known(room: Room, rows: Rows, kind: str, card: Card, types: dict[str, str] = TYPES) -> str:
    found = room.engine.inspect(written_to(room, rows, kind, types), card).celled
    assert found is not None
    return found


def written_to(room: Room, rows: Rows, kind: str, types: dict[str, str] = TYPES) -> Source:
    path = room.data / f"t.{kind}"
    if kind == "csv":
        write_csv(path, rows, list(types))
    else:
        write_parquet(path, rows, types)
    return Source("duckdb", path.name)


@pytest.mark.parametrize("card", [BY_SEX, BY_SCORE], ids=["category", "number"])
def test_neither_format_nor_order_matters(room: Room, card: Card) -> None:
    expected = known(room, ROWS, "csv", card)
    assert known(room, ROWS, "parquet", card) == expected
    columns = dict(reversed(TYPES.items()))
    assert known(room, ROWS[::-1], "csv", card, columns) == expected
    assert known(room, ROWS[3:] + ROWS[:3], "parquet", card, columns) == expected


@pytest.mark.parametrize("kind", ["DOUBLE", "DECIMAL(12,3)", "VARCHAR"])
def test_a_number_matches_in_every_notation(room: Room, kind: str) -> None:
    columns = {"sex": "VARCHAR", "side": "VARCHAR", "score": kind}
    expected = known(room, _scores("1", "2.5"), "csv", BY_SEX, columns)
    assert known(room, _scores("1.0", "2.50"), "csv", BY_SEX, columns) == expected
    assert known(room, _scores("1", "2.500"), "parquet", BY_SEX, columns) == expected


def _scores(*scores: str) -> Rows:
    return [{"sex": "f", "side": "m", "score": score} for score in scores]


def exchanged(rows: Rows, name: str, one: int, other: int) -> Rows:
    """Two rows swap a value in one column, so every column holds the same values."""
    changed = [dict(row) for row in rows]
    changed[one][name], changed[other][name] = rows[other][name], rows[one][name]
    return changed


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Inspection]:
    """Both hashes of the rows before a change, for each kind of file."""
    with room_in(tmp_path_factory.mktemp("unchanged")) as room:
        return {
            kind: room.engine.inspect(written_to(room, ROWS, kind), BY_SEX)
            for kind in ("csv", "parquet")
        }


@pytest.mark.parametrize("name", NAMES)
def test_a_value_moved_to_another_row_is_noticed(
    room: Room, unchanged: dict[str, Inspection], name: str
) -> None:
    for kind, before in unchanged.items():
        moved = written_to(room, exchanged(ROWS, name, 0, 7), kind)
        after = room.engine.inspect(moved, BY_SEX)
        assert after.content == before.content, "each column by itself is unchanged"
        assert after.celled != before.celled


def test_swapped_and_renamed_headers_are_noticed(room: Room) -> None:
    expected = known(room, ROWS, "csv", BY_SEX)
    swapped = [row | {"sex": row["side"], "side": row["sex"]} for row in ROWS]
    assert known(room, swapped, "csv", BY_SEX) != expected
    renamed = {("number" if name == "id" else name): kind for name, kind in TYPES.items()}
    rows = [row | {"number": row["id"]} for row in ROWS]
    assert known(room, rows, "csv", BY_SEX, renamed) != expected


def test_a_cell_that_an_engine_reads_differently_is_noticed(room: Room) -> None:
    """0.7 as a 32-bit float is below 0.7, and in another cell; as text both are equal."""
    columns = {"sex": "VARCHAR", "side": "VARCHAR", "score": "FLOAT"}
    written = known(room, _scores("0.7"), "csv", BY_SCORE, columns)
    assert known(room, _scores("0.7"), "parquet", BY_SCORE, columns) != written


def test_persons_with_nearly_equal_numbers_are_distinct(room: Room) -> None:
    """Their numbers are equal as doubles, so the hash of columns does not differ."""
    person = {"kind": "column", "column": "id", "rows_max": 2}
    card = card_of(*COLUMNS, person=person, cells={"column": "sex", "one_per_person": True})
    numbers = [2**62 + 1, 2**62 + 2, 2**53, 2**53 + 1, 10**13 + 1, 10**13 + 2]
    rows = [row | {"id": number} for row, number in zip(ROWS, numbers, strict=False)]
    for kind in ("csv", "parquet"):
        found = {known(room, rows, kind, card)}
        for one, other in pairwise(range(len(numbers))):
            found.add(known(room, exchanged(rows, "sex", one, other), kind, card))
        assert len(found) == len(numbers)


@pytest.mark.thorough
def test_many_columns_and_an_empty_file_have_a_hash(room: Room) -> None:
    wide = {f"c{i:03}": "VARCHAR" for i in range(60)} | {"sex": "VARCHAR"}
    card = card_of(COLUMNS[0], cells={"column": "sex"})
    rows: Rows = [{name: str(i) for i, name in enumerate(wide)} | {"sex": "f"}]
    one_row = known(room, rows, "csv", card, wide)
    assert known(room, rows, "parquet", card, wide) == one_row
    empty = known(room, [], "csv", card, wide)
    assert empty != one_row
    assert known(room, [], "parquet", card, wide) == empty


def test_without_cells_nothing_is_hashed(room: Room) -> None:
    write_csv(room.data / "t.csv", ROWS, list(TYPES))
    assert room.engine.inspect(Source("duckdb", "t.csv"), card_of(*COLUMNS)).celled is None
