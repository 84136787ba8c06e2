"""Any number of synthetic people, by DuckDB's own hash: always the same rows, generated fast."""

from pathlib import Path
from typing import Any

import duckdb

REGIONS = ("north", "south", "east", "west")
ROWS_A_PERSON = 4  # on average
COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "type": "integer", "low": 0, "high": 120},
    {"name": "income", "type": "number", "low": 0, "high": 1_000_000},
    {"name": "region", "type": "category", "values": list(REGIONS)},
]
CARD: dict[str, Any] = {
    "name": "people",
    "description": "Made up: nobody in it exists.",
    "source": {"engine": "duckdb", "path": "people.parquet"},
    "person": {"kind": "row"},
    "neighbours": "add_remove",
    "columns": COLUMNS,
}


def write(path: Path, rows: int) -> None:
    """Write the rows. Incomes are skewed, like real ones, and in cents; a person has some rows."""
    with duckdb.connect(config={"preserve_insertion_order": "false"}) as connection:
        connection.execute(
            "COPY (SELECT CAST(hash(i, 1) % 100 AS INTEGER) AS age, "
            "round(exp(4 + 8 * (hash(i, 2) / 18446744073709551616.0)), 2) AS income, "
            "(CAST(? AS VARCHAR[]))[CAST(hash(i, 3) % 4 AS INTEGER) + 1] AS region, "
            "CAST(hash(i, 4) % ? AS INTEGER) AS person "
            "FROM range(?) AS t(i)) TO '" + str(path) + "' (FORMAT parquet)",
            [list(REGIONS), max(1, rows // ROWS_A_PERSON), rows],
        )
