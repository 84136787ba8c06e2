"""Shared part of engines over tables of a database.

Nothing is prepared: the query's own statement cleans the rows. Before each query the state of the
tables is compared with the registered one.
"""

import hashlib
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from decimal import Decimal
from threading import Lock
from typing import Any, Protocol, TypeVar

import numpy as np
from sqlalchemy import FromClause, Select, func, select
from typing_extensions import override

from app.data.card import Card, ColumnPerson, Dataset, Source
from app.data.inspection import EpochInspection, Inspection, SourceColumns
from app.engines.card_check import Figures, figures
from app.engines.card_fit import check_fit
from app.engines.content_hash import content_of, content_statement
from app.engines.epochs import OTHER
from app.engines.graph import BATCH, all_edges, count_edges, edge_count, must_be_held
from app.engines.records import KeptRecords, selected_records
from app.engines.remote.table_rows import table_rows
from app.engines.sql.cleaning import cleaned_rows
from app.engines.sql.dialects import Dialect, Statement, written
from app.engines.sql.layout import TABLE, Layout
from app.engines.sql_engine import EngineSession, SqlEngine
from app.engines.table import Table
from app.engines.whole_row_hash import named_rows, whole_rows_of, whole_rows_statement
from app.errors import EngineUnavailable, Invalid, SourceChanged
from app.queries.tally import GraphCounts, GraphCountsRequest, Matrix, Records

T = TypeVar("T")
LAYOUTS_MAX = 64
RECORDS_BATCH = 1 << 16
CHANGED = "The source has changed since it was registered."
UNREACHABLE = "The source cannot be reached."
NO_FOLDER = "a folder of Parquet files in a root of the connection"


class Session(Protocol):
    """A connection that inspects or queries tables, under a time limit that really interrupts."""

    def table(self, name: str) -> Table | None:
        """The table; None if it does not exist or may not be used."""
        ...

    def why_no_table(self, name: str) -> str:
        """Why a table may not be used, for the administrator who named it."""
        ...

    def may_be_path(self, name: str) -> bool:
        """True if the name is written like a folder, and not like a table."""
        ...

    def state(self, name: str) -> str:
        """State that changes with the table. Reads no row. Raises EngineUnavailable if gone."""
        ...

    def place(self, name: str) -> str:
        """Identity of the table, the same under all its names."""
        ...

    def rows(self, statement: Statement) -> list[tuple[Any, ...]]: ...

    def batches(self, statement: Statement, size: int) -> Iterator[list[tuple[Any, ...]]]: ...

    def must_have_time(self) -> None:
        """Raise EngineFailed if the time limit has passed."""
        ...


class RemoteEngineSession:
    def __init__(self, session: Session, layout: Layout) -> None:
        self._session = session
        self.layout = layout

    def rows(self, statement: Statement) -> list[tuple[Any, ...]]:
        return whole_numbers(self._session.rows(statement))

    def batches(self, statement: Statement, size: int) -> Iterator[list[tuple[Any, ...]]]:
        return map(whole_numbers, self._session.batches(statement, size))

    def must_have_time(self) -> None:
        self._session.must_have_time()


