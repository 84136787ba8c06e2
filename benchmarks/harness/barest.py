"""The barest charge: the bare endpoint, and one durable transaction with the fewest statements.

It adds to two accounts and inserts a charge and an entry of the usual size. In PostgreSQL this is
one prepared statement and one round trip. There is no key, no plan, no price, no refusal, no chain,
no noise, and nothing is read back: it keeps none of our promises. Its rate with one client is a
limit for every real charge.
"""

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count

import apsw
import psycopg
from fastapi import FastAPI

from app.api.queries import AnswerResponse
from app.planning.request import Question
from benchmarks.harness.bare import ANSWER
from benchmarks.harness.servers import free_port, process

WHERE = "BENCH_BAREST"  # a file, or the URL of a database
TEXT = "x" * 900
TABLES = (
    "CREATE TABLE barest_accounts (id integer PRIMARY KEY, spent bigint NOT NULL)",
    "CREATE TABLE barest_charges (request text PRIMARY KEY, answer text NOT NULL)",
    "CREATE TABLE barest_entries (seq integer PRIMARY KEY, text text NOT NULL)",
    "INSERT INTO barest_accounts VALUES (1, 0), (2, 0)",
)
AT_ONCE = (
    "WITH paid AS (UPDATE barest_accounts SET spent = spent + 1 WHERE id IN (1, 2)), "
    "entered AS (INSERT INTO barest_entries VALUES (%s, %s)) "
    "INSERT INTO barest_charges VALUES (%s, %s)"
)
Charge = Callable[[int], Awaitable[None]]


def in_sqlite(path: str) -> Charge:
    connection = apsw.Connection(path)
    for statement in ("PRAGMA journal_mode = wal", "PRAGMA synchronous = full", *TABLES):
        connection.execute(statement)

    async def charge(number: int) -> None:
        execute = connection.execute
        execute("BEGIN IMMEDIATE")
        execute("UPDATE barest_accounts SET spent = spent + 1 WHERE id IN (1, 2)")
        execute("INSERT INTO barest_charges VALUES (?, ?)", (f"key-{number:032d}", TEXT))
        execute("INSERT INTO barest_entries VALUES (?, ?)", (number, TEXT))
        execute("COMMIT")

    return charge


def in_postgresql(url: str) -> Charge:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in TABLES:
            connection.execute(statement)
    opened: list[psycopg.AsyncConnection] = []

    async def charge(number: int) -> None:
        if not opened:
            opened.append(await psycopg.AsyncConnection.connect(url, autocommit=True))
        key = f"key-{number:032d}"
        await opened[0].execute(AT_ONCE, (number, TEXT, key, TEXT), prepare=True)

    return charge


def application() -> FastAPI:
    app = FastAPI(telemetry={"logs": False})
    where = os.environ[WHERE]
    charge = in_postgresql(where) if where.startswith("postgresql:") else in_sqlite(where)
    numbers = count(1)

    @app.post("/bare")
    async def barest(question: Question) -> AnswerResponse:
        await charge(next(numbers))
        return AnswerResponse.model_validate(ANSWER)

    return app


@contextmanager
def barest(where: str) -> Iterator[int]:
    port = free_port()
    options = ["--port", str(port), "--log-level", "warning", "--no-access-log"]
    start = ["-m", "uvicorn", "benchmarks.harness.barest:application", "--factory", *options]
    with process(start, port, "/openapi.json", **{WHERE: where}):
        yield port
