"""Rows as matrices of whole numbers, batch by batch, for what is computed row by row.

A batch is a range of row numbers and a statement of its own, under the time limit of one: nothing
stays open between batches, however long a run takes. Rows that are few enough are kept by their
run, so that each further step reads nothing. As elsewhere no text of the driver leaves.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
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
from app.engines.files.versions import OpenVersions
from app.engines.sql.conditions import condition_sql, stored_column
from app.engines.sql.dialects import Statement
from app.engines.sql.layout import TABLE, Layout
from app.engines.sql.tally_statement import factor_sql
from app.engines.watchdog import WATCHDOG
from app.errors import EngineFailed, EngineUnavailable
from app.queries.tally import CategoryIndex, CentredBucket, Matrix, Records

BATCH_ROWS = 1 << 16
NUMBERS_KEPT_MAX = 1 << 24  # 128 MB a run


def render_range(layout: Layout, wanted: Records) -> Statement:
    """The numbers of the rows from one row number to before another: `start` and `stop`."""
    number = literal_column("rowid", BigInteger())
    bounds = [cast(bindparam(name, 0), BigInteger()) for name in ("start", "stop")]
    between = number >= bounds[0], number < bounds[1]
    return layout.written(selected_records(layout, wanted).where(*between))


def selected_records(layout: Layout, wanted: Records) -> Select[*tuple[Any, ...]]:
    """All of the rows, in no order."""
    conditions: list[ColumnElement[bool]] = [
        stored_column(layout, each.column).is_not(None) for each in wanted.columns
    ]
    if wanted.where is not None:
        conditions.append(condition_sql(wanted.where, layout))
    columns = [_number(each, layout).label(f"n{i}") for i, each in enumerate(wanted.columns)]
    return select(*columns).select_from(layout.rows).where(and_(true(), *conditions))


def _number(wanted: CentredBucket | CategoryIndex, layout: Layout) -> Any:
    if isinstance(wanted, CategoryIndex):
        return cast(cast(stored_column(layout, wanted.column), Integer()), BigInteger())
    return cast(factor_sql(wanted, layout), BigInteger())


@dataclass(slots=True)
class KeptRecords:
    """The rows of one run; can be gone through again and again. No text of a driver leaves."""

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
    except Exception:  # noqa: BLE001, S110 - whatever its class, its text may quote a cell
        pass
    raise EngineFailed("The question could not be answered.")


@dataclass(slots=True)
class DuckDBRecords:
    """A version's rows, range by range."""

    versions: OpenVersions
    dataset: Dataset
    wanted: Records
    timeout_seconds: float
    _statement: Statement | None = None

    def read(self) -> Iterator[Matrix]:
        rows = self._fetch(None)
        count = int(rows[0, 0])
        for start in range(0, count, BATCH_ROWS):
            # Empty ones too: which ranges have rows that count must not show in the time.
            yield self._fetch((start, start + BATCH_ROWS))

    def _fetch(self, between: tuple[int, int] | None) -> Matrix:
        """The rows in a range, or how many there are."""
        with self.versions.cursor(self.dataset) as (cursor, layout):
            asked = _COUNT
            if between is not None:
                statement = self._statement or render_range(layout, self.wanted)
                self._statement = statement
                start, stop = between
                values = {**statement.values, "start": start, "stop": stop}
                asked = replace(statement, values=values)
            with WATCHDOG.watch(cursor, self.timeout_seconds):
                found = cursor.execute(asked.text, asked.parameters).fetchnumpy()
        return _matrix(list(found.values()))


_COUNT = Statement(
    f'SELECT CAST(coalesce(max(rowid), -1) + 1 AS BIGINT) AS n FROM "{TABLE}"',  # noqa: S608 - constants
    (),
    {},
)


def _matrix(columns: list[Any]) -> Matrix:
    """Each column stands together in memory."""
    matrix = np.empty((len(columns[0]), len(columns)), dtype=np.int64, order="F")
    for place, column in enumerate(columns):
        if type(column) is not np.ndarray or column.dtype != np.int64:
            raise TypeError("rows are whole numbers, and none of them is missing")
        matrix[:, place] = column
    return matrix
