"""Rows of datasets: select them, and convert them to datasets."""

import json
from typing import Any

from sqlalchemy import Connection, Select, select

from app.data.card import (
    Card,
    Dataset,
    Epoch,
    Source,
    Version,
)
from app.errors import Conflict, NotFound
from app.names import folded
from app.store import tables

UNKNOWN_DATASET = "There is no dataset of this name."


def select_datasets() -> Select[Any]:
    datasets, versions, books = tables.datasets, tables.versions, tables.books
    return (
        select(
            datasets,
            *(versions.c.number, versions.c.digest, versions.c.seed, versions.c.appended),
            books.c.celled,
        )
        .join(versions, versions.c.id == datasets.c.version_id)
        .join(books, books.c.id == datasets.c.book_id)
    )


def granted_to(statement: Select[Any], holders: tuple[str, ...] | None) -> Select[Any]:
    """Restrict a query to datasets on which one of the holders has a budget; None means all."""
    if holders is None:
        return statement
    accounts = tables.accounts
    granted = select(accounts.c.book_id).where(accounts.c.holder.in_(holders))
    return statement.where(tables.datasets.c.book_id.in_(granted))


def repeated_registration(connection: Connection, reply: str) -> Dataset:
    """The dataset that the first request made; `reply` is its id."""
    statement = select_datasets().where(tables.datasets.c.id == reply)
    row = connection.execute(statement).one_or_none()
    if row is None:
        raise Conflict(
            "This request registered a dataset that has been withdrawn since; use another "
            "Idempotency-Key."
        )
    return dataset_from(row)


def find_dataset(
    connection: Connection, name: str, holders: tuple[str, ...] | None = None
) -> Dataset:
    statement = select_datasets().where(tables.datasets.c.folded == folded(name))
    row = connection.execute(granted_to(statement, holders)).one_or_none()
    if row is None:
        raise NotFound(UNKNOWN_DATASET)
    return dataset_from(row)


def dataset_from(row: Any) -> Dataset:
    return Dataset(
        id=row.id,
        name=row.name,
        description=row.description,
        book_id=row.book_id,
        card=Card.model_validate_json(row.card),
        source=Source(**json.loads(row.source)),
        version=Version(
            row.version_id,
            row.number,
            row.digest,
            row.seed,
            tuple(Epoch(**each) for each in json.loads(row.appended)),
        ),
        closed=bool(row.closed),
        created_at=row.created_at,
        celled=bool(row.celled),
    )
