"""One question, one meaning: every engine returns the same integers.

The rows cover missing values, NaN, infinities, two zeros, numbers out of bounds, ties, odd texts,
and few and many rows per person. A plain reference checks the results too.
"""

import datetime
import itertools
import math
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from app.data.card import Card, Dataset
from app.queries.block_tally import (
    Added,
    AtRanks,
    BlockTally,
    Commonest,
    Meets,
    Steps,
    Trimmed,
)
from app.queries.tally import (
    AllOf,
    AnyOf,
    ByEdges,
    ByValues,
    CategoryIndex,
    CentredBucket,
    Compare,
    CountPresent,
    CountRows,
    CountWhere,
    EqualsValue,
    GraphCounts,
    GraphCountsRequest,
    IsMissing,
    KeyCountsRequest,
    Negation,
    OneOf,
    Persons,
    PersonTotal,
    Product,
    Records,
    Split,
    StepHistogram,
    SumSteps,
    Tally,
)
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
DAY = datetime.date
TYPES = {
    "age": "INTEGER",
    "big": "BIGINT",
    "income": "DOUBLE",
    "price": "DECIMAL(20,4)",
    "city": "VARCHAR",
    "member": "BOOLEAN",
    "born": "DATE",
    "note": "VARCHAR",
    "who": "VARCHAR",
}
COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "type": "integer", "low": 0, "high": 100},
    {"name": "big", "type": "integer", "low": -(1 << 53), "high": 1 << 53},
    {"name": "income", "type": "number", "low": -10.5, "high": 1000.25},
    {"name": "price", "type": "number", "low": 0, "high": 1e9},
    {"name": "city", "type": "category", "values": ["Bern", "Zürich", "c0", "a'b\"c"]},
    {"name": "member", "type": "boolean"},
    {"name": "born", "type": "date", "low": "1950-01-01", "high": "2010-12-31"},
    {"name": "note", "type": "text", "length_max": 12},
    {"name": "epoch", "type": "epoch", "high": 4},
    {
        "name": "share",
        "type": "number",
        "low": -5,
        "high": 5,
        "derived": {
            "divide": [
                {"subtract": [{"column": "income"}, {"value": 0.1}]},
                {"add": [{"column": "age"}, {"multiply": [{"column": "age"}, {"value": 0.3}]}]},
            ]
        },
    },
    {
        "name": "decade",
        "type": "integer",
        "low": 0,
        "high": 8,
        "derived": {"divide": [{"column": "age"}, {"value": 10}]},
    },
    {
        "name": "side",
        "type": "category",
        "values": ["west", "east"],
        "derived": {"lookup": {"column": "city", "map": {"Bern": "west", "Zürich": "east"}}},
    },
    {
        "name": "elder",
        "type": "boolean",
        "derived": {
            "case": [
                {
                    "when": [
                        {"column": "age", "op": ">", "value": 17.5},
                        {"column": "member", "op": "==", "value": True},
                    ],
                    "then": {"value": True},
                },
                {"when": {"column": "city", "op": "!=", "value": "Bern"}, "then": {"value": False}},
            ]
        },
    },
    {
        "name": "toll",
        "type": "number",
        "low": 0,
        "high": 10,
        "derived": {
            "multiply": [
                {"lookup": {"column": "member", "map": {"true": 0.5, "false": 2}}},
                {"lookup": {"column": "age", "map": {"7": 1.1, "17": 3, "100": 0}}},
            ]
        },
    },
]
BY_ROW = card_of(*COLUMNS)
BY_PERSON = card_of(*COLUMNS, person={"kind": "column", "column": "who", "rows_max": 3})
BY_CELL = card_of(
    *COLUMNS,
    person={"kind": "column", "column": "who", "rows_max": 3},
    cells={"column": "income", "edges": [-10.5, 0.0, 1.5, 1000.25], "one_per_person": True},
)
VALUES: dict[str, list[Any]] = {
    "age": [None, -5, 0, 7, 17, 99, 100, 2000],
    "big": [None, 1 << 62, -(1 << 62), 5, 0],
    "income": [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, 999.999, 1e300, 5e-324, 0.1],
    "price": [None, Decimal("12.3456"), Decimal("9999999999999999.9999"), Decimal(0)],
    "city": [None, "", "Bern", "Zürich", "other", "a'b\"c", "bern"],
    "member": [None, True, False],
    "born": [None, DAY(1900, 1, 1), DAY(1999, 12, 31), DAY(2010, 12, 31), DAY(2050, 1, 1)],
    "note": [
        None, "", " ", "flu", " flu ", "flu\t\n flu", "é", "e\u0301", "日本語", "😀", "y" * 50,
        "\x85a\x7f", "a\u2028b", "\u3000", "B", "a",
    ],
    "who": [None, "", *(f"p{number}" for number in range(40))],
}  # fmt: skip


