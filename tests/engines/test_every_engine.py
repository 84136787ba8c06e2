"""One question, one meaning: every engine returns the same integers.

The rows cover missing values, NaN, infinities, two zeros, numbers out of bounds, ties, odd texts,
and few and many rows per person. A plain reference checks the results too.
"""

import datetime
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from app.data.card import Card
from app.queries.tally import GraphCounts, GraphCountsRequest
from tests.engines.every_statistic import ASKED, BLOCKS, TALLIES
from tests.engines.odd_rows import AS_DECLARED, BY_CELL, BY_PERSON, BY_ROW, FIRST, LATER, TYPES
from tests.engines.reference import reference
from tests.engines.remote.spark_server import SparkServer, spark_home
from tests.engines.remote.tables import ASKER, Row, card_of
from tests.engines.remote.warehouses import (
    SEED,
    DuckDBWarehouse,
    PostgresWarehouse,
    SailServer,
    SparkWarehouse,
    Warehouse,
    registered,
)
from tests.engines.sql.block_reference import block_reference, by_readings
from tests.postgres import PostgresServer

ENGINES = ["postgresql", "partitions", "sail", "spark"]
# Spark takes minutes, so it runs persons only: these include all row questions, with bounds.
CASES = [
    *(pytest.param(engine, BY_PERSON, id=f"{engine}-persons") for engine in ENGINES),
    *(pytest.param(engine, BY_CELL, id=f"{engine}-one cell") for engine in ("postgresql", "sail")),
    *(pytest.param(engine, BY_ROW, id=f"{engine}-rows") for engine in ENGINES if engine != "spark"),
]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> DuckDBWarehouse:
    return DuckDBWarehouse(tmp_path_factory.mktemp("duckdb") / "here")


@pytest.fixture(scope="module")
def sail_url() -> Iterator[str]:
    server = SailServer()
    yield server.url
    server.stop()


@pytest.fixture(scope="module")
def spark_url(lake: Path) -> Iterator[str]:
    home = spark_home()
    if isinstance(home, str):
        pytest.skip(home)
    server = SparkServer.start(home, lake)
    yield server.url
    server.stop()


@pytest.fixture(scope="module", params=ENGINES)
def there(
    request: pytest.FixtureRequest, postgres: PostgresServer, lake: Path
) -> Iterator[Warehouse]:
    match request.param:
        case "postgresql" | "partitions":
            parted = request.param == "partitions"
            warehouse = PostgresWarehouse(postgres, request.param, partitioned=parted)
            yield warehouse
            warehouse.engine.close()
        case "sail" | "spark":
            url = request.getfixturevalue(f"{request.param}_url")
            folder = lake / f"{request.param}-{uuid4().hex}"
            distributed = SparkWarehouse(url, folder, request.param)
            yield distributed
            distributed.engine.close()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("lake")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def everything(at: Warehouse, card: Card) -> dict[str, Any]:
    sources = [at.put(rows, TYPES) for rows in (FIRST, LATER)]
    dataset = registered(at, card, *sources)
    contents = [at.engine.inspect(source, card).content for source in sources]
    return {name: ask(at, dataset) for name, ask in ASKED.items()} | {"contents": contents}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("there", "card"), CASES, indirect=["there"])
def test_every_engine_returns_the_same_for_the_same_rows(
    here: DuckDBWarehouse, there: Warehouse, card: Card
) -> None:
    expected, results = everything(here, card), everything(there, card)
    assert {name: value for name, value in results.items() if value != expected[name]} == {}
    for name, tally in TALLIES.items():
        # The reference supports no cleaned texts and only persons with one row, who are in one
        # group.
        if card is BY_ROW and name != "texts":
            assert results[name] == reference(card, AS_DECLARED, tally), name
    for name, block_tally in BLOCKS.items():
        if card is BY_ROW:
            placing = by_readings(block_tally.blocks, SEED)
            assert results[name] == block_reference(card, AS_DECLARED, block_tally, placing), name


@pytest.mark.timeout(600)
def test_every_engine_counts_the_same_triangles(here: DuckDBWarehouse, there: Warehouse) -> None:
    card = card_of(
        {"name": "a", "type": "integer", "low": 0, "high": 9},
        {"name": "b", "type": "integer", "low": 0, "high": 9},
        person={"kind": "edge", "ends": ["a", "b"]},
    )
    pairs = [(0, 1), (1, 0), (1, 2), (2, 0), (2, 3), (3, 0), (3, 3), (4, 20), (None, 1), (5, 6)]
    rows = [{"a": one, "b": other} for one, other in pairs]
    types = {"a": "BIGINT", "b": "BIGINT"}
    for at in (here, there):
        dataset = registered(at, card, at.put(rows, types))
        wanted = GraphCountsRequest(None, ("a", "b"))
        assert at.engine.graph(dataset, wanted, ASKER) == GraphCounts(2, 2)


@pytest.mark.timeout(600)
def test_whole_rows_are_recognized_in_every_engine(here: DuckDBWarehouse, there: Warehouse) -> None:
    """Names of one book may share cells across engines; values moved to other rows are noticed."""
    card = card_of(
        {"name": "sex", "type": "category", "values": ["f", "m"]},
        {"name": "score", "type": "number", "low": -10, "high": 10},
        person={"kind": "column", "column": "id", "rows_max": 2},
        cells={"column": "sex", "one_per_person": True},
    )
    types = {"id": "BIGINT", "sex": "VARCHAR", "score": "DOUBLE", "seen": "DATE", "new": "BOOLEAN"}
    scores = [0.1 + 0.2, 1 / 3, -1e-5, 7.0, None, 123456789.125]
    rows: list[Row] = [
        {
            "id": 2**62 + i,
            "sex": "fm"[i % 2],
            "score": score,
            "seen": datetime.date(2020, 1, 1 + i),
            "new": [True, False, None][i % 3],
        }
        for i, score in enumerate(scores)
    ]
    moved: list[Row] = [row | {"sex": "mf"[i % 2]} for i, row in enumerate(rows)]
    known = [at.engine.inspect(at.put(rows, types), card) for at in (here, there)]
    assert known[0].celled == known[1].celled
    other = there.engine.inspect(there.put(moved, types), card)
    assert other.content == known[1].content
    assert other.celled != known[1].celled
