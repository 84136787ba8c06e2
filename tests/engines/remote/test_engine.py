"""Engines over a network: their errors, their time limits, and their refusals."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.data.card import Dataset, Source
from app.engines.remote import postgresql
from app.engines.remote.connections import DataConnection, Unusable, read_connections
from app.engines.sql.dialects import Statement
from app.engines.sql_engine import EngineSession
from app.errors import EngineFailed, EngineUnavailable, Invalid, SourceChanged
from app.queries.tally import CountRows, Tally
from tests.engines.clock import Clock
from tests.engines.remote.tables import ASKER, Row, card_of
from tests.engines.remote.warehouses import (
    READER,
    PostgresWarehouse,
    SailServer,
    SparkWarehouse,
    registered,
)
from tests.postgres import PostgresServer

CARD = card_of({"name": "age", "type": "integer", "low": 0, "high": 100})
TYPES = {"age": "INTEGER", "note": "VARCHAR"}
PLANTED = "planted-in-a-cell"
ROWS: list[Row] = [{"age": 7, "note": PLANTED}, {"age": 8, "note": "x"}]
WHOLE = Tally(None, (), (CountRows(),))


@pytest.fixture(scope="module")
def clinic(postgres: PostgresServer) -> PostgresWarehouse:
    return PostgresWarehouse(postgres)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkWarehouse]:
    sail = SailServer()
    yield SparkWarehouse(sail.url, tmp_path_factory.mktemp("lake") / "lake")
    sail.stop()


def run(
    warehouse: PostgresWarehouse | SparkWarehouse, dataset: Dataset, statement: Statement
) -> None:
    """Run a statement as a question does."""
    warehouse.engine._ask(dataset, lambda asking: asking.rows(statement))


def test_no_text_of_a_driver_reaches_the_caller(
    clinic: PostgresWarehouse, lake: SparkWarehouse
) -> None:
    for warehouse in (clinic, lake):
        source = warehouse.put(ROWS, TYPES)
        dataset = registered(warehouse, CARD, source)
        place = source.path if warehouse is clinic else f"parquet.`{source.path}`"
        failing = Statement(f"SELECT CAST(note AS INTEGER) AS n FROM {place}", None, {})
        with pytest.raises(EngineFailed) as caught:
            run(warehouse, dataset, failing)
        assert PLANTED not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None
        assert warehouse.engine.exact(dataset, WHOLE, ASKER) == ((2,),)


def test_a_slow_statement_is_ended_and_the_next_is_answered(
    clinic: PostgresWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watchdog would end it too, but after the statement's own timeout."""
    dataset = registered(clinic, CARD, clinic.put(ROWS, TYPES))
    clock = Clock()
    sleeping = Statement("SELECT pg_sleep(20)", None, {})

    def ask_late(asking: EngineSession) -> None:
        clock.jump()
        asking.rows(sleeping)

    with monkeypatch.context() as patch:
        patch.setattr(postgresql, "time", clock)
        with pytest.raises(EngineFailed):
            clinic.engine._ask(dataset, ask_late)
    assert clinic.engine.exact(dataset, WHOLE, ASKER) == ((2,),)


def test_connections_are_read_only(clinic: PostgresWarehouse) -> None:
    dataset = registered(clinic, CARD, clinic.put(ROWS, TYPES))
    for text in ("CREATE TEMP TABLE t (n int)", "SELECT lo_create(0)", "SELECT nextval('s')"):
        with pytest.raises(EngineFailed):
            run(clinic, dataset, Statement(text, None, {}))


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO {table} VALUES (9, 'y')",
        "UPDATE {table} SET age = 9",
        "DELETE FROM {table} WHERE age = 7",
        "TRUNCATE {table}",
        "ALTER TABLE {table} ALTER COLUMN age TYPE BIGINT",
        "ALTER TABLE {table} RENAME COLUMN note TO other",
        "DROP TABLE {table}",
        "GRANT INSERT ON {table} TO " + READER,
        "REVOKE SELECT ON {table} FROM " + READER,
    ],
)
def test_a_table_in_another_state_is_refused(clinic: PostgresWarehouse, change: str) -> None:
    source = clinic.put(ROWS, TYPES)
    dataset = registered(clinic, CARD, source)
    with clinic.owner() as owner:
        owner.execute(change.format(table=source.path).encode())
        clinic.settled(owner)
    with pytest.raises(EngineUnavailable) as refused:
        clinic.engine.prepare(dataset)
    away = change.startswith(("DROP", "GRANT", "REVOKE"))  # its rows cannot be read
    assert isinstance(refused.value, SourceChanged) != away
    with pytest.raises(EngineUnavailable):
        clinic.engine.exact(dataset, WHOLE, ASKER)


def test_a_view_a_catalogue_and_a_table_of_another_schema_are_refused(
    clinic: PostgresWarehouse,
) -> None:
    source = clinic.put(ROWS, TYPES)
    with clinic.owner() as owner:
        owner.execute(f"CREATE VIEW v AS SELECT * FROM {source.path}".encode())
        owner.execute(f"GRANT SELECT ON v TO {READER}".encode())
    for name in ("v", "public.v", "x.y.z", "", ".", 'public."t"', f"{source.path} "):
        with pytest.raises(Invalid):
            clinic.engine.inspect(Source("postgresql", name, "clinic"), CARD)


def test_an_invalid_file_of_connections_gets_a_helpful_error(tmp_path: Path) -> None:
    path = tmp_path / "connections.json"
    path.write_text('{"a": {"engine": "spark", "url": "sc://x", "roots": ["/lake"]}}')
    assert read_connections(path) == {"a": DataConnection("spark", "sc://x", ("/lake",))}
    assert read_connections(None) == {}
    for text in ("", "[]", '{"a": 1}', '{"a": {"engine": "x", "url": "hush"}}', '{"a": {}}'):
        path.write_text(text)
        with pytest.raises(Unusable, match="BURSAR_CONNECTIONS") as caught:
            read_connections(path)
        assert "hush" not in str(caught.value)
