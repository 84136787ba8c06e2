"""Rows as matrices of integers, batch by batch, for row-by-row computations.

A batch is a range of row numbers, read by its own statement under its own time limit. Nothing stays
open between batches, however long a run takes. A run keeps its rows in memory if they are few, so
later steps read nothing. No driver text leaves this module.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from duckdb import DuckDBPyConnection
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    and_,
    bindparam,
    cast,
    literal_column,
    select,
    true,
)

from app.data.card import Dataset
from app.engines.sql.conditions import condition_sql, stored_column
from app.engines.sql.dialects import Statement
from app.engines.sql.layout import TABLE, Layout
from app.engines.sql.tally_statement import factor_sql
from app.engines.watchdog import WATCHDOG
from app.errors import EngineFailed, EngineUnavailable
from app.queries.tally import CategoryIndex, CentredBucket, Matrix, Records

BATCH_ROWS = 1 << 16
NUMBERS_KEPT_MAX = 1 << 24  # 128 MB for each run


def render_range(layout: Layout, request: Records) -> Statement:
    """Statement for the rows with numbers from `start` to before `stop`."""
    number = literal_column("rowid", BigInteger())
    bounds = [cast(bindparam(name, 0), BigInteger()) for name in ("start", "stop")]
    between = number >= bounds[0], number < bounds[1]
    return layout.written(selected_records(layout, request).where(*between))


def selected_records(layout: Layout, request: Records) -> Select[*tuple[Any, ...]]:
    """All selected rows, in no order."""
    conditions: list[ColumnElement[bool]] = [
        stored_column(layout, entry.column).is_not(None) for entry in request.columns
    ]
    if request.where is not None:
        conditions.append(condition_sql(request.where, layout))
    columns = [_number(entry, layout).label(f"n{i}") for i, entry in enumerate(request.columns)]
    return select(*columns).select_from(layout.rows).where(and_(true(), *conditions))


def _number(entry: CentredBucket | CategoryIndex, layout: Layout) -> Any:
    if isinstance(entry, CategoryIndex):
        return cast(cast(stored_column(layout, entry.column), Integer()), BigInteger())
    return cast(factor_sql(entry, layout), BigInteger())


@dataclass(slots=True)
class KeptRecords:
    """The rows of one run, which can be iterated many times. No driver text leaves."""

    read: Callable[[], Iterator[Matrix]]
    _kept: list[Matrix] | None = None

    def __iter__(self) -> Iterator[Matrix]:
        if self._kept is not None:
            yield from self._kept
            return
        kept: list[Matrix] | None = []
        numbers = 0
        batches = self.read()
        while (batch := _next(batches)) is not None:
            numbers += batch.size
            if kept is not None and numbers <= NUMBERS_KEPT_MAX:
                kept.append(batch)
            else:
                kept = None
            yield batch
        self._kept = kept


def _next(batches: Iterator[Matrix]) -> Matrix | None:
    try:
        return next(batches, None)
    except EngineUnavailable:
        raise
    except Exception:  # noqa: BLE001, S110 - the text of any error may quote a cell
        pass
    raise EngineFailed("The question could not be answered.")


class Cursors(Protocol):
    """Gives each thread a cursor of its own on the rows of a dataset."""

    def cursor(
        self, dataset: Dataset
    ) -> AbstractContextManager[tuple[DuckDBPyConnection, Layout]]: ...


@dataclass(slots=True)
class DuckDBRecords:
    """A version's rows, range by range."""

    versions: Cursors
    dataset: Dataset
    wanted: Records
    timeout_seconds: float
    _statement: Statement | None = None

    def read(self) -> Iterator[Matrix]:
        rows = self._fetch(None)
        count = int(rows[0, 0])
        for start in range(0, count, BATCH_ROWS):
            # Empty ranges too: the time must not reveal which ranges have matching rows.
            yield self._fetch((start, start + BATCH_ROWS))

    def _fetch(self, between: tuple[int, int] | None) -> Matrix:
        """Rows in a range, or the number of rows if None."""
        with self.versions.cursor(self.dataset) as (cursor, layout):
            to_run = _COUNT
            if between is not None:
                statement = self._statement or render_range(layout, self.wanted)
                self._statement = statement
                start, stop = between
                values = {**statement.values, "start": start, "stop": stop}
                to_run = replace(statement, values=values)
            with WATCHDOG.watch(cursor, self.timeout_seconds):
                columns = cursor.execute(to_run.text, to_run.parameters).fetchnumpy()
        return _matrix(list(columns.values()))


_COUNT = Statement(
    f'SELECT CAST(coalesce(max(rowid), -1) + 1 AS BIGINT) AS n FROM "{TABLE}"',  # noqa: S608 - constants
    (),
    {},
)


def _matrix(columns: list[Any]) -> Matrix:
    """Matrix in column-major order: each column is contiguous in memory."""
    matrix = np.empty((len(columns[0]), len(columns)), dtype=np.int64, order="F")
    for index, column in enumerate(columns):
        if type(column) is not np.ndarray or column.dtype != np.int64:
            raise TypeError("rows must be integers without missing values")
        matrix[:, index] = column
    return matrix
