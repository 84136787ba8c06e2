"""PATCH {"refresh": true} and questions agree on whether a PostgreSQL table has changed."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.conftest import Template
from tests.engines.remote.tables import Row
from tests.engines.remote.warehouses import PostgresWarehouse
from tests.postgres import PostgresServer
from tests.server import Json, World, ask, count, made

TYPES = {"age": "INTEGER", "note": "VARCHAR"}
COLUMNS: list[Json] = [{"name": "age", "type": "integer", "low": 0, "high": 120}]
# Statements that change a table's state and none of its values.
SAME_VALUES = [
    "UPDATE {table} SET age = age",
    "VACUUM FULL {table}",
    "SELECT pg_stat_reset_single_table_counters('{table}'::regclass)",
    "ALTER TABLE {table} ALTER COLUMN age TYPE BIGINT",
]
NO_CHANGE = ["VACUUM {table}", "ANALYZE {table}", "COMMENT ON TABLE {table} IS 'visits'"]


class Clinic:
    """A server with a connection to a database that has tables."""

    def __init__(self, world: World, warehouse: PostgresWarehouse) -> None:
        self.world, self.warehouse = world, warehouse

    def dataset(self, **changes: object) -> tuple[str, str]:
        """A new dataset and its table."""
        rows: list[Row] = [{"age": age, "note": None} for age in range(40)]
        table = self.warehouse.put(rows, TYPES).path
        name = table.rpartition(".")[2]
        with self.warehouse.owner() as owner:
            # Identical rows would share their loss, so each row has its own note.
            owner.execute(f"UPDATE {table} SET note = '{name}' || age".encode())
            self.warehouse.settled(owner)
        body = {
            "name": name,
            "source": {"engine": "postgresql", "connection": "clinic", "table": table},
            "person": {"kind": "row"},
            "neighbours": "add_remove",
            "columns": COLUMNS,
        } | changes
        made(self.world.admin.post("/v1/datasets", json=body))
        for holder in ("*", "ada"):
            self.world.grant(name, holder, 100_000)
        return name, table

    def execute(self, *statements: str) -> None:
        with self.warehouse.owner() as owner:
            for statement in statements:
                owner.execute(statement.encode())
            self.warehouse.settled(owner)

    def ask(self, dataset: str) -> httpx.Response:
        return ask(self.world.client("ada"), count(dataset, 1000, fresh=True))

    def refresh(self, dataset: str) -> httpx.Response:
        return self.world.admin.patch(f"/v1/datasets/{dataset}", json={"refresh": True})


@pytest.fixture(scope="module")
def clinic(
    peopled: Template, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Clinic]:
    folder = tmp_path_factory.mktemp("clinic")
    warehouse = PostgresWarehouse(postgres)
    world = peopled("sqlite", folder / "ledger")
    place = folder / "connections.json"
    place.write_text(json.dumps({"clinic": {"engine": "postgresql", "url": warehouse.reader_url}}))
    world.serve(BURSAR_CONNECTIONS=str(place))
    yield Clinic(world, warehouse)
    world.ledger.stop()


def problem(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["type"]


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("statement", SAME_VALUES)
def test_a_changed_state_without_a_changed_value_can_be_declared(
    clinic: Clinic, statement: str, neighbours: str
) -> None:
    declared = {"rows": 40} if neighbours == "replace_one" else {}
    dataset, table = clinic.dataset(neighbours=neighbours, **declared)
    clinic.execute(statement.format(table=table))
    assert problem(clinic.ask(dataset)) == (503, "/problems/source-changed")
    made(clinic.refresh(dataset))
    assert made(clinic.ask(dataset))["value"] == 40
    assert clinic.refresh(dataset).status_code == 409


CELLS = {"column": "age", "edges": [0, 20, 120]}


@pytest.mark.parametrize("statement", SAME_VALUES[:3])
def test_with_cells_a_changed_state_without_a_changed_row_can_be_declared(
    clinic: Clinic, statement: str
) -> None:
    dataset, table = clinic.dataset(cells=CELLS)
    clinic.execute(statement.format(table=table))
    assert problem(clinic.ask(dataset)) == (503, "/problems/source-changed")
    made(clinic.refresh(dataset))
    assert made(clinic.ask(dataset))["value"] == 40


def test_with_cells_swapped_rows_are_refused(clinic: Clinic) -> None:
    """Each column holds the same values as before, but two persons have swapped cells."""
    dataset, table = clinic.dataset(cells=CELLS)
    clinic.execute(f"UPDATE {table} SET age = 40 - age WHERE age IN (10, 30)")
    refused = clinic.refresh(dataset)
    assert problem(refused) == (422, "/problems/invalid")
    assert "another cell" in refused.json()["detail"]


@pytest.mark.parametrize("statement", NO_CHANGE)
def test_a_change_of_no_row_blocks_no_question(clinic: Clinic, statement: str) -> None:
    dataset, table = clinic.dataset()
    clinic.execute(statement.format(table=table))
    assert made(clinic.ask(dataset))["value"] == 40
    refused = clinic.refresh(dataset)
    assert refused.status_code == 409
    assert "nothing to declare" in refused.json()["detail"]


def test_a_refresh_finds_changed_rows_before_the_database_counts_them(clinic: Clinic) -> None:
    """The database counts writes late, or here never. The rows show the change that the counts
    hide.
    """
    dataset, table = clinic.dataset()
    uncounted = f"INSERT INTO {table} VALUES (70, 'new')"
    clinic.execute("SET track_counts = off", uncounted, "SET track_counts = on")
    refused = clinic.refresh(dataset)
    assert problem(refused) == (503, "/problems/engine-unavailable")
    assert "not counted" in refused.json()["detail"]
    clinic.execute(f"UPDATE {table} SET age = age")  # counted: now the state has changed
    assert problem(clinic.ask(dataset)) == (503, "/problems/source-changed")
    made(clinic.refresh(dataset))
    assert made(clinic.ask(dataset))["value"] == 41
    clinic.world.must_be_sound()
