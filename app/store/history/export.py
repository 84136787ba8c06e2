"""A snapshot of the ledger, line by line, for an export or for verification."""

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, literal_column, select, tuple_

from app.ledger.chain import Book, Entry
from app.ledger.stamp import (
    NOTHING_STORED,
    asked_digest,
    reused_content,
    stored_digest,
)
from app.ledger.verification.lines import (
    ChargeRow,
    DatasetRow,
    FingerprintRow,
    KeyRow,
    LedgerLine,
    PersonRow,
    Scope,
    VersionRow,
    with_end,
)
from app.store import tables
from app.store.account_rows import account_from, read_cells
from app.store.administration import store_errors
from app.store.connect import Database
from app.store.history.export_streams import ask_rows, stream_rows
from app.store.row_hashes import ledger_key, token_hash, version_hash
from app.store.writer.connection import now_microseconds

CHUNK = 1000


def snapshot(database: Database, book_id: str | None, *, stored: bool) -> Iterator[LedgerLine]:
    with store_errors(), database.reading() as connection:
        yield Scope(book_id, stored=stored)
        yield from with_end(_lines(database, connection, book_id, stored=stored))


def _lines(
    database: Database, connection: Connection, book_id: str | None, *, stored: bool
) -> Iterator[LedgerLine]:
    yield from _entries(connection, book_id)
    yield from _books_and_accounts(connection, book_id)
    yield from _charges(connection, book_id, now=_now(database, connection), stored=stored)
    if stored:
        key = ledger_key(connection)
        yield from stream_rows(connection, book_id)
        yield from ask_rows(connection, book_id, key)
        yield from _datasets(connection, book_id, key)
        if book_id is None:
            yield from _people(connection, key)


