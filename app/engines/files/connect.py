"""Hardened DuckDB connections: limits on what SQL can reach, set before any SQL runs.

No connection installs or loads extensions, sees Python variables, or changes its settings. A
connection that ingests may read its source files; one that answers queries reads only its database.
"""

import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

# Two DuckDB instances must not share a temporary directory. Two servers in containers may share a
# home and a process number, so each process adds random letters.
_PROCESS = f"{os.getpid()}-{secrets.token_hex(4)}"

# DuckDB's limit covers its buffers. Reading files and writing a version took up to a tenth more. So
# it gets less than the operator's limit.
_INGEST_SHARE = 0.8
_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*")


@dataclass(frozen=True, slots=True)
class Limits:
    """Resources of one connection, and the only directory to which it may spill."""

    home: Path
    memory_limit: str
    threads: int
    temporary_size_max: str = "8GB"
    prepared_bytes_max: int = 64 * 10**9


def connect_to_ingest(
    database: str, sources: Sequence[Path], limits: Limits, *, progress: bool = False
) -> duckdb.DuckDBPyConnection:
    """A connection that writes `database` (or :memory:), reads `sources`, and nothing else.

    A source that does not exist yet may be written. `progress`: the connection reports its
    progress.
    """
    name = "inspect" if database == ":memory:" else Path(database).stem
    settings = _settings(f"{name}-{secrets.token_hex(4)}", limits)
    settings["memory_limit"] = _for_ingesting(limits.memory_limit)
    connection = duckdb.connect(database, config=settings)
    try:
        # The order matters: the paths can only be set while external access is open.
        connection.execute("SET TimeZone = 'UTC'")
        if progress:
            connection.execute("SET enable_progress_bar = true")
            connection.execute("SET enable_progress_bar_print = false")
        paths = ", ".join(_quoted(str(source)) for source in sources)
        connection.execute(f"SET allowed_paths = [{paths}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except BaseException:
        connection.close()
        raise
    return connection


def connect_to_ask(database: Path, limits: Limits) -> duckdb.DuckDBPyConnection:
    """A connection that reads one prepared version, and nothing else."""
    # All settings are passed at once: a second connection of this process to the same file joins
    # the first one's locked instance, and could not SET anything.
    settings = _settings(database.stem, limits)
    settings |= {"enable_external_access": "false", "lock_configuration": "true"}
    return duckdb.connect(str(database), read_only=True, config=settings)


def _settings(purpose: str, limits: Limits) -> dict[str, str | bool | int | float | list[str]]:
    return {
        "allow_community_extensions": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "python_enable_replacements": "false",
        "preserve_insertion_order": "false",
        "memory_limit": limits.memory_limit,
        "threads": str(limits.threads),
        "temp_directory": str(limits.home / "tmp" / f"{purpose}-{_PROCESS}"),
        "max_temp_directory_size": limits.temporary_size_max,
    }


def _for_ingesting(memory_limit: str) -> str:
    """The memory limit for ingesting; text that is no amount with a unit is left to DuckDB."""
    amount = _AMOUNT.fullmatch(memory_limit)
    if amount is None:
        return memory_limit
    return f"{float(amount[1]) * _INGEST_SHARE:.6f}{amount[2]}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