def made_rows(count: int, start: int) -> list[Row]:
    """Every value of every column, beside other values of the others; some rows appear twice."""
    turns = {name: itertools.cycle(values) for name, values in VALUES.items()}
    for name, turn in turns.items():
        for _ in range(start * len(name)):
            next(turn)
    rows = [{name: next(turn) for name, turn in turns.items()} for _ in range(count)]
    return [*rows, *rows[: count // 5]]


FIRST, LATER = made_rows(150, 1), made_rows(60, 3)
AS_DECLARED = [
    {**row, "price": row["price"] and float(row["price"]), "epoch": epoch}
    for epoch, rows in enumerate((FIRST, LATER), 1)
    for row in rows
]
LOW = -180355072  # of `income`, in steps
EVEN = tuple(-10.5 + step * 10.1075 for step in range(101))
UNEVEN = tuple(sorted({-10.5 + (step * 1.07) ** 1.3 for step in range(100)}))
DAYS = tuple(DAY(1950, 1, 1) + datetime.timedelta(days=200 * step) for step in range(100))
TALLIES = {
    "one number of each": Tally(
        None,
        (),
        (
            *(
                CountRows(),
                CountPresent("income"),
                SumSteps("income"),
                SumSteps("age"),
                SumSteps("big"),
            ),
            *(SumSteps("price"), CountWhere(Compare("age", ">", 17.5)), SumSteps("epoch")),
            *(
                CountPresent("share"),
                SumSteps("share"),
                SumSteps("decade"),
                CountPresent("toll"),
                SumSteps("toll"),
            ),
        ),
    ),
    "groups": Tally(
        Compare("age", "<=", 99),
        (
            ByValues("city", ("Bern", "Zürich", "a'b\"c"), missing=True),
            ByValues("member", (False, True)),
        ),
        (CountRows(), SumSteps("income")),
    ),
    "derived groups": Tally(
        Compare("share", ">", 0.25),
        (ByValues("side", ("west", "east"), missing=True), ByValues("elder", (False, True))),
        (CountRows(), SumSteps("share")),
    ),
    "few edges": Tally(None, (ByEdges("income", (-10.5, 0.0, 1.5, 1000.25)),), (CountRows(),)),
    "even edges": Tally(None, (ByEdges("income", EVEN),), (CountRows(),)),
    "uneven edges": Tally(None, (ByEdges("income", UNEVEN),), (CountRows(),)),
    "days": Tally(None, (ByEdges("born", DAYS),), (CountRows(),)),
    "a filter of everything": Tally(
        AllOf(
            (
                Negation(Compare("income", ">", 1.0)),
                AnyOf(
                    (
                        IsMissing("age"),
                        OneOf("age", (17, 7.0, 0.5)),
                        Compare("born", ">=", DAY(1999, 12, 31)),
                    )
                ),
                Compare("city", "!=", "Bern"),
                Compare("epoch", ">=", 1),
            )
        ),
        (),
        (CountRows(),),
    ),
    "a long list": Tally(OneOf("age", tuple(range(100))), (), (CountRows(),)),
    "texts": Tally(OneOf("note", ("flu", "é")), (), (CountRows(),)),
    "a split": Tally(
        None,
        (),
        (CountRows(),),
        Split((Compare("age", ">", 10), Compare("member", "==", True)), (0, 1, 2, 3)),
    ),
    "persons": Tally(Compare("age", ">", 0), (), (Persons(),)),
    "persons who have a value": Tally(None, (), (Persons("income"),)),
    "persons of groups": Tally(
        None,
        (ByValues("city", ("Bern", "Zürich")), ByEdges("age", (0.0, 8.0, 100.0))),
        (Persons(),),
    ),
    "persons of one group each": Tally(
        Negation(IsMissing("born")),
        (ByEdges("age", (0.0, 8.0, 50.0, 100.0)),),
        (Persons(),),
        groups_max=1,
    ),
    "persons of two groups each": Tally(
        None, (ByValues("member", (False, True), missing=True),), (Persons(),), groups_max=2
    ),
    "a total of each person": Tally(None, (), (PersonTotal("big", -(1 << 55), 1 << 54),)),
    "totals of each person's groups": Tally(
        None,
        (ByValues("city", ("Bern", "Zürich", "a'b\"c")),),
        (PersonTotal("income", -5, 1 << 34), Persons("income")),
        groups_max=1,
    ),
    "products": Tally(
        None,
        (),
        (
            Product((CentredBucket("age", 0, 3, 5), CentredBucket("income", LOW, 1 << 20, 7))),
            Product((EqualsValue("city", "Bern"), CentredBucket("age", 0, 1, 0))),
        ),
    ),
}
WHOLE = Tally(None, (), (CountRows(),))
BLOCKS = {
    "sums of blocks": BlockTally(None, 4, (CentredBucket("age", 0, 3, 0),), Added(((0,), (0, 0)))),
    "large sums of blocks": BlockTally(None, 3, (Steps("big"),), Added(((0,),))),
    "counts of blocks": BlockTally(Compare("age", ">", 5), 7, (), Added()),
    "shares of blocks": BlockTally(
        Negation(IsMissing("born")),
        4,
        (Meets(Compare("born", "<=", DAY(1999, 12, 31))),),
        Added(((0,),)),
    ),
    "two sums of blocks": BlockTally(
        None, 4, (Steps("income"), Steps("price")), Added(((0,), (1,)))
    ),
    "moments of blocks": BlockTally(
        Negation(IsMissing("city")),
        4,
        (
            CentredBucket("age", 0, 1, 50),
            EqualsValue("city", "Bern"),
            CentredBucket("income", LOW, 1 << 20, 7),
        ),
        Added(((0,), (1,), (2,), (0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))),
    ),
    "ranks of blocks": BlockTally(None, 4, (Steps("age"),), AtRanks(((1, 2), (9, 10)))),
    "trimmed blocks": BlockTally(None, 4, (Steps("income"),), Trimmed((1, 7))),
    "commonest of blocks": BlockTally(None, 9, (CategoryIndex("city"),), Commonest()),
    "commoner of blocks": BlockTally(
        Compare("age", "<", 99), 9, (CategoryIndex("member"),), Commonest()
    ),
}


def _tally(tally: Tally, at: Warehouse, of: Dataset) -> Any:
    return at.engine.exact(of, tally, ASKER)


def _blocks(wanted: BlockTally, at: Warehouse, of: Dataset) -> Any:
    persons = of.card.person.rows_max > 1
    return sorted(at.engine.blocks(of, replace(wanted, persons=persons)))


ASKED: dict[str, Callable[[Warehouse, Dataset], Any]] = {
    **{name: partial(_tally, tally) for name, tally in TALLIES.items()},
    "values at ranks": lambda at, of: at.engine.steps(
        of,
        StepHistogram(Compare("age", ">", 1), "income", LOW, 20, ((LOW, -5), (0, 1 << 34))),
    ),
    **{name: partial(_blocks, wanted) for name, wanted in BLOCKS.items()},
    "private keys": lambda at, of: sorted(
        itertools.chain(
            *at.engine.keys(
                of, KeyCountsRequest(WHOLE, "note", persons=of.card.person.rows_max > 1)
            )
        )
    ),
    "private keys of groups": lambda at, of: sorted(
        itertools.chain(
            *at.engine.keys(
                of,
                KeyCountsRequest(
                    Tally(None, (ByValues("member", (False, True)),), (CountRows(),)), "note"
                ),
            )
        )
    ),
    "rows": lambda at, of: sorted(
        tuple(map(int, line))
        for batch in at.engine.records(
            of,
            Records(
                Compare("age", ">", 5),
                (
                    CentredBucket("income", LOW, 1 << 20, 0),
                    CategoryIndex("city"),
                    CategoryIndex("member"),
                ),
            ),
        )
        for line in batch
    ),
    "epochs": lambda at, of: at.engine.epochs(of, Compare("age", ">", 1)),
}


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
