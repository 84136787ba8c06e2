"""Withdraw a dataset's name: remove it if its book was never charged, else close it.

The book keeps its chain and its accounts in either case. A book that loses its last name without a
charge also loses its fingerprints. Then the same data may be registered again in a new book, with a
different privacy unit or neighbouring relation.

Lock order: installation, then the book. A charge locks its book before it reads the catalogue
number. So it has either committed before this module reads the book, or is refused as stale.
"""

import json
from dataclasses import asdict

from sqlalchemy import Connection, delete, insert, select, update

from app.actions.datasets.withdraw_dataset import Withdrawal
from app.data.card import Dataset
from app.errors import NotFound
from app.store import tables
from app.store.administration import Administration, Change
from app.store.datasets.dataset_rows import UNKNOWN_DATASET, find_dataset
from app.store.datasets.datasets import close_dataset

# Kinds of entries that cost nothing. Any other kind counts as a charge, so that a book with a kind
# added later is kept.
FREE_KINDS = frozenset(
    {
        "dataset_registered",
        "dataset_changed",
        "dataset_withdrawn",
        "version_declared",
        "epoch_appended",
        "grant",
    }
)


class SqlWithdrawals:
    def __init__(self, administration: Administration) -> None:
        self._administration = administration

    def withdraw(
        self, actor: str, name: str, *, reason: str | None, request: str | None, body: str
    ) -> Withdrawal:
        with self._administration.change() as change:
            if (earlier := change.remembered(request, body)) is not None:
                return Withdrawal(earlier)
            change.must_be_open()
            dataset = find_dataset(change.connection, name)
            lock_book(change.connection, dataset.book_id)
            if _was_charged(change.connection, dataset.book_id):
                if not dataset.closed:
                    close_dataset(change, actor, dataset, reason=reason)
                outcome = Withdrawal.CLOSED
            else:
                _remove(change, actor, dataset, reason=reason)
                outcome = Withdrawal.WITHDRAWN
            change.remember(request, body, outcome.value)
            return outcome


def lock_book(connection: Connection, book_id: str) -> None:
    books = tables.books
    connection.execute(select(books.c.id).where(books.c.id == book_id).with_for_update()).one()


def must_be_there(change: Change, dataset: Dataset) -> None:
    """Raise NotFound if the dataset was withdrawn since it was read.

    Locks its book, so that the dataset stays until the transaction ends. The catalogue number must
    not be raised after this.
    """
    lock_book(change.connection, dataset.book_id)
    datasets = tables.datasets
    statement = select(datasets.c.id).where(datasets.c.id == dataset.id)
    if change.connection.execute(statement).first() is None:
        raise NotFound(UNKNOWN_DATASET)


def _was_charged(connection: Connection, book_id: str) -> bool:
    entries = tables.entries
    statement = (
        select(entries.c.seq)
        .where(entries.c.book_id == book_id, entries.c.kind.not_in(FREE_KINDS))
        .limit(1)
    )
    return connection.execute(statement).first() is not None


def _remove(change: Change, actor: str, dataset: Dataset, *, reason: str | None) -> None:
    connection = change.connection
    datasets, versions, known = tables.datasets, tables.versions, tables.fingerprints
    mine = versions.c.dataset_id == dataset.id
    for version_id in connection.execute(select(versions.c.id).where(mine)).scalars().all():
        row = {"id": version_id, "withdrawn_at": change.now}
        connection.execute(insert(tables.withdrawn_versions).values(row))
    connection.execute(delete(versions).where(mine))
    connection.execute(delete(datasets).where(datasets.c.id == dataset.id))
    of_book = datasets.c.book_id == dataset.book_id
    others = connection.execute(select(datasets.c.card).where(of_book)).scalars().all()
    last = not others
    if last:
        connection.execute(delete(known).where(known.c.book_id == dataset.book_id))
    celled = any(json.loads(card).get("cells") is not None for card in others)
    books = tables.books
    connection.execute(
        update(books).where(books.c.id == dataset.book_id).values(celled=int(celled))
    )
    change.append(
        dataset.book_id,
        kind="dataset_withdrawn",
        actor=actor,
        body={
            "dataset": dataset.name,
            "before": {
                "card": json.loads(dataset.card.model_dump_json()),
                "source": asdict(dataset.source),
                "version": dataset.version.id,
            },
            "after": None,
            "data_released": last,
            "reason": reason,
        },
    )
