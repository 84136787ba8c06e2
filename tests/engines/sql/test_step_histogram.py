"""Counts by intervals of a column's grid steps, compared with a reference; and windows from
them.
"""

import datetime
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from app.queries.filters import resolve
from app.queries.shapes.ranks.window import order_windows
from app.queries.tally import StepHistogram
from tests.engines.remote.tables import CARD, Row, room_in, write_csv, write_parquet
from tests.queries.cards import question

INCOMES: list[Any] = [-99.0, -10.5, 0.0, 0.1, 7.0, 7.0, 1000.25, 5e9, None, math.nan]
ROWS: list[Row] = [
    {
        "age": [3, 3, 17, 100, None, -4][i % 6],
        "income": INCOMES[i % len(INCOMES)],
        "rate": 1e12 + i,
        "city": "Bern",
        "member": i % 2 == 0,
        "born": datetime.date(1980, 2, 29),
    }
    for i in range(60)
]
WHERE = {"column": "member", "op": "==", "value": True}


def steps_of(name: str, row: Row) -> int | None:
    column = CARD.column(name)
    value = row[name]
    if value is None or math.isnan(value):
        return None
    assert column is not None
    value = min(max(value, column.low), column.high)  # type: ignore[union-attr]
    return math.floor(math.ldexp(value, column.grid_exponent))  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("where", [None, WHERE])
@pytest.mark.parametrize("name", ["age", "income", "rate"])
def test_intervals_and_windows_are_those_of_the_rows(
    tmp_path: Path, kind: str, where: dict[str, Any] | None, name: str
) -> None:
    condition = None
    if where is not None:
        filtered = question({"kind": "count", "where": where}).query
        condition = resolve(filtered.where, CARD, "/query/where")  # type: ignore[union-attr]
    column = CARD.column(name)
    low, high = column.steps  # type: ignore[union-attr]
    kept = [row for row in ROWS if where is None or row["member"]]
    present = sorted(s for row in kept if (s := steps_of(name, row)) is not None)
    with room_in(tmp_path) as room:
        (write_csv if kind == "csv" else write_parquet)(room.data / f"t.{kind}", ROWS)
        dataset = room.prepared(f"t.{kind}")
        for shift in (0, 3, 20):
            expected: dict[int, int] = {}
            for step in present:
                if low + 1 <= step:
                    place = (step - low - 1) >> shift
                    expected[place] = expected.get(place, 0) + 1
            histogram = StepHistogram(condition, name, low + 1, shift, ((low + 1, high),))
            assert room.engine.steps(dataset, histogram) == sorted(expected.items())
            parts = ((low, low + 5), (low + 1000, high))
            kept_steps = [s for s in present if any(a <= s <= b for a, b in parts)]
            apart = Counter((step - low) >> shift for step in kept_steps)
            histogram = StepHistogram(condition, name, low, shift, parts)
            assert room.engine.steps(dataset, histogram) == sorted(apart.items())
        (window,) = order_windows(
            lambda request: room.engine.steps(dataset, request),
            condition,
            name,
            (low, high),
            lambda n: ((n // 2 - 4, n // 2 + 4),),
        )
        assert window.count == len(present)
        middle = len(present) // 2
        assert list(window.values) == present[middle - 5 : middle + 4]
