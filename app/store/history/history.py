"""Past entries of the books, and past queries."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Select,
    literal,
    literal_column,
    select,
    tuple_,
)

from app.errors import NotFound
from app.ledger.chain import Entry
from app.ledger.orders import State
from app.ledger.records import EVERYTHING, QuestionRecord, Search
from app.ledger.verification.lines import LedgerLine
from app.store import tables
from app.store.administration import store_errors
from app.store.connect import Database
from app.store.history.export import entry_from, snapshot
from app.store.history.filters import asked_conditions, entry_conditions
from app.store.writer.connection import now_microseconds

ORIGINAL = tables.charges.alias("original")  # the charge that a free repetition repeats


class SqlHistory:
    def __init__(self, database: Database) -> None:
        self._database = database

    def entries(
        self,
        *,
        book_id: str | None,
        after: tuple[int, str, int] | None,
        limit: int,
        search: Search = EVERYTHING,
        newest: bool = False,
    ) -> list[Entry]:
        """Entries after this one, in the order of time or newest first.

        Within one book this is the order of the chain.
        """
        table = tables.entries
        columns: list[Column[Any]] = [table.c.at, table.c.book_id, table.c.seq]
        statement = select(table)
        if book_id is not None:
            columns = columns[-1:]
            statement = statement.where(table.c.book_id == book_id)
        if after is not None:
            position, start = tuple_(*columns), tuple_(*after[-len(columns) :])
            statement = statement.where(position < start if newest else position > start)
        order = [column.desc() if newest else column for column in columns]
        statement = statement.where(*entry_conditions(self._database, table, search))
        with store_errors(), self._database.reading() as connection:
            rows = connection.execute(statement.order_by(*order).limit(limit)).all()
        return [entry_from(row) for row in rows]

    def snapshot(self, book_id: str | None, *, stored: bool = False) -> Iterator[LedgerLine]:
        """Snapshot of the whole ledger or one book.

        Yields the lines of an export, or with `stored` everything that verification compares.
        """
        return snapshot(self._database, book_id, stored=stored)

    def asked(
        self, *, analyst_id: str | None, after: str | None, limit: int, search: Search = EVERYTHING
    ) -> list[QuestionRecord]:
        """Queries, newest first."""
        database, charges = self._database, tables.charges
        with store_errors(), database.reading() as connection:
            now = _now(database, connection)
            statement = _asked(literal(now)).order_by(charges.c.id.desc()).limit(limit)
            if analyst_id is not None:
                statement = statement.where(charges.c.analyst_id == analyst_id)
            if after is not None:
                statement = statement.where(charges.c.id < after)
            conditions = asked_conditions(database, charges, ORIGINAL, search, now)
            statement = statement.where(*conditions)
            return [_asked_from(row) for row in connection.execute(statement).all()]

    def last(self, analyst_id: str, dataset_id: str) -> QuestionRecord | None:
        """The latest query that this analyst was charged for on this dataset."""
        charges = tables.charges
        statement = (
            _asked(_clock(self._database))
            .where(charges.c.analyst_id == analyst_id, charges.c.dataset_id == dataset_id)
            .where(charges.c.reused_from.is_(None), charges.c.state != State.VOIDED.value)
            .order_by(charges.c.id.desc())
            .limit(1)
        )
        with store_errors(), self._database.reading() as connection:
            row = connection.execute(statement).one_or_none()
        return None if row is None else _asked_from(row)

    def one(self, charge_id: str, *, analyst_id: str | None) -> QuestionRecord:
        statement = _asked(_clock(self._database)).where(tables.charges.c.id == charge_id)
        if analyst_id is not None:
            statement = statement.where(tables.charges.c.analyst_id == analyst_id)
        with store_errors(), self._database.reading() as connection:
            row = connection.execute(statement).one_or_none()
        if row is None:
            raise NotFound("There is no question of this id.")
        return _asked_from(row)


def _clock(database: Database) -> ColumnElement[Any]:
    # SQLite uses the machine's clock, which Python reads with a finer resolution.
    microseconds = "(extract(epoch FROM clock_timestamp()) * 1000000)"
    return literal_column("0" if database.is_sqlite else microseconds)


def _now(database: Database, connection: Connection) -> int:
    """One instant for a whole page, so that search and display agree."""
    if database.is_sqlite:
        return now_microseconds()
    return int(connection.execute(select(_clock(database))).scalar_one())


def _asked(clock: ColumnElement[Any]) -> Select[Any]:
    charges, analysts, datasets = tables.charges, tables.analysts, tables.datasets
    original = ORIGINAL
    return (
        select(
            charges,
            original.c.question.label("original_question"),
            original.c.answer.label("original_answer"),
            analysts.c.name.label("analyst"),
            datasets.c.name.label("dataset"),
            clock.label("now"),
        )
        .join(original, original.c.id == charges.c.reused_from, isouter=True)
        .join(analysts, analysts.c.id == charges.c.analyst_id)
        .join(datasets, datasets.c.id == charges.c.dataset_id)
    )


def _asked_from(row: Any) -> QuestionRecord:
    """Record of a query. One settled as of a later time-grid point is shown as open until then."""
    visible = row.settled_at is None or row.settled_at <= (row.now or now_microseconds())
    return QuestionRecord(
        row.id,
        row.analyst,
        row.dataset,
        State(row.state) if visible else State.CHARGED,
        row.original_question or row.question,
        row.charged,
        (row.original_answer or row.answer) if visible else None,
        row.reused_from,
        row.epsilon,
        row.delta,
        row.created_at,
        row.settled_at if visible else None,
        None if row.progress_steps is None else (row.progress_step, row.progress_steps),
        row.cancel_asked_at,
    )
