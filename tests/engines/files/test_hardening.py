"""SQL on our DuckDB connections cannot reach anything outside, statement by statement."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from app.engines.files.connect import Limits, connect_to_ask, connect_to_ingest

FORBIDDEN = [
    "SELECT * FROM read_csv('/etc/passwd', all_varchar=true)",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM '{directory}/other.csv'",
    "SELECT * FROM read_csv('{directory}/*.csv')",
    "SELECT * FROM read_csv('http://127.0.0.1:9/x.csv')",
    "COPY (SELECT 1) TO '{directory}/written.csv'",
    "COPY (SELECT 1) TO '{directory}/source.csv'",
    "EXPORT DATABASE '{directory}/export'",
    "ATTACH '{directory}/attached.duckdb'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "SET allowed_paths = ['/etc/passwd']",
    "SET lock_configuration = false",
    "SET memory_limit = '100GB'",
    "SET temp_directory = '{directory}'",
    "RESET temp_directory",
    "SET threads = 64",
    "SELECT * FROM python_variable",
]


@contextmanager
def opened(kind: str, directory: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    limits = Limits(directory / "home", "256MB", 1)
    source = directory / "source.csv"
    source.write_text("a\n1\n")
    (directory / "other.csv").write_text("a\n1\n")
    (directory / "home").mkdir()
    if kind == "ingest":
        with connect_to_ingest(":memory:", [source], limits) as connection:
            yield connection
        return
    path = directory / "v.duckdb"
    with connect_to_ingest(str(path), [source], limits) as connection:
        connection.execute("CREATE TABLE rows AS SELECT 1 AS a")
    with connect_to_ask(path, limits) as connection:
        yield connection


@pytest.mark.parametrize("kind", ["ingest", "ask"])
def test_nothing_outside_can_be_read_written_or_changed(kind: str, tmp_path: Path) -> None:
    python_variable = [1]  # noqa: F841 - DuckDB would find it by name
    with opened(kind, tmp_path) as connection:
        before = set(tmp_path.rglob("*"))
        for statement in FORBIDDEN:
            with pytest.raises(duckdb.Error):
                connection.execute(statement.replace("{directory}", str(tmp_path))).fetchall()
        assert set(tmp_path.rglob("*")) == before
        assert connection.execute("SELECT 1").fetchall() == [(1,)]


def test_ingestion_reads_its_source_and_questions_read_no_file(tmp_path: Path) -> None:
    with opened("ask", tmp_path) as connection:
        with pytest.raises(duckdb.Error):
            connection.execute(f"SELECT * FROM read_csv('{tmp_path}/source.csv')")
        with pytest.raises(duckdb.Error):
            connection.execute("INSERT INTO rows VALUES (2)")
        assert connection.execute("SELECT a FROM rows").fetchall() == [(1,)]


def test_a_source_with_a_quote_in_its_name_is_read(tmp_path: Path) -> None:
    source = tmp_path / "o'brien.csv"
    source.write_text("a\n1\n")
    limits = Limits(tmp_path / "home", "256MB", 1)
    with connect_to_ingest(":memory:", [source], limits) as connection:
        rows = connection.execute("SELECT * FROM read_csv(?)", [str(source)]).fetchall()
    assert rows == [(1,)]


def test_connections_have_the_configured_settings(tmp_path: Path) -> None:
    with opened("ask", tmp_path) as connection:
        names = "('temp_directory', 'threads', 'autoload_known_extensions')"
        settings = dict(
            connection.execute(f"SELECT name, value FROM duckdb_settings() WHERE name IN {names}")
            .fetchall()
        )  # fmt: skip
    assert str(settings["temp_directory"]).startswith(str(tmp_path / "home" / "tmp"))
    assert (settings["threads"], settings["autoload_known_extensions"]) == ("1", "false")


@pytest.mark.parametrize(
    ("configured", "effective"),
    [("1GB", "762.9 MiB"), ("500.5 MiB", "400.3 MiB"), ("2gib", "1.5 GiB")],
)
def test_ingestion_reserves_memory_that_duckdb_does_not_count(
    tmp_path: Path, configured: str, effective: str
) -> None:
    with connect_to_ingest(":memory:", [], Limits(tmp_path, configured, 1)) as connection:
        held = connection.execute("SELECT current_setting('memory_limit')").fetchone()
    assert held == (effective,)
