"""Smooth sensitivity reads the same ranks, sums and missing values from the engine as by
sorting.
"""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from app.actions.asking.engine_data import EngineData
from app.mechanisms.smooth_sensitivity.rank_statistics import SmoothRelease, centre_of
from app.planning.plan import make_plan
from tests.engines.remote.tables import ASKER, STORED, Row, card_with, room_in, write_parquet
from tests.mechanisms.learning.rows_data import RowsData
from tests.queries.cards import question

CARD = card_with(neighbours="replace_one", rows=90)
INCOMES: list[Any] = [-10.5, 0.0, 0.1, 7.0, 7.0, 7.0, 1000.25, None, 500.0, 5e-324]
AGES = [0, 0, 1, 50, 50, 50, 99, 100, None]
ROWS: list[Row] = [
    {
        "age": AGES[i % len(AGES)],
        "income": INCOMES[i % len(INCOMES)],
        "rate": 1e12 + i * 0.37,
        "city": "Bern",
        "member": i % 2 == 0,
        "born": None,
    }
    for i in range(90)
]
TRIMMED: dict[str, Any] = {"kind": "trimmed_mean", "trim": 0.1}
QUERIES: list[dict[str, Any]] = [
    {"kind": "median"},
    {"kind": "quantile", "q": 0.9, "missing": 50},
    {"kind": "iqr"},
    TRIMMED,
    {"kind": "trimmed_mean", "trim": 0.45},
    {"kind": "trimmed_mean", "trim": 0.000000001},
]


@pytest.mark.parametrize("column", ["age", "income", "rate"])
def test_the_engine_reads_the_same_as_the_reference(tmp_path: Path, column: str) -> None:
    low = CARD.column(column).low  # type: ignore[union-attr]
    with room_in(tmp_path) as room:
        write_parquet(room.data / "t.parquet", ROWS, STORED)
        dataset = room.prepared("t.parquet", CARD)
        for query in QUERIES:
            missing = max(query["missing"], low) if "missing" in query else None
            asked = {**query, "column": column, "missing": missing}
            mechanism = {"kind": "smooth_sensitivity"}
            release = make_plan(question(asked, mechanism=mechanism), CARD).release
            assert isinstance(release, SmoothRelease)
            expected = release.read(RowsData(CARD, ROWS))
            with EngineData(room.engine, dataset, ASKER) as data:
                assert release.read(data) == expected, query


@pytest.mark.parametrize("column", ["age", "income"])
def test_a_trimmed_mean_is_that_of_the_sorted_values(tmp_path: Path, column: str) -> None:
    declared: Any = CARD.column(column)
    grid = Fraction(2) ** declared.grid_exponent
    for missing in (None, 7, 30):
        counted = declared.low if missing is None else missing
        values = [counted if row[column] is None else row[column] for row in ROWS]
        steps = sorted(math.floor(Fraction(value) * grid) for value in values)
        kept = steps[9:81]
        asked = {**TRIMMED, "column": column, "missing": missing}
        release = make_plan(question(asked), CARD).release
        assert isinstance(release, SmoothRelease)
        found = centre_of(release.shape, release.read(RowsData(CARD, ROWS)))
        assert found == Fraction(sum(kept), len(kept))
