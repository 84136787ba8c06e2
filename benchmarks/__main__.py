"""`make bench`: measure, print a table, and write it to build/bench.json.

`python -m benchmarks scale 1000000` measures only that number of rows (by default 1M, 10M and
100M), and writes to build/scale.json.
"""

import os
import sys
import tempfile
from itertools import chain
from pathlib import Path

import psycopg

from benchmarks import (
    charged_count,
    charges,
    choices,
    crowding,
    graphs,
    pages,
    questions,
    ranks,
    scale,
    scraping,
)
from benchmarks.harness.servers import TOP
from benchmarks.harness.table import Row, write
from tests.postgres import PostgresServer


def main() -> None:
    if sys.argv[1:2] == ["scale"]:
        _scale(tuple(map(int, sys.argv[2:])) or scale.SIZES)
        return
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for row in chain(
            choices.measure(),
            *(each.measure(Path(folder)) for each in (questions, ranks, graphs)),
            scale.measure(),
        ):
            print(row.line(), flush=True)
            rows.append(row)
    stores = sys.argv[1:] or ["sqlite", "postgresql"]
    postgres = PostgresServer.start(fsync=True) if "postgresql" in stores else None
    try:
        # The ledger is on the checkout's disk: a temporary folder may be in memory, where commits
        # are not durable.
        build = TOP / "build"
        build.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=build) as folder:
            for store in stores:
                urls: dict[str, str | None] = {"charges": None, "bench": None}
                if store == "postgresql":
                    assert postgres is not None
                    for name in urls:
                        postgres.create_database(name)
                        urls[name] = postgres.url(name)
                home = Path(folder) / store
                for row in chain(
                    charges.measure(store, Path(folder), urls["charges"]),
                    pages.measure(store, Path(folder), urls["charges"]),
                ):
                    print(row.line(), flush=True)
                    rows.append(row)
                if postgres is not None and urls["charges"] is not None:
                    _put_away(postgres)
                os.sync()  # a million entries are being written back, which would take minutes
                for row in charged_count.measure(store, home, urls["bench"]):
                    print(row.line(), flush=True)
                    rows.append(row)
            for row in chain(
                charged_count.measure_slots(Path(folder) / "slots"),
                crowding.measure(Path(folder) / "crowding"),
                scraping.measure(Path(folder)),
            ):
                print(row.line(), flush=True)
                rows.append(row)
    finally:
        if postgres is not None:
            postgres.stop()
    write(rows, TOP / "build" / "bench.json")


def _put_away(postgres: PostgresServer) -> None:
    """Drop the database of a million entries, with its pending work."""
    url = postgres.url("postgres").replace("+psycopg", "")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP DATABASE charges WITH (FORCE)")
        connection.execute("CHECKPOINT")


def _scale(sizes: tuple[int, ...]) -> None:
    rows: list[Row] = []
    for row in scale.measure(sizes):
        print(row.line(), flush=True)
        rows.append(row)
    write(rows, TOP / "build" / "scale.json")


if __name__ == "__main__":
    main()
