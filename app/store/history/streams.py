"""Streams for display: one, or those of an analyst."""

from typing import Any

from sqlalchemy import Select, literal_column, select

from app.errors import NotFound
from app.ledger.stream_orders import Stream
from app.store import tables
from app.store.administration import store_errors
from app.store.connect import Database
from app.store.writer.connection import now_microseconds
from app.store.writer.stream_decisions import UNKNOWN_STREAM


class SqlStreams:
    def __init__(self, database: Database) -> None:
        self._database = database

    def one(self, stream_id: str, *, analyst_id: str | None) -> Stream:
        statement = self._select().where(tables.streams.c.id == stream_id)
        if analyst_id is not None:
            statement = statement.where(tables.streams.c.analyst_id == analyst_id)
        with store_errors(), self._database.reading() as connection:
            row = connection.execute(statement).one_or_none()
        if row is None:
            raise NotFound(UNKNOWN_STREAM)
        return _stream_from(row)

    def all(self, *, analyst_id: str | None, after: str | None, limit: int) -> list[Stream]:
        """Streams, newest first."""
        statement = self._select().order_by(tables.streams.c.id.desc()).limit(limit)
        if analyst_id is not None:
            statement = statement.where(tables.streams.c.analyst_id == analyst_id)
        if after is not None:
            statement = statement.where(tables.streams.c.id < after)
        with store_errors(), self._database.reading() as connection:
            return [_stream_from(row) for row in connection.execute(statement).all()]

    def _select(self) -> Select[Any]:
        # SQLite uses the machine's clock, which Python reads with a finer resolution.
        postgres = "(extract(epoch FROM clock_timestamp()) * 1000000)"
        clock = "0" if self._database.is_sqlite else postgres
        streams, charges = tables.streams, tables.charges
        analysts, datasets, versions = tables.analysts, tables.datasets, tables.versions
        return (
            select(
                streams,
                charges.c.question,
                charges.c.charged,
                analysts.c.name.label("analyst"),
                datasets.c.name.label("dataset"),
                versions.c.digest,
                literal_column(clock).label("now"),
            )
            .join(charges, charges.c.id == streams.c.charge_id)
            .join(analysts, analysts.c.id == streams.c.analyst_id)
            .join(datasets, datasets.c.id == streams.c.dataset_id)
            .outerjoin(versions, versions.c.id == charges.c.version_id)
        )


def _stream_from(row: Any) -> Stream:
    """Stream for display. A crossing is hidden until the time-grid point of its answer."""
    crossing_hidden = row.crossed_at is not None and row.crossed_at > (
        row.now or now_microseconds()
    )
    return Stream(
        id=row.id,
        analyst_id=row.analyst_id,
        analyst=row.analyst,
        charge_id=row.charge_id,
        dataset=row.dataset,
        kind=row.kind,
        parameters=row.parameters,
        secret=row.secret,
        crossings_left=row.crossings_left + 1 if crossing_hidden else row.crossings_left,
        asks_left=row.asks_left,
        created_at=row.created_at,
        closed_at=row.closed_at,
        opening=row.question,
        charged=row.charged,
        digest=row.digest,
    )
