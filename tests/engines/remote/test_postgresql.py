"""PostgreSQL tables: which ones are accepted, and values that must not cause errors."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy

from app.data.card import Card, Source
from app.engines.remote.table_rows import table_rows
from app.engines.sql.cleaning import cleaned_rows
from app.engines.sql.dialects import POSTGRESQL, written
from app.engines.table import Table
from app.errors import EngineUnavailable, Invalid
from app.queries.tally import ByEdges, ByValues, CountPresent, CountRows, SumSteps, Tally
from tests.engines.remote.tables import ASKER, card_of
from tests.engines.remote.warehouses import DuckDBWarehouse, PostgresWarehouse, registered
from tests.postgres import PostgresServer

CARD = card_of({"name": "x", "type": "integer", "low": 0, "high": 10})
COUNT = Tally(None, (), (CountRows(),))


@pytest.fixture(scope="module")
def there(postgres: PostgresServer) -> Iterator[PostgresWarehouse]:
    warehouse = PostgresWarehouse(postgres)
    yield warehouse
    warehouse.engine.close()


def made(there: PostgresWarehouse, *statements: str) -> Source:
    """Run statements in which {t} is the table's name."""
    name = f"t_{uuid4().hex}"
    with there.owner() as connection:
        for each in (*statements, "GRANT SELECT ON {t} TO reader"):
            connection.execute(each.format(t=name).encode())
        there.settled(connection)
    return Source("postgresql", name, "clinic")


@pytest.mark.parametrize("high", [1e15, 200.0])
def test_a_number_too_small_to_be_scaled_is_no_error(
    there: PostgresWarehouse, tmp_path: Path, high: float
) -> None:
    card = card_of({"name": "x", "type": "number", "low": -high, "high": high})
    rows = [{"x": x} for x in (5e-324, -5e-324, 1e-310, -1e-310, 0.0, -0.0, 1.0, None)]
    edges = tuple(4.0 * i for i in range(31))
    tallies = [
        Tally(None, (), (CountRows(), CountPresent("x"), SumSteps("x"))),
        Tally(None, (ByEdges("x", edges),), (CountRows(), SumSteps("x"))),
    ]
    results = []
    for warehouse in (DuckDBWarehouse(tmp_path / "here"), there):
        dataset = registered(warehouse, card, warehouse.put(rows, {"x": "DOUBLE"}))
        results.append([warehouse.engine.exact(dataset, tally, ASKER) for tally in tallies])
    assert results[0] == results[1]


def test_a_number_in_two_notations_is_one_person(there: PostgresWarehouse) -> None:
    source = made(
        there,
        "CREATE TABLE {t} (p NUMERIC, x INTEGER)",
        "INSERT INTO {t} VALUES (1, 1), (1.0, 2), (1.00, 3), (2, 4), ('NaN', 5), ('NaN', 6)",
    )
    card = Card.model_validate(
        CARD.model_dump() | {"person": {"kind": "column", "column": "p", "rows_max": 1}}
    )
    assert there.engine.exact(registered(there, card, source), COUNT, ASKER) == ((3,),)


def test_persons_are_compared_by_bytes_under_every_collation() -> None:
    """A collation that equates 'Me' and 'me' needs ICU, which the test server lacks.

    So the test inspects the statement.
    """
    card = Card.model_validate(
        CARD.model_dump() | {"person": {"kind": "column", "column": "p", "rows_max": 3}}
    )
    table = Table(POSTGRESQL, sqlalchemy.table("t"), ("p", "x"), ("VARCHAR", "INTEGER"), ("a", "b"))
    made = written(cleaned_rows(card, [table_rows(card, table)], "seed"), POSTGRESQL)
    assert """nullif(((CAST("a" AS VARCHAR)) COLLATE "C"), '') AS "person\"""" in made.text


def test_booleans_are_read_with_surrounding_spaces_as_in_files(
    there: PostgresWarehouse, tmp_path: Path
) -> None:
    card = card_of({"name": "x", "type": "boolean"})
    rows = [{"x": x} for x in ("true", " true", "NO ", "t\n", "", None)]
    tally = Tally(None, (ByValues("x", (False, True)),), (CountRows(),))
    for warehouse in (DuckDBWarehouse(tmp_path / "here"), there):
        dataset = registered(warehouse, card, warehouse.put(rows, {"x": "VARCHAR"}))
        assert warehouse.engine.exact(dataset, tally, ASKER) == ((1, 2),)


@pytest.mark.parametrize(
    "statements",
    [
        ["GRANT UPDATE (x) ON {t} TO reader"],
        ["GRANT INSERT (x) ON {t} TO reader"],
        ["GRANT TRIGGER ON {t} TO reader"],
        ["CREATE TABLE {t}_c () INHERITS ({t})", "GRANT DELETE ON {t}_c TO reader"],
        ["ALTER TABLE {t} ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON {t} USING (x > 1)"],
        [
            "CREATE FOREIGN DATA WRAPPER w_{t}",
            "CREATE SERVER s_{t} FOREIGN DATA WRAPPER w_{t}",
            "CREATE FOREIGN TABLE {t}_f () INHERITS ({t}) SERVER s_{t}",
        ],
    ],
)
def test_a_table_that_could_change_unnoticed_is_refused(
    there: PostgresWarehouse, statements: list[str]
) -> None:
    source = made(there, "CREATE TABLE {t} (x INTEGER)", *statements)
    with pytest.raises(Invalid):
        there.engine.inspect(source, CARD)


def test_rows_of_inheriting_tables_are_part_of_the_state(there: PostgresWarehouse) -> None:
    source = made(
        there,
        "CREATE TABLE {t} (x INTEGER)",
        "CREATE TABLE {t}_child () INHERITS ({t})",
        "INSERT INTO {t}_child VALUES (1)",
    )
    dataset = registered(there, CARD, source)
    assert there.engine.exact(dataset, COUNT, ASKER) == ((1,),)
    with there.owner() as connection:
        connection.execute(f"INSERT INTO {source.path}_child VALUES (2)".encode())
        there.settled(connection)
    with pytest.raises(EngineUnavailable):
        there.engine.exact(dataset, COUNT, "another")