class RemoteEngine(SqlEngine):
    """Implements `ports.Engine` except for the sessions, which each database provides."""

    dialect: Dialect
    has_prepared_files = False

    def __init__(self, memo_size: int) -> None:
        super().__init__(memo_size)
        self._layouts: OrderedDict[str, Layout] = OrderedDict()
        self._lock = Lock()

    @abstractmethod
    def _session(
        self, source: Source, *, ingesting: bool = False
    ) -> AbstractContextManager[Session]:
        """Open a session. Raises EngineUnavailable if the database cannot be reached.

        Raises Invalid for an unknown connection.
        """

    # Registering

    def columns(self, source: Source) -> SourceColumns:
        def look(session: Session) -> SourceColumns:
            table = _found(session, source.path, "source")
            return SourceColumns(table.names, table.types, typed=True)

        return self._looked(source, look)

    def inspect(self, source: Source, card: Card) -> Inspection:
        def look(session: Session) -> Inspection:
            table = _found(session, source.path, "source")
            check_fit(card, table, parsed=False)
            state = session.state(source.path)
            content = self._content(session, [table])
            celled = self._whole_rows(session, card, table)
            if session.state(source.path) != state:
                raise EngineUnavailable("The source changed while it was read.")
            place = session.place(source.path)
            return Inspection(_digest(state), content, place, celled=celled)

        return self._looked(source, look)

    def inspect_epoch(self, dataset: Dataset, path: str) -> EpochInspection:
        card = dataset.card

        def look(session: Session) -> EpochInspection:
            new = _found(session, path, "append")
            tables = [_found(session, name, "append") for name in dataset.paths]
            _check_epoch(card, tables[0], new)
            state = session.state(path)
            content = self._content(session, [new])
            together = self._content(session, [*tables, new])
            (found,) = session.rows(written(_count(new.rows), self.dialect))
            if session.state(path) != state:
                raise EngineUnavailable("The source changed while it was read.")
            place, empty = session.place(path), int(found[0]) == 0
            return EpochInspection(_digest(state), content, place, together, empty)

        return self._looked(dataset.source, look)

    def _content(self, session: Session, tables: Sequence[Table]) -> str:
        statement = written(content_statement(tables), self.dialect)
        (row,) = whole_numbers(session.rows(statement))
        return content_of(row)

    def _whole_rows(self, session: Session, card: Card, table: Table) -> str | None:
        if card.cells is None:
            return None
        named = named_rows(table)
        raw = table_rows(card, replace(table, rows=named.rows))
        statement = whole_rows_statement(card, raw, named.text)
        (row,) = whole_numbers(session.rows(written(statement, self.dialect)))
        return whole_rows_of(table, row)

    def figures(self, dataset: Dataset) -> Figures:
        """Private counts, for the owner alone. Raises SourceChanged."""
        card = dataset.card

        def look(session: Session) -> Figures:
            _must_be_registered(session, dataset)
            tables = [_found(session, name, "source") for name in dataset.paths]
            sources = [table_rows(card, each) for each in tables]

            def ask(statement: Select[*tuple[Any, ...]]) -> Sequence[Any]:
                (row,) = whole_numbers(session.rows(written(statement, self.dialect)))
                return row

            return figures(dataset, tables, sources, ask)

        return self._looked(dataset.source, look)

    def _looked(self, source: Source, look: Callable[[Session], T]) -> T:
        try:
            with self._session(source, ingesting=True) as session:
                return look(session)
        except (Invalid, EngineUnavailable):
            raise
        except Exception:  # noqa: BLE001, S110 - the text of any error may quote a cell
            pass
        raise EngineUnavailable("The source cannot be read as the registered table.")

    # Asking

    def prepared(self) -> list[str]:
        return []

    def drop(self, version_id: str) -> bool:
        return False

    def ready(self, dataset: Dataset) -> bool:
        """Always False: nothing is prepared, and `prepare` checks every time."""
        return False

    def is_missing(self, dataset: Dataset) -> bool:
        """Always False: there are no prepared files, and each query checks the tables again."""
        return False

    def prepare(self, dataset: Dataset) -> None:
        with self._asking(dataset):
            pass

    @override
    def _asking(self, dataset: Dataset) -> AbstractContextManager[EngineSession]:
        return _Asking(self, dataset)

    @override
    def _graph(self, asking: RemoteEngineSession, request: GraphCountsRequest) -> GraphCounts:
        ((size,),) = asking.rows(edge_count(asking.layout, request))
        must_be_held(size)
        edges = asking.batches(all_edges(asking.layout, request), BATCH)
        return count_edges(edges, asking.must_have_time)

    @override
    def records(self, dataset: Dataset, request: Records) -> Iterable[Matrix]:
        def read() -> Iterator[Matrix]:
            with self._asking(dataset) as asking:
                statement = asking.layout.written(selected_records(asking.layout, request))
                for rows in asking.batches(statement, RECORDS_BATCH):
                    yield np.asfortranarray(np.array(rows, dtype=np.int64))

        return KeptRecords(read)

    def _layout(self, dataset: Dataset, session: Session) -> Layout:
        """Layout of a version whose tables are in the registered state."""
        with self._lock:
            layout = self._layouts.get(dataset.version.id)
        if layout is None:
            tables = [session.table(name) for name in dataset.paths]
            known = [table for table in tables if table is not None]
            if len(known) < len(tables):
                raise EngineUnavailable(UNREACHABLE)
            card, seed = dataset.card, dataset.version.seed
            rows = cleaned_rows(card, [table_rows(card, table) for table in known], seed)
            layout = Layout(card, self.dialect, rows.subquery(TABLE))
            with self._lock:
                self._layouts[dataset.version.id] = layout
                while len(self._layouts) > LAYOUTS_MAX:
                    self._layouts.popitem(last=False)
        return layout