def _now(database: Database, connection: Connection) -> int:
    if database.is_sqlite:
        return now_microseconds()
    clock: ColumnElement[int] = literal_column(
        "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    )
    now: int = connection.execute(select(clock)).scalar_one()
    return now


def _entries(connection: Connection, book_id: str | None) -> Iterator[Entry]:
    table = tables.entries
    after = ("", 0)
    while True:
        statement = select(table).where(tuple_(table.c.book_id, table.c.seq) > tuple_(*after))
        if book_id is not None:
            statement = statement.where(table.c.book_id == book_id)
        ordered = statement.order_by(table.c.book_id, table.c.seq).limit(CHUNK)
        rows = connection.execute(ordered).all()
        yield from map(entry_from, rows)
        if len(rows) < CHUNK:
            return
        after = rows[-1].book_id, rows[-1].seq


def entry_from(row: Any) -> Entry:
    return Entry(row.book_id, row.seq, row.at, row.kind, row.text, row.hash)


def _books_and_accounts(connection: Connection, book_id: str | None) -> Iterator[LedgerLine]:
    books, accounts = tables.books, tables.accounts
    all_books = select(books).order_by(books.c.id)
    all_accounts = select(accounts).order_by(accounts.c.id)
    if book_id is not None:
        all_books = all_books.where(books.c.id == book_id)
        all_accounts = all_accounts.where(accounts.c.book_id == book_id)
    for row in connection.execute(all_books).all():
        yield Book(row.id, row.seq, row.head, row.last_at)
    rows = connection.execute(all_accounts).all()
    cells = read_cells(connection, None if book_id is None else {row.id for row in rows})
    for row in rows:
        yield account_from(row, cells.get(row.id, {}))


# Charges


def _charges(
    connection: Connection, book_id: str | None, *, now: int, stored: bool
) -> Iterator[ChargeRow]:
    key = ledger_key(connection)
    after = ""
    while True:
        statement = _select_charges().where(tables.charges.c.id > after)
        if book_id is not None:
            statement = statement.where(tables.datasets.c.book_id == book_id)
        if not stored:  # free repetitions are no part of the books
            statement = statement.where(tables.charges.c.reused_from.is_(None))
        ordered = statement.order_by(tables.charges.c.id).limit(CHUNK)
        rows = connection.execute(ordered).all()
        for row in rows:
            yield _stored_charge(row, key) if stored else _shown_charge(row, now)
        if len(rows) < CHUNK:
            return
        after = rows[-1].id


def _select_charges() -> Select[Any]:
    charges, datasets, streams = tables.charges, tables.datasets, tables.streams
    original = charges.alias("original")
    holds: ColumnElement[bool] = (original.c.answer.is_not(None)) & (
        original.c.reuse_key == charges.c.reuse_key
    )
    return (
        select(
            charges,
            datasets.c.book_id,
            holds.label("reuse_holds"),
            *(streams.c.id.label("stream_id"), streams.c.kind.label("stream_kind")),
            *(streams.c.parameters, streams.c.secret),
        )
        .join(datasets, datasets.c.id == charges.c.dataset_id, isouter=True)
        .join(original, original.c.id == charges.c.reused_from, isouter=True)
        .join(streams, streams.c.charge_id == charges.c.id, isouter=True)
    )


def _shown_charge(row: Any, now: int) -> ChargeRow:
    """Charge as an export shows it.

    A charge settled as of a later time-grid point is shown as open until then. A void is shown at
    once, because its entry shows it anyway.
    """
    charge = _charge(row)
    hidden = row.settled_at is not None and row.settled_at > now and row.state != "voided"
    return charge._replace(state="charged") if hidden else charge


def _stored_charge(row: Any, key: bytes) -> ChargeRow:
    content = NOTHING_STORED
    if row.reused_from is not None:
        asked_for = _request(row), row.body_hash, row.question, row.charged
        content = stored_digest(key, *reused_content(row.reused_from, *asked_for))
    elif row.answer is not None:
        stream = (row.stream_kind, row.parameters, row.secret)
        content = stored_digest(key, row.answer, *(() if row.stream_id is None else stream))
    return _charge(row)._replace(settled_at=row.settled_at, content=content, stamp=row.stamp)


def _charge(row: Any) -> ChargeRow:
    asked_hash = asked_digest(
        _request(row), row.body_hash, row.reuse_key, row.dataset_id, row.question
    )
    return ChargeRow(
        id=row.id,
        book=row.book_id or "",
        state=row.state,
        epsilon=row.epsilon,
        delta=row.delta,
        version=row.version_id,
        asked=asked_hash,
        receipt=_receipt(row.charged, row.answer),
        reused=row.reused_from is not None,
        reuse_holds=row.reused_from is None or bool(row.reuse_holds),
    )


def _request(row: Any) -> str:
    """The analyst and the request key, or nothing if the row names another analyst."""
    request: str = row.request
    return request if request.startswith(f"{row.analyst_id}/") else ""


def _receipt(charged: str, answer: str | None) -> tuple[int, str] | None:
    """Receipt of a charge, or None if it does not match the answer.

    An answer with a receipt ends with the text of `charged`. The answer's stamp covers that text,
    so nobody can edit `charged` alone.
    """
    if answer is not None and '"receipt":' in answer and not answer.endswith(charged[1:]):
        return None
    try:
        receipt = json.loads(charged)["receipt"]
        return int(receipt["entry"]), str(receipt["hash"])
    except (ValueError, KeyError, TypeError):
        return None


# Datasets and people


def _datasets(connection: Connection, book_id: str | None, key: bytes) -> Iterator[LedgerLine]:
    datasets, fingerprints = tables.datasets, tables.fingerprints
    books, versions = tables.books, tables.versions
    all_datasets = (
        select(datasets, books.c.celled)
        .join(books, books.c.id == datasets.c.book_id)
        .order_by(datasets.c.id)
    )
    all_versions = (
        select(versions, datasets.c.book_id)
        .join(datasets, datasets.c.id == versions.c.dataset_id, isouter=True)
        .order_by(versions.c.id)
    )
    all_marks = select(fingerprints).order_by(fingerprints.c.fingerprint)
    if book_id is not None:
        all_datasets = all_datasets.where(datasets.c.book_id == book_id)
        all_versions = all_versions.where(datasets.c.book_id == book_id)
        all_marks = all_marks.where(fingerprints.c.book_id == book_id)
    for row in connection.execute(all_datasets).all():
        facts = {
            "card": _json(row.card),
            "source": _json(row.source),
            "version": row.version_id,
            "description": row.description,
            "closed": bool(row.closed),
            "folded": row.folded,
        }
        yield DatasetRow(row.name, row.book_id, facts, bool(row.celled))
    for row in connection.execute(all_versions).all():
        yield VersionRow(row.id, row.book_id or "", {"content": version_hash(key, row._asdict())})
    for row in connection.execute(all_marks).all():
        yield FingerprintRow(row.fingerprint, row.book_id)


def _people(connection: Connection, key: bytes) -> Iterator[LedgerLine]:
    analysts, keys = tables.analysts, tables.keys
    for row in connection.execute(select(analysts).order_by(analysts.c.id)).all():
        facts = {
            "role": row.role,
            "enabled": bool(row.enabled),
            "groups": _json(row.groups),
            "folded": row.folded,
        }
        yield PersonRow(row.name, facts)
    statement = select(keys, analysts.c.name).join(analysts, analysts.c.id == keys.c.analyst_id)
    for row in connection.execute(statement.order_by(keys.c.id)).all():
        facts = {
            "analyst": row.name,
            "expires_at": row.expires_at,
            "revoked": row.revoked_at is not None,
            "token_hash": token_hash(key, row.hash),
        }
        yield KeyRow(row.id, facts)


def _json(text: str) -> Any:
    """Parsed JSON, or the text itself if it is no JSON; then it agrees with no entry."""
    try:
        return json.loads(text)
    except ValueError:
        return text
