"""How engines read texts as booleans and categories, `1.0` included: only the card decides."""

import csv
from collections.abc import Iterator
from contextlib import ExitStack
from uuid import uuid4

import pytest
from typing_extensions import override

from app.data.card import Card, Source
from app.queries.tally import ByValues, CountPresent, CountRows, Tally
from tests.engines.remote.tables import ASKER, Row, card_of
from tests.engines.remote.warehouses import (
    DuckDBWarehouse,
    PostgresWarehouse,
    SailServer,
    SparkWarehouse,
    Warehouse,
    registered,
)

WHOLE = ("1", "2", "-3", "007")
MIXED = ("1", "2", "other")
CARD = card_of(
    {"name": "smoker", "type": "boolean"},
    {"name": "grade", "type": "category", "values": list(WHOLE)},
    {"name": "kind", "type": "category", "values": list(MIXED)},
)
TYPES = {"smoker": "VARCHAR", "grade": "VARCHAR", "kind": "VARCHAR"}
BOOLEANS = ["1.0", "0.0", "1", "0", "true", "no", "2.0", "1.00", "0.5", "1.0x", "-1.0", None]
CATEGORIES = [
    *("1", "1.0", "2", "2.0", "-3", "-3.0", "007", "007.0", "7.0", "1.5", "1.00", "1.", ".0"),
    *("+1.0", " 1.0", "1.0.0", "other", "other.0", "10", None),
]
ROWS: list[Row] = [
    *({"smoker": said, "grade": None, "kind": None} for said in BOOLEANS),
    *({"smoker": None, "grade": said, "kind": said} for said in CATEGORIES),
]


class CsvWarehouse(DuckDBWarehouse):
    @override
    def put(self, rows: list[Row], types: dict[str, str]) -> Source:
        name = f"{uuid4().hex}.csv"
        with (self.folder / "data" / name).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(types)
            writer.writerows([row[column] or "" for column in types] for row in rows)
        return Source("duckdb", name)


@pytest.fixture(scope="module", params=["csv", "parquet", "postgresql", "sail"])
def warehouse(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Warehouse]:
    folder = tmp_path_factory.mktemp("readings") / "rows"
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


def plain_truth(said: str | None) -> bool | None:
    yes, no = {"1", "true", "1.0"}, {"0", "no", "0.0"}
    return True if said in yes else False if said in no else None


def plain_category(values: tuple[str, ...], said: str | None) -> str | None:
    if said in values:
        return said
    whole = all(value.lstrip("+-").isdecimal() for value in values)
    if whole and said is not None and said.endswith(".0") and said[:-2] in values:
        return said[:-2]
    return None


def expected(card: Card) -> dict[str, tuple[int, ...]]:
    smokers = [plain_truth(row["smoker"]) for row in ROWS]
    counts = {"smoker": tuple(smokers.count(value) for value in (False, True))}
    for name, values in (("grade", WHOLE), ("kind", MIXED)):
        read = [plain_category(values, row[name]) for row in ROWS]
        counts[name] = tuple(read.count(value) for value in values)
    return counts


def test_every_engine_reads_texts_alike(warehouse: Warehouse) -> None:
    dataset = registered(warehouse, CARD, warehouse.put(ROWS, TYPES))
    groups: dict[str, tuple[bool, bool] | tuple[str, ...]] = {
        "smoker": (False, True),
        "grade": WHOLE,
        "kind": MIXED,
    }
    counts_by_column = {}
    for name, values in groups.items():
        (counts,) = warehouse.engine.exact(
            dataset, Tally(None, (ByValues(name, values),), (CountRows(),)), ASKER
        )
        counts_by_column[name] = counts
    assert counts_by_column == expected(CARD)
    (values_there,) = warehouse.engine.exact(
        dataset, Tally(None, (), (CountPresent("grade"),)), ASKER
    )
    assert values_there == (sum(counts_by_column["grade"]),)


def test_only_the_card_decides_whether_fractions_are_read() -> None:
    whole, mixed = CARD.columns[1], CARD.columns[2]
    assert whole.type == mixed.type == "category"
    assert len(whole.texts()) == 2 * len(WHOLE)
    assert mixed.texts() == MIXED
