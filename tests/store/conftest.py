"""Fixtures that run a test on both stores: a SQLite file and a real PostgreSQL."""

import os
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from app.data.card import Card
from app.store.connect import Database
from app.store.migrate import migrate
from tests.postgres import PostgresServer
from tests.store.ledgers import CELLED, Ledger, make_ledger

_numbers = count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer.start(fsync=True)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "ledger.db"
    database = Database(f"sqlite:///{path}")
    migrate(database)
    database.engine.dispose()
    return path


@pytest.fixture(scope="session")
def migrated_postgres(postgres: PostgresServer) -> str:
    """Address of one migrated PostgreSQL database for all tests.

    A copy for each test would cost too much. Each test uses its own people and books.
    """
    name = f"bursar_{os.getpid()}"  # several test processes may share one PostgreSQL server
    postgres.create_database(name)
    database = Database(postgres.url(name))
    migrate(database)
    database.engine.dispose()
    return postgres.url(name)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without any table."""
    if request.param == "sqlite":
        database = Database(f"sqlite:///{tmp_path / 'empty' / 'ledger.db'}")
    else:
        server: PostgresServer = request.getfixturevalue("postgres")
        name = f"bursar_{os.getpid()}_empty_{next(_numbers)}"
        server.create_database(name)
        database = Database(server.url(name))
    yield database
    database.engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A migrated database: a new SQLite file, or PostgreSQL with the rows of earlier tests."""
    if request.param == "sqlite":
        path = tmp_path / "ledger.db"
        shutil.copy(request.getfixturevalue("migrated_file"), path)
        made = Database(f"sqlite:///{path}")
    else:
        made = Database(request.getfixturevalue("migrated_postgres"))
    yield made
    made.engine.dispose()


@pytest.fixture
def ledger(database: Database) -> Iterator[Ledger]:
    made = make_ledger(database)
    yield made
    made.close()


@pytest.fixture
def ledger_with_cells(database: Database) -> Iterator[Ledger]:
    """A ledger whose dataset has four cells: one for each of three cities, and one for rows without
    a city."""
    made = make_ledger(database, card=Card.model_validate(CELLED))
    yield made
    made.close()
