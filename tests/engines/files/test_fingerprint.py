import datetime
from typing import Any

import pytest

from app.data.card import Card, Source
from tests.engines.remote.tables import Room, write_csv, write_parquet

CARD = Card.model_validate(
    {
        "person": {"kind": "row"},
        "neighbours": "add_remove",
        "columns": [{"name": "n", "type": "integer", "low": 0, "high": 10}],
    }
)
ROWS: list[dict[str, Any]] = [
    {"n": 1, "x": 0.1, "t": "a", "b": True, "d": datetime.date(2020, 1, 2)},
    {"n": 2, "x": 1e22, "t": None, "b": False, "d": None},
    {"n": 2, "x": -0.0, "t": 'ü,\n"', "b": None, "d": datetime.date(1999, 1, 1)},
    {"n": None, "x": None, "t": "a", "b": True, "d": datetime.date(2020, 1, 2)},
]
TYPES = {"n": "INTEGER", "x": "DOUBLE", "t": "VARCHAR", "b": "BOOLEAN", "d": "DATE"}


@pytest.fixture
def content(room: Room) -> Any:
    def of(rows: list[dict[str, Any]], kind: str, types: dict[str, str] = TYPES) -> Any:
        path = room.data / f"t.{kind}"
        if kind == "csv":
            write_csv(path, rows, list(types))
        else:
            write_parquet(path, rows, types)
        return room.engine.inspect(Source("duckdb", path.name), CARD).content

    return of


def test_the_format_does_not_matter(content: Any) -> None:
    assert content(ROWS, "csv") == content(ROWS, "parquet")


def test_the_order_of_rows_and_columns_does_not_matter(content: Any) -> None:
    columns = dict(reversed(TYPES.items()))
    assert content(ROWS, "csv") == content(ROWS[::-1], "csv", columns)
    assert content(ROWS, "parquet") == content(ROWS[::-1], "parquet", columns)


def test_the_names_of_columns_do_not_matter(content: Any) -> None:
    renamed = [{("other" if k == "x" else k): v for k, v in row.items()} for row in ROWS]
    types = {("other" if k == "x" else k): v for k, v in TYPES.items()}
    assert content(ROWS, "csv") == content(renamed, "csv", types)


@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE", "DECIMAL(9,3)", "BIGINT", "VARCHAR"])
def test_a_number_matches_in_every_notation(content: Any, kind: str) -> None:
    expected = content([{"n": 1, "x": "1"}, {"n": 2, "x": "-20"}], "csv", {"n": "", "x": ""})
    rows = [{"n": 1, "x": "1.0"}, {"n": 2, "x": "-20.00"}]
    assert content(rows, "csv", {"n": "", "x": ""}) == expected
    assert content(rows, "parquet", {"n": "BIGINT", "x": kind}) == expected


def test_a_day_matches_a_date_and_a_timestamp(content: Any) -> None:
    rows = [{"n": 1, "d": "2020-01-02"}]
    expected = content(rows, "csv", {"n": "", "d": ""})
    for kind in ("DATE", "TIMESTAMP", "TIMESTAMP_S", "VARCHAR", "TIMESTAMPTZ"):
        assert content(rows, "parquet", {"n": "INTEGER", "d": kind}) == expected


def test_a_changed_added_or_dropped_cell_row_or_column_is_noticed(content: Any) -> None:
    original = content(ROWS, "csv")
    changed = [dict(ROWS[0], t="b"), *ROWS[1:]]
    fewer = {name: kind for name, kind in TYPES.items() if name != "b"}
    seen = {
        original,
        content(changed, "csv"),
        content(ROWS[1:], "csv"),
        content([*ROWS, ROWS[0]], "csv"),
        content([*ROWS, ROWS[0], ROWS[0]], "csv"),
        content(ROWS, "csv", fewer),
    }
    assert len(seen) == 6


def test_values_moved_to_other_rows_are_not_noticed(content: Any) -> None:
    paired = [dict(ROWS[0], t=None), dict(ROWS[1], t="a"), *ROWS[2:]]
    assert content(paired, "csv") == content(ROWS, "csv")


def test_the_whole_file_is_read(content: Any) -> None:
    types = {"n": "BIGINT"}
    rows = [{"n": i % 10} for i in range(50_000)]
    original = content(rows, "csv", types)
    assert content([*rows[:-1], {"n": 5}], "csv", types) != original
