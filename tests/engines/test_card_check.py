"""The private counts of a card check are equal in every engine and in plain Python."""

import datetime
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from app.engines.card_check import ColumnFigures, Figures, PersonFigures
from tests.engines.files.test_readings import CsvWarehouse
from tests.engines.remote.tables import Row, card_of
from tests.engines.remote.warehouses import (
    DuckDBWarehouse,
    PostgresWarehouse,
    SailServer,
    SparkWarehouse,
    Warehouse,
    registered,
)

LOW, HIGH = datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)
CARD = card_of(
    {"name": "age", "type": "integer", "low": 0, "high": 99},
    {"name": "income", "type": "number", "low": 0, "high": 10.5},
    {"name": "grade", "type": "category", "values": ["1", "2"]},
    {"name": "smoker", "type": "boolean"},
    {"name": "seen", "type": "date", "low": LOW.isoformat(), "high": HIGH.isoformat()},
    {"name": "note", "type": "text", "length_max": 3},
    {
        "name": "double",
        "type": "integer",
        "low": 0,
        "high": 9,
        "derived": {"add": [{"column": "age"}, {"column": "age"}]},
    },
    person={"kind": "column", "column": "who", "rows_max": 2},
)
TYPES = {
    "age": "INTEGER",
    "income": "DOUBLE",
    "grade": "VARCHAR",
    "smoker": "VARCHAR",
    "seen": "DATE",
    "note": "VARCHAR",
    "who": "VARCHAR",
}
ROWS: list[Row] = [
    {
        "age": [5, -1, 120, None][i % 4],
        "income": [1.5, float("inf"), float("-inf"), float("nan"), None, 11.0][i % 6],
        "grade": ["1", "2.0", "3", None, "x"][i % 5],
        "smoker": ["1.0", "no", "maybe", None][i % 4],
        "seen": [LOW, datetime.date(1990, 1, 1), datetime.date(2030, 1, 1), None][i % 4],
        "note": ["abc", "abcd", "  ", None][i % 4],
        "who": [f"p{i % 7}", None][i % 11 == 10],
    }
    for i in range(60)
]


def how_many(name: str, *values: Any) -> int:
    return sum(row[name] in values for row in ROWS)


def plain() -> Figures:
    nan = sum(row["income"] is not None and row["income"] != row["income"] for row in ROWS)
    columns = (
        ColumnFigures(
            "age", "integer", how_many("age", None), 0, *(how_many("age", x) for x in (-1, 120))
        ),
        ColumnFigures(
            "income",
            "number",
            how_many("income", None),
            nan,
            how_many("income", float("-inf")),
            how_many("income", float("inf"), 11.0),
        ),
        ColumnFigures(
            "grade", "category", how_many("grade", None), how_many("grade", "3", "x"), 0, 0
        ),
        ColumnFigures(
            "smoker", "boolean", how_many("smoker", None), how_many("smoker", "maybe"), 0, 0
        ),
        ColumnFigures(
            "seen",
            "date",
            how_many("seen", None),
            0,
            how_many("seen", datetime.date(1990, 1, 1)),
            how_many("seen", datetime.date(2030, 1, 1)),
        ),
        ColumnFigures("note", "text", how_many("note", None, "  "), how_many("note", "abcd"), 0, 0),
    )
    sizes = Counter(row["who"] for row in ROWS if row["who"] is not None)
    beyond = [size for size in sizes.values() if size > 2]
    left_out = sum(size - 2 for size in beyond)
    persons = PersonFigures(
        how_many("who", None), len(sizes), max(sizes.values()), len(beyond), left_out
    )
    return Figures(len(ROWS), columns, persons)


@pytest.fixture(scope="module", params=["csv", "parquet", "postgresql", "sail"])
def warehouse(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Warehouse]:
    folder = tmp_path_factory.mktemp("check") / "rows"
    with ExitStack() as stack:
        made: Warehouse
        match request.param:
            case "postgresql":
                made = PostgresWarehouse(request.getfixturevalue("postgres"))
            case "sail":
                sail = SailServer()
                stack.callback(sail.stop)
                made = SparkWarehouse(sail.url, folder)
            case "csv":
                made = CsvWarehouse(folder)
            case _:
                made = DuckDBWarehouse(folder)
        stack.callback(made.engine.close)
        yield made


def test_every_engine_counts_alike(warehouse: Warehouse) -> None:
    dataset = registered(warehouse, CARD, warehouse.put(ROWS, TYPES))
    engine: Any = warehouse.engine
    assert engine.figures(dataset) == plain()


def test_epochs_are_counted_together(warehouse: Warehouse) -> None:
    first, second = (warehouse.put(rows, TYPES) for rows in (ROWS[:25], ROWS[25:]))
    engine: Any = warehouse.engine
    assert engine.figures(registered(warehouse, CARD, first, second)) == plain()


def test_a_table_without_rows_is_no_error(warehouse: Warehouse) -> None:
    engine: Any = warehouse.engine
    found = engine.figures(registered(warehouse, CARD, warehouse.put([], TYPES)))
    assert found.rows == 0
    assert found.persons == PersonFigures(0, 0, 0, 0, 0)
