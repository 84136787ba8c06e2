"""A refresh uses the same check as questions, also while the source is being written."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.access import Principal, Role
from app.actions.datasets.clear_versions import ClearVersions
from app.actions.datasets.refresh_dataset import RefreshDataset
from app.data.card import Dataset, Source, Version
from app.data.inspection import Inspection
from app.errors import Conflict, EngineUnavailable, SourceChanged
from app.mechanisms.sampling.system import secret_text
from app.names import new_id
from app.store.administration import Administration, install
from app.store.connect import Database
from app.store.datasets.datasets import SqlDatasets
from app.store.datasets.old_versions import SqlOldVersions
from app.store.migrate import migrate
from tests.engines.remote.tables import card_of
from tests.engines.remote.warehouses import PostgresWarehouse
from tests.postgres import PostgresServer

ADMIN = Principal("a", "admin", Role.ADMIN, "k")
CARD = card_of({"name": "age", "type": "integer", "low": 0, "high": 100})


class WrittenWhileRead:
    """The real engine; after each inspection the table is written to, a limited number of times."""

    def __init__(self, engine: Any, write: Callable[[], None], times: int) -> None:
        self._engine, self._write, self._times = engine, write, times

    def inspect(self, source: Source, card: Any) -> Inspection:
        inspection: Inspection = self._engine.inspect(source, card)
        if self._times:
            self._times -= 1
            self._write()
        return inspection

    def engine(self, _: str) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


@pytest.fixture
def datasets(tmp_path: Path) -> Iterator[SqlDatasets]:
    database = Database(f"sqlite:///{tmp_path / 'ledger.db'}")
    migrate(database)
    install(database)
    yield SqlDatasets(database, Administration(database))
    database.engine.dispose()


@pytest.fixture(scope="module")
def clinic(postgres: PostgresServer) -> Iterator[PostgresWarehouse]:
    warehouse = PostgresWarehouse(postgres)
    yield warehouse
    warehouse.engine.close()


def registered(datasets: SqlDatasets, clinic: PostgresWarehouse) -> Dataset:
    source = clinic.put([{"age": age} for age in range(10)], {"age": "INTEGER"})
    inspection = clinic.engine.inspect(source, CARD)
    version = Version(new_id("v"), 1, inspection.digest, secret_text(32))
    dataset = Dataset(new_id("d"), "visits", "", "", CARD, source, version, False, 0)
    return datasets.register("admin", dataset, inspection, reason=None, request=None, body="")


def refresh(
    datasets: SqlDatasets, clinic: PostgresWarehouse, dataset: Dataset, writes: int
) -> Dataset:
    def write() -> None:
        with clinic.owner() as owner:
            owner.execute(f"INSERT INTO {dataset.source.path} VALUES (50)".encode())
            clinic.settled(owner)

    engines = WrittenWhileRead(clinic.engine, write, writes)
    clear = ClearVersions(SqlOldVersions(datasets._database), engines)
    return RefreshDataset(datasets, engines, clear)(ADMIN, name=dataset.name, reason=None)


def test_a_write_after_the_inspection_is_declared_as_a_change(
    datasets: SqlDatasets, clinic: PostgresWarehouse
) -> None:
    dataset = registered(datasets, clinic)
    after = refresh(datasets, clinic, dataset, writes=1)
    with pytest.raises(SourceChanged):
        clinic.engine.prepare(dataset)
    clinic.engine.prepare(after)
    assert datasets.find("visits").version == after.version


def test_a_table_that_is_written_constantly_is_not_declared(
    datasets: SqlDatasets, clinic: PostgresWarehouse
) -> None:
    dataset = registered(datasets, clinic)
    with pytest.raises(EngineUnavailable, match="keeps changing"):
        refresh(datasets, clinic, dataset, writes=99)
    assert datasets.find("visits").version == dataset.version


def test_a_refresh_reports_no_change_only_if_questions_are_answered(
    datasets: SqlDatasets, clinic: PostgresWarehouse
) -> None:
    dataset = registered(datasets, clinic)
    with pytest.raises(Conflict, match="nothing to declare"):
        refresh(datasets, clinic, dataset, writes=0)
    clinic.engine.prepare(dataset)


def test_a_write_during_the_inspection_is_noticed(
    datasets: SqlDatasets, clinic: PostgresWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second read of the counts is a real one, although the transaction had read them
    before.
    """
    dataset = registered(datasets, clinic)
    read = clinic.engine._content

    def read_and_write(*arguments: Any) -> str:
        content = read(*arguments)
        with clinic.owner() as owner:
            owner.execute(f"INSERT INTO {dataset.source.path} VALUES (50)".encode())
            clinic.settled(owner)
        return content

    monkeypatch.setattr(clinic.engine, "_content", read_and_write)
    with pytest.raises(EngineUnavailable, match="while it was read"):
        clinic.engine.inspect(dataset.source, CARD)
