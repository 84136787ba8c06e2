"""Rows as integers: compared with plain Python, in batches, repeatedly, and with failures."""

import traceback
from typing import Any

import duckdb
import numpy as np
import pytest

from app.engines import records
from app.engines.files.prepare import version_path
from app.engines.sql.dialects import Statement
from app.errors import EngineFailed
from app.queries.shapes.features import feature_terms, place
from app.queries.shapes.learning import gradient_shape
from app.queries.tally import (
    AllOf,
    CategoryIndex,
    CentredBucket,
    Compare,
    Condition,
    IsMissing,
    Negation,
    OneOf,
    Records,
)
from tests.engines.endless import X_CARD, never_end, no_time
from tests.engines.reference import fitted
from tests.engines.remote.tables import (
    CARD,
    Room,
    Row,
    card_of,
    write_csv,
    write_parquet,
)
from tests.queries.regression.regressions import recorded

PLACES = [
    CentredBucket("age", 0, 1, 50),
    CentredBucket("income", CARD.columns[1].steps[0], 1 << 20, 7),  # type: ignore[union-attr]
    CentredBucket("rate", CARD.columns[2].steps[0], 1 << 19, 16_000),  # type: ignore[union-attr]
]
WANTED: tuple[CentredBucket | CategoryIndex, ...] = (
    *PLACES,
    CategoryIndex("city"),
    CategoryIndex("member"),
)
WHERE: dict[str, Condition | None] = {
    "all": None,
    "some": Compare("age", ">=", 30),
    "those with a city": OneOf("city", ("Bern", "c0")),
    "of another column": AllOf((Negation(IsMissing("born")), Compare("income", "<", 500.0))),
    "nobody": Compare("age", "<", 0),
}


def rows(count: int) -> list[Row]:
    """Rows with missing, out-of-range and unknown values."""
    cities = ["Bern", "Zürich", "c0", "a'b\"c", "nowhere", None]
    return [
        {
            "age": None if i % 13 == 0 else i % 120 - 5,
            "income": None if i % 17 == 0 else (i * 37 % 2003) / 1.7 - 20,
            "rate": None if i % 23 == 0 else 1e10 + i * 1.37e12,
            "city": cities[i % 6],
            "member": None if i % 19 == 0 else i % 3 == 0,
            "born": None if i % 7 == 0 else f"19{60 + i % 40}-05-17",
        }
        for i in range(count)
    ]


def expected(request: Records, table: list[Row]) -> list[tuple[int, ...]]:
    def fit(row: Row) -> Row:
        made = {c.name: fitted(c, row[c.name]) for c in CARD.columns if c.name != "born"}
        return made | {"born": row["born"]}

    return sorted(map(tuple, recorded(CARD, request, list(map(fit, table))).tolist()))


def read(room: Room, dataset: Any, request: Records) -> list[tuple[int, ...]]:
    lines: list[tuple[int, ...]] = []
    for batch in room.engine.records(dataset, request):
        assert batch.dtype == np.int64
        assert batch.shape[1] == len(request.columns)
        assert len(batch) <= records.BATCH_ROWS  # empty ones too: their time must not show
        lines += map(tuple, batch.tolist())
    return sorted(lines)


@pytest.mark.parametrize("where", WHERE)
def test_rows_are_the_integers_defined_by_the_card(room: Room, where: str) -> None:
    table = rows(700)
    write_parquet(room.data / "t.parquet", table)
    dataset = room.prepared("t.parquet")
    wanted = Records(WHERE[where], WANTED)
    found = read(room, dataset, wanted)
    assert found == expected(wanted, table)
    assert (len(found) == 0) == (where == "nobody")