class _Asking(AbstractContextManager[RemoteEngineSession]):
    """A session on tables that are in the registered state."""

    def __init__(self, engine: RemoteEngine, dataset: Dataset) -> None:
        self._engine = engine
        self._dataset = dataset
        self._open: AbstractContextManager[Session] | None = None

    @override
    def __enter__(self) -> RemoteEngineSession:
        engine, dataset = self._engine, self._dataset
        try:
            opened = engine._session(dataset.source)
            session = opened.__enter__()
        except Invalid:
            raise EngineUnavailable(UNREACHABLE) from None
        try:
            return RemoteEngineSession(session, self._known(session))
        except BaseException as error:
            opened.__exit__(type(error), error, None)
            if isinstance(error, EngineUnavailable) or not isinstance(error, Exception):
                raise
        finally:
            self._open = opened
        raise EngineUnavailable(UNREACHABLE)  # no row has been read yet

    def _known(self, session: Session) -> Layout:
        _must_be_registered(session, self._dataset)
        return self._engine._layout(self._dataset, session)

    @override
    def __exit__(self, *error: Any) -> None:
        assert self._open is not None
        self._open.__exit__(*error)


def _must_be_registered(session: Session, dataset: Dataset) -> None:
    states = [_digest(session.state(name)) for name in dataset.paths]
    if states != dataset.digests:
        raise SourceChanged(CHANGED)


def whole_numbers(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows with integers: sums arrive as decimals without a fraction; a column has one type."""
    if not rows or not any(type(each) is Decimal for each in rows[0]):
        return rows
    return [tuple(_whole(each) if type(each) is Decimal else each for each in row) for row in rows]


def _whole(number: Decimal) -> int:
    if number != number.to_integral_value():
        raise TypeError("an exact statistic must be an integer")
    return int(number)


def _digest(state: str) -> str:
    return hashlib.sha256(state.encode()).hexdigest()


def _found(session: Session, name: str, member: str) -> Table:
    table = session.table(name)
    if table is None:
        folder = session.may_be_path(name)
        at, rule = ("path", NO_FOLDER) if folder else ("table", session.why_no_table(name))
        raise Invalid.field(f"/{member}/{at}", rule)
    return table


def _check_epoch(card: Card, first: Table, new: Table) -> None:
    fits = sorted(first.names) == sorted(new.names)
    try:
        check_fit(card, new, parsed=False)
    except Invalid:
        fits = False
    if fits and isinstance(card.person, ColumnPerson):
        places = [(each, each.position(card.person.column)) for each in (first, new)]
        fits = len({each.types[place] for each, place in places if place is not None}) == 1
    if not fits:
        raise Invalid.field("/append/table", OTHER.replace("a file", "a table"))


def _count(rows: FromClause) -> Select[*tuple[Any, ...]]:
    return select(func.count()).select_from(rows)
