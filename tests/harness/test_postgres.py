"""The test server itself: it starts, it can be killed, and committed rows survive."""

from collections.abc import Iterator

import psutil
import pytest
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import OperationalError

from tests.postgres import PostgresServer


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    server = PostgresServer.start(fsync=True)
    yield server
    server.stop()


def test_the_server_is_a_real_postgresql(server: PostgresServer) -> None:
    server.create_database("first")
    assert str(ask(server, "first", "SELECT version()")).startswith("PostgreSQL ")


def test_a_database_is_copied_from_a_template(server: PostgresServer) -> None:
    server.create_database("model")
    do(server, "model", "CREATE TABLE kept AS SELECT 7 AS n")
    server.create_database("copy", template="model")
    assert ask(server, "copy", "SELECT n FROM kept") == 7


@pytest.mark.crash
def test_a_committed_row_survives_sigkill_and_an_open_one_does_not(server: PostgresServer) -> None:
    if not server.ours:
        pytest.skip("the server of BURSAR_TEST_POSTGRES_URL is not ours to kill")
    server.create_database("ledger")
    do(server, "ledger", "CREATE TABLE entries (n integer)")
    do(server, "ledger", "INSERT INTO entries VALUES (1)")
    engine = create_engine(server.url("ledger"), poolclass=NullPool)
    with engine.connect() as connection:
        connection.execute(text("INSERT INTO entries VALUES (2)"))
        backend = connection.scalar(text("SELECT pg_backend_pid()"))
        assert isinstance(backend, int)
        server.kill()
        assert not psutil.pid_exists(backend) or psutil.Process(backend).status() == "zombie"
        with pytest.raises(OperationalError):
            connection.execute(text("SELECT 1"))
        connection.invalidate()
    with pytest.raises(OperationalError):
        ask(server, "ledger", "SELECT 1")
    server.restart()
    assert ask(server, "ledger", "SELECT sum(n) FROM entries") == 1
    assert ask(server, "ledger", "SHOW fsync") == "on"


def test_the_server_stops_and_starts_cleanly_with_clients_connected(server: PostgresServer) -> None:
    if not server.ours:
        pytest.skip("the server of BURSAR_TEST_POSTGRES_URL is not ours to restart")
    engine = create_engine(server.url("postgres"), poolclass=NullPool)
    with engine.connect() as connection:
        connection.execute(text("SELECT 1"))
        server.restart()
        connection.invalidate()
    assert ask(server, "postgres", "SELECT 1") == 1


def ask(server: PostgresServer, database: str, statement: str) -> object:
    engine = create_engine(server.url(database), poolclass=NullPool)
    with engine.connect() as connection:
        value: object = connection.scalar(text(statement))
        return value


def do(server: PostgresServer, database: str, statement: str) -> None:
    engine = create_engine(server.url(database), poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text(statement))
