"""Deciding and committing one charge: on accounts with a short and a long history, and in `renyi`.

One ledger holds several books; each has an analyst's account and everybody's. Single charges go to
them in turn, so that disk load affects all alike. The ceiling of a long history is the empty one;
that of a Renyi charge is the pure one.
"""

import asyncio
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from pathlib import Path

import psycopg
from sqlalchemy import Connection, Table, insert

from app.accounting.loss import Loss
from app.accounting.losses import gaussian_loss, pure_loss
from app.accounting.rules.terms import GrantTerms
from app.accounting.units import PICO
from app.data.card import Card, Dataset, Source, Version
from app.ledger.chain import FIRST_PREVIOUS, Book, canonical
from app.ledger.orders import Charged, ChargeOrder
from app.ledger.precondition import MUST_BE_NEW
from app.names import folded, new_id
from app.store import tables
from app.store.administration import Administration, install
from app.store.budgets import SqlBudgets
from app.store.connect import Database
from app.store.migrate import migrate
from app.store.writer.batch import settle
from app.store.writer.connection import WriterConnection
from app.store.writer.statements import statements
from app.store.writer.writer import open_connection
from benchmarks.harness.table import Row

HISTORIES = {"0 entries": 0, "10^4 entries": 10_000, "10^6 entries": 1_000_000}
HOLDERS = ("*", "analyst-1", "analyst-2")  # the last one never asks
ROUNDS = 400
GOAL = 1.2
CHUNK = 5000
ANALYST_ID = "a_bench"
EPSILON = PICO // 1000
QUESTION = '{"dataset": "bench", "privacy": {"epsilon": 0.001}, "query": {"kind": "count"}}'
CHARGED = (
    '{"charged": {"accounts": [], "cells": null, "delta": 0.0, "epsilon": 0.001}, '
    '"receipt": {"entry": 1, "hash": "-"}, "theorem": "-"}'
)
ANSWER = '{"value": 1, "interval": null, "status": "answered"}'
CARD = Card.model_validate(
    {
        "person": {"kind": "row"},
        "neighbours": "add_remove",
        "columns": [{"name": "age", "type": "integer", "low": 0, "high": 120}],
    }
)


@dataclass(frozen=True, slots=True)
class Kept:
    """A book with its dataset, and a name for the table."""

    name: str
    dataset: Dataset


def measure(store: str, folder: Path, url: str | None) -> Iterator[Row]:
    database = Database(url or f"sqlite:///{folder / 'charges.db'}")
    migrate(database)
    install(database)
    books = [book_with_entries(database, name, "pure", count) for name, count in HISTORIES.items()]
    books.append(book_with_entries(database, "renyi", "renyi", 0))
    if not database.is_sqlite:  # fresh plans, as in a ledger that grew to this size
        with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as one:
            one.exec_driver_sql("VACUUM ANALYZE")
    loop = asyncio.Runner()
    hot = loop.run(open_connection(database))
    # One release without a pure bound: from then on the curve decides the renyi account.
    loop.run(_charge(database, hot, books[-1].dataset, gaussian_loss(Fraction(10**6))))
    seconds: dict[str, list[float]] = {book.name: [] for book in books}
    for number in range(ROUNDS):
        for turn in range(len(books)):
            book = books[(number + turn) % len(books)]
            seconds[book.name].append(loop.run(_charge(database, hot, book.dataset)))
    hot.close()
    loop.close()
    database.engine.dispose()
    usual = {name: 1e6 * statistics.median(values[20:]) for name, values in seconds.items()}
    for name in islice(HISTORIES, 1, None):
        yield _row(f"one charge, {store}, {name}", usual[name], usual["0 entries"])
    yield _row(f"one renyi charge, {store}, against pure", usual["renyi"], usual["0 entries"])


def _row(name: str, value: float, ceiling: float) -> Row:
    return Row(name, value, "us", ceiling, value / ceiling, GOAL, at_most=True)


async def _charge(
    database: Database, hot: WriterConnection, dataset: Dataset, loss: Loss | None = None
) -> float:
    sql = statements(sqlite=database.is_sqlite)
    order = ChargeOrder(
        charge_id=new_id("q"),
        analyst_id=ANALYST_ID,
        holders=("analyst-1",),
        actor="analyst-1",
        request_key=new_id("key"),
        body_hash="0" * 64,
        dataset_id=dataset.id,
        dataset_name=dataset.name,
        version_id=dataset.version.id,
        book_id=dataset.book_id,
        plan_digest=f"plan of {dataset.id}",  # one query, charged again each time
        loss=loss or pure_loss(EPSILON),
        cells=None,
        cells_shown=None,
        question=QUESTION,
        record={"query": "count", "mechanism": "laplace"},
        theorem="-",
        fresh=True,
        refusal=None,
        catalogue=(await hot.read([(sql.clock, ())]))[0][0][0],
        lease_seconds=60,
    )
    begin = time.perf_counter()
    (result,) = await settle([order], hot, sql)
    spent = time.perf_counter() - begin
    assert isinstance(result, Charged), result
    return spent


