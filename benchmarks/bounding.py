"""Keeping at most n rows of each person while preparing a dataset, against the same by hand.

Preparing is measured as a whole. It computes the file's digest, fits every value to the card, and
orders the rows of each person by MD5. It stores and flushes the first ones with a number for the
person. The ceiling is a statement that does the last two steps, on the same file with the same
threads and memory, into another database.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from app.data.card import Card, Dataset, Source, Version
from app.engines.files.connect import Limits, connect_to_ingest
from app.engines.files.duckdb import DuckDBEngine
from app.engines.files.paths import SourceFiles
from app.engines.files.prepare import version_path
from app.engines.files.sources import source_digest
from benchmarks.harness.made_up import COLUMNS, REGIONS, write
from benchmarks.harness.table import Row

ROWS_MAX = 10_000_000
KEPT = 3
LIMIT = 1.2
TRIES = 3
CARD = Card.model_validate(
    {
        "person": {"kind": "column", "column": "person", "rows_max": KEPT},
        "neighbours": "add_remove",
        "columns": COLUMNS,
    }
)
_CODES = " ".join(f"WHEN '{region}' THEN {code}" for code, region in enumerate(REGIONS))
BY_HAND = f"""
CREATE TABLE kept AS
SELECT age, income, steps, region, first AS person, place FROM (
    SELECT *, row_number() OVER ordered AS place, first_value(number) OVER ordered AS first
    FROM (
        SELECT *, CAST(floor(income * 16384) AS BIGINT) AS steps, row_number() OVER () AS number
        FROM (
            SELECT greatest(0, least(120, age)) AS age,
                greatest(0, least(1000000, income)) AS income,
                CASE region {_CODES} END AS region, person
            FROM read_parquet(?)
        )
    )
    WINDOW ordered AS (
        PARTITION BY person
        ORDER BY md5(concat('seed', '|', age, '|', steps, '|', region, '|', person)),
            age, income, steps, region
    )
) WHERE place <= {KEPT}
"""


def measure(folder: Path, rows: int) -> Iterator[Row]:
    data, home = folder / "data", folder / "home"
    data.mkdir(parents=True)
    file = data / "rows.parquet"
    write(file, rows)
    engine = DuckDBEngine(home=home, data_roots=(data,))
    source, digest = Source("duckdb", file.name), source_digest(SourceFiles(file, (file,)))
    whole, bare = [], []
    for number in range(TRIES):
        version = Version(f"v_{number}", 1, digest, "seed")
        begin = time.perf_counter()
        dataset = Dataset("d", "bench", "", "b", CARD, source, version, False, 0)
        engine.prepare(dataset)
        whole.append(time.perf_counter() - begin)
        version_path(home, dataset).unlink()
        bare.append(_by_hand(file, folder / "by-hand.duckdb", Limits(home, "1GB", 2)))
    engine.close()
    spent, alone = 1000 * median(whole), 1000 * median(bare)
    name = f"keeping {KEPT} rows a person, {rows // 1_000_000}M rows"
    yield Row(name, spent, "ms", alone, spent / alone, LIMIT, at_most=True)


def _by_hand(file: Path, database: Path, limits: Limits) -> float:
    begin = time.perf_counter()
    with connect_to_ingest(str(database), [file], limits) as connection:
        connection.execute(BY_HAND, [str(file)])
    spent = time.perf_counter() - begin
    database.unlink()
    return spent