@pytest.mark.parametrize("kept", [0, 10**6])
def test_batches_are_bounded_and_every_pass_returns_all_rows(
    room: Room, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(records, "BATCH_ROWS", 64)
    monkeypatch.setattr(records, "NUMBERS_KEPT_MAX", kept)
    table = rows(1000)
    write_parquet(room.data / "t.parquet", table)
    dataset = room.prepared("t.parquet")
    request = Records(None, WANTED)
    run = room.engine.records(dataset, request)
    for _ in range(3):
        batches = list(run)
        assert len(batches) == 16
        found = sorted(tuple(line) for batch in batches for line in batch.tolist())
        assert found == expected(request, table)


def test_few_rows_are_read_once_and_many_on_every_pass(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_parquet(room.data / "t.parquet", rows(100))
    dataset = room.prepared("t.parquet")
    few = room.engine.records(dataset, Records(None, WANTED))
    monkeypatch.setattr(records, "NUMBERS_KEPT_MAX", 100)
    first = list(few)
    monkeypatch.setattr(records, "NUMBERS_KEPT_MAX", 10**6)
    again, then = list(few), list(few)
    assert all(a is not b for a, b in zip(first, again, strict=True))
    assert all(a is b for a, b in zip(again, then, strict=True))


def test_an_unfinished_pass_caches_nothing(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "BATCH_ROWS", 10)
    table = rows(100)
    write_parquet(room.data / "t.parquet", table)
    run = room.engine.records(room.prepared("t.parquet"), Records(None, WANTED))
    next(iter(run))
    assert sum(len(batch) for batch in run) == len(expected(Records(None, WANTED), table))


def test_an_empty_table_has_no_records(room: Room) -> None:
    write_parquet(room.data / "t.parquet", [])
    assert read(room, room.prepared("t.parquet"), Records(None, WANTED)) == []


def test_the_records_of_a_regression_are_within_their_bounds(room: Room) -> None:
    """Every number is as far from the middle as its term says, and no further."""
    write_parquet(room.data / "t.parquet", rows(500))
    terms = feature_terms(("age", "rate", "city", "member"), CARD, "", intercept=True)
    outcome = place(CARD.columns[1])  # type: ignore[arg-type]
    shape = gradient_shape(terms, outcome, None, CARD, model="squares")
    (batch,) = room.engine.records(room.prepared("t.parquet"), shape.records)
    for term in (*shape.inputs, shape.outcome):
        if term.column is not None and term.code is None:
            values = batch[:, term.column] * term.slope
            assert values.min() >= -1.0
            assert values.max() <= 1.0
            assert values.max() > 0.3


# Failures


def test_no_error_message_holds_a_cell(room: Room) -> None:
    card = card_of({"name": "x", "type": "integer", "low": 0, "high": 9})
    write_csv(room.data / "t.csv", [{"x": 1}])
    dataset = room.prepared("t.csv", card)
    path = version_path(room.home, dataset)
    path.unlink()
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE rows AS SELECT 'SECRET-4711' AS c0")
        with pytest.raises(duckdb.Error, match="SECRET-4711"):
            connection.execute("SELECT CAST(c0 AS BIGINT) FROM rows")
    with pytest.raises(EngineFailed, match=r"^The question could not be answered\.$") as failed:
        list(room.engine.records(dataset, Records(None, (CategoryIndex("x"),))))
    error = failed.value
    shown = "".join(traceback.format_exception(error)) + repr(error.members)
    assert "SECRET" not in shown
    assert error.__cause__ is None
    assert error.__context__ is None


@pytest.mark.parametrize("damage", ["gone", "garbage", "another table"])
def test_a_damaged_version_fails_with_the_same_message(room: Room, damage: str) -> None:
    write_parquet(room.data / "t.parquet", rows(5))
    dataset = room.prepared("t.parquet")
    path = version_path(room.home, dataset)
    path.unlink()
    if damage == "garbage":
        path.write_bytes(b"SECRET" * 5000)
    elif damage == "another table":
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE other AS SELECT 1 AS c0")
    with pytest.raises(EngineFailed, match=r"^The question could not be answered\.$") as failed:
        list(room.engine.records(dataset, Records(None, WANTED)))
    assert failed.value.__context__ is None


def test_an_overdue_batch_is_interrupted(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    write_csv(room.data / "t.csv", [{"x": number} for number in range(10)])
    dataset = room.prepared("t.csv", X_CARD)
    placed = (CentredBucket("x", 0, 1, 5),)
    assert sum(map(len, room.engine.records(dataset, Records(None, placed)))) == 10
    never_end(room, dataset, "700.0 + range % 7", "0", rows=10**9)
    # Counting them would not end either, and the test is about interrupting a batch.
    monkeypatch.setattr(records, "_COUNT", Statement("SELECT CAST(10 AS BIGINT) AS n", (), {}))
    none_of_them = AllOf((Compare("x", ">", 701.3), Compare("x", "<", 701.7)))  # selects nothing
    with (
        no_time(room),
        pytest.raises(EngineFailed, match=r"^The question could not be answered\.$"),
    ):
        list(room.engine.records(dataset, Records(none_of_them, placed)))
