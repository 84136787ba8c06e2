"""Streams and their asks, for verification."""

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, select

from app.ledger.stamp import NOTHING_STORED, AskedFor, ask_content, stored_digest
from app.ledger.verification.lines import AskRow, StreamRow
from app.store import tables

CHUNK = 1000
StoredNodes = dict[tuple[int, int], int]


def stream_rows(connection: Connection, book_id: str | None) -> Iterator[StreamRow]:
    streams, charges, datasets = tables.streams, tables.charges, tables.datasets
    statement = (
        select(
            streams,
            charges.c.answer,
            *(charges.c.analyst_id.label("payer"), charges.c.dataset_id.label("paid_for")),
        )
        .join(charges, charges.c.id == streams.c.charge_id, isouter=True)
        .join(datasets, datasets.c.id == streams.c.dataset_id, isouter=True)
        .order_by(streams.c.id)
    )
    if book_id is not None:
        statement = statement.where(datasets.c.book_id == book_id)
    for row in connection.execute(statement).all():
        opening = _object(row.answer)
        began = opening and (opening.get("crossings_left"), opening.get("asks_left"))
        left = row.crossings_left, row.asks_left
        fits = (row.analyst_id, row.dataset_id) == (row.payer, row.paid_for)
        yield StreamRow(row.id, row.charge_id, left, began or None, fits)


def ask_rows(connection: Connection, book_id: str | None, key: bytes) -> Iterator[AskRow]:
    asks, streams, datasets = tables.asks, tables.streams, tables.datasets
    drawn = _nodes_by_ask(connection)
    after = ""
    while True:
        statement = (
            select(asks, streams.c.closed_at)
            .join(streams, streams.c.id == asks.c.stream_id, isouter=True)
            .join(datasets, datasets.c.id == streams.c.dataset_id, isouter=True)
            .where(asks.c.id > after)
        )
        if book_id is not None:
            statement = statement.where(datasets.c.book_id == book_id)
        rows = connection.execute(statement.order_by(asks.c.id).limit(CHUNK)).all()
        yield from (_ask(row, drawn.get(row.id, {}), key) for row in rows)
        if len(rows) < CHUNK:
            return
        after = rows[-1].id


def _ask(row: Any, nodes: StoredNodes, key: bytes) -> AskRow:
    content = NOTHING_STORED
    if row.answer is not None:
        asked_for = AskedFor(row.request, row.body_hash, row.version_id, row.question)
        content = stored_digest(key, *ask_content(row.answer, nodes, asked_for))
    crossed = (_object(row.answer) or {}).get("above") is True
    closed = row.state == "forfeited" and row.settled_at == row.closed_at
    return AskRow(
        row.id, row.stream_id, row.state, crossed, closed, row.settled_at, content, row.stamp
    )


def _nodes_by_ask(connection: Connection) -> dict[str, StoredNodes]:
    table = tables.nodes
    nodes: dict[str, StoredNodes] = {}
    for row in connection.execute(select(table).where(table.c.ask_id.is_not(None))).all():
        nodes.setdefault(row.ask_id, {})[row.first_epoch, row.last_epoch] = row.noisy_count
    return nodes


def _object(text: str | None) -> dict[str, Any] | None:
    try:
        loaded = json.loads(text or "null")
    except ValueError:
        return None
    return loaded if isinstance(loaded, dict) else None
