"""The engine's tallies for choices equal those of the reference, including ties."""

import datetime
import math
from pathlib import Path
from typing import Any

import pytest

from tests.engines.remote.tables import CARD, STORED, Row, room_in, write_parquet
from tests.queries.cards import choice_shape
from tests.queries.reference import tallied

TURNS = [-10.5, 0.0, 0.1, 7.0, 1000.25]
NEAR = [math.nextafter(turn, way) for turn in TURNS for way in (-math.inf, turn, math.inf)]
INCOMES: list[Any] = [x for x in NEAR if -10.5 <= x <= 1000.25] + [None, 5e-324, 500.0]
AGES = [0, 0, 1, 2, 3, 50, 99, 100, 100, None]
DAYS = [datetime.date(1950, 1, 1), datetime.date(1980, 2, 29), datetime.date(2010, 12, 31), None]
CITIES = ["Bern", "Zürich", "Zürich", None]
ROWS: list[Row] = [
    {
        "age": AGES[i % len(AGES)],
        "income": income,
        "rate": 1e12,
        "city": CITIES[i % 4],
        "member": [True, False, None][i % 3],
        "born": DAYS[i % 4],
    }
    for i, income in enumerate(INCOMES * 4)
]
QUERIES: list[dict[str, Any]] = [
    {"kind": "mode", "column": "city"},
    {"kind": "mode", "column": "member"},
    {"kind": "median", "column": "age"},
    {"kind": "median", "column": "age", "candidates": [1, 2, 99]},
    {"kind": "median", "column": "income", "candidates": TURNS},
    {"kind": "median", "column": "income", "candidates": [0.0]},
    {"kind": "median", "column": "income"},
    {"kind": "median", "column": "income", "candidates": {"edges": TURNS}},
    {"kind": "max", "column": "age", "candidates": {"edges": [1, 2, 99]}},
    {"kind": "min", "column": "born"},
    {"kind": "max", "column": "born", "candidates": ["1950-01-02", "1980-02-29"]},
    {"kind": "price", "column": "income"},
    {"kind": "price", "column": "income", "candidates": [0.1, 7, 1000.25]},
    {"kind": "price", "column": "age", "candidates": {"low": 0, "high": 100, "count": 26}},
]


@pytest.mark.parametrize("where", [None, {"column": "age", "op": ">=", "value": 2}])
def test_the_engine_counts_the_same_as_the_reference(
    tmp_path: Path, where: dict[str, Any] | None
) -> None:
    with room_in(tmp_path) as room:
        write_parquet(room.data / "t.parquet", ROWS, STORED)
        dataset = room.prepared("t.parquet")
        for query in QUERIES:
            shape = choice_shape({**query, "where": where}, CARD)
            expected = tallied(CARD, shape.tally, ROWS)
            assert room.ask(dataset, shape.tally) == expected, query
            assert shape.scores(expected, 3) == shape.scores(room.ask(dataset, shape.tally), 3)