def dataset_name(history: str) -> str:
    return history.replace(" ", "-").replace("^", "-")


def book_with_entries(database: Database, name: str, currency: str, entries: int) -> Kept:
    """A book with a history of this many charges and entries."""
    book_id, dataset_id = new_id("b"), new_id("d")
    version = Version(new_id("v"), 1, "-", "-")
    source = Source("duckdb", "-")
    shown = dataset_name(name)
    dataset = Dataset(dataset_id, shown, "", book_id, CARD, source, version, False, 0)
    with database.writing() as connection:
        connection.execute(
            insert(tables.books).values(id=book_id, seq=0, head=FIRST_PREVIOUS, last_at=0, celled=0)
        )
        _insert_dataset(connection, dataset)
    budgets = SqlBudgets(database, Administration(database))
    delta = Decimal(0) if currency == "pure" else Decimal("1e-6")
    for holder in HOLDERS:
        budgets.grant(
            "bench",
            dataset,
            holder,
            holder,
            currency=currency,
            wish=GrantTerms(epsilon=Decimal(1_000_000), delta=delta),
            precondition=MUST_BE_NEW,
            reason=None,
        )
    if entries:
        _fill(database, dataset, entries)
    return Kept(name, dataset)


def _insert_dataset(connection: Connection, dataset: Dataset) -> None:
    connection.execute(
        insert(tables.datasets).values(
            id=dataset.id,
            name=dataset.name,
            folded=folded(dataset.name),
            description=dataset.description,
            book_id=dataset.book_id,
            card=dataset.card.model_dump_json(),
            source=canonical(asdict(dataset.source)),
            version_id=dataset.version.id,
            closed=0,
            created_at=1,
        )
    )
    version = dataset.version
    connection.execute(
        insert(tables.versions).values(
            id=version.id,
            dataset_id=dataset.id,
            number=version.number,
            digest=version.digest,
            fingerprint="-",
            seed=version.seed,
            created_at=1,
            appended="[]",
        )
    )


def _fill(database: Database, dataset: Dataset, entries: int) -> None:
    with database.writing() as connection:
        row = connection.execute(
            tables.books.select().where(tables.books.c.id == dataset.book_id)
        ).one()
        book = Book(row.id, row.seq, row.head, row.last_at)
        for start in range(0, entries, CHUNK):
            charges: list[dict[str, object]] = []
            lines: list[dict[str, object]] = []
            for _ in range(min(CHUNK, entries - start)):
                charge = new_id("q")
                entry = book.append(
                    kind="charge", actor="analyst-1", at=1, body=_entry_body(charge, dataset)
                )
                lines.append(
                    {
                        "book_id": book.id,
                        "seq": entry.seq,
                        "at": entry.at,
                        "kind": entry.kind,
                        "text": entry.text,
                        "hash": entry.hash,
                    }
                )
                charges.append(_charge_row(charge, dataset))
            _insert(connection, tables.charges, charges)
            _insert(connection, tables.entries, lines)
        connection.execute(
            tables.books.update()
            .where(tables.books.c.id == book.id)
            .values(seq=book.seq, head=book.head, last_at=book.last_at)
        )
        connection.execute(
            tables.accounts.update()
            .where(tables.accounts.c.book_id == book.id)
            .where(tables.accounts.c.holder.in_(("*", "analyst-1")))
            .values(epsilon_spent=entries * EPSILON)
        )


def _entry_body(charge: str, dataset: Dataset) -> dict[str, object]:
    return {
        "accounts": ["analyst-1", "*"],
        "cells": None,
        "charge": charge,
        "dataset": dataset.name,
        "delta": 0,
        "epsilon": EPSILON,
        "mechanism": "laplace",
        "plan": "0" * 64,
        "query": "count",
    }


def _insert(connection: Connection, table: Table, rows: list[dict[str, object]]) -> None:
    if connection.dialect.name != "postgresql":
        connection.execute(insert(table), rows)
        return
    names = list(rows[0])
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    into = f"COPY {table.name} ({', '.join(names)}) FROM STDIN"
    with driver.cursor() as cursor, cursor.copy(into) as copy:
        for row in rows:
            copy.write_row([row[name] for name in names])


def _charge_row(charge: str, dataset: Dataset) -> dict[str, object]:
    return {
        "id": charge,
        "analyst_id": ANALYST_ID,
        "request": f"{ANALYST_ID}/{charge}",
        "body_hash": "0" * 64,
        "reuse_key": f"{ANALYST_ID}/{dataset.version.id}/{charge}",
        "dataset_id": dataset.id,
        "version_id": dataset.version.id,
        "state": "answered",
        "attempt": 1,
        "lease_until": 0,
        "epsilon": 1,
        "delta": 0,
        "question": QUESTION,
        "charged": CHARGED,
        "answer": ANSWER,
        "reused_from": None,
        "created_at": 1,
        "settled_at": 1,
    }
