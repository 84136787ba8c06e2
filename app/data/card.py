"""Card of a dataset: its public declaration.

Everything a price may depend on is here, and nothing here was read from a row. Values are made to
fit the card when a version of the data is prepared (`engines/files/prepare.py`). So every value
that a query sees is in bounds, in the list, or missing.
"""

import datetime
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    field_validator,
    model_validator,
)

from app.data.columns import (
    CELLS_MAX,
    BooleanColumn,
    CategoryColumn,
    Column,
    DateColumn,
    EpochColumn,
    Frozen,
    IntegerColumn,
    NumberColumn,
    TextColumn,
    day,
    held_bounds,
    lookup_keys,
)
from app.data.expressions import (
    Expression,
)
from app.data.operands import Operand, check_number, check_texts, check_truths, check_uses
from app.names import folded
from app.nearest import did_you_mean

COLUMNS_MAX = 500
EDGE_MAX = 10**18
ROWS_MAX = 1 << 40
EPOCHS_MAX = 4096  # a new version reads the files of all epochs again


class RowPerson(Frozen):
    """Each row is one person."""

    kind: Literal["row"]

    @property
    def rows_max(self) -> int:
        return 1


class ColumnPerson(Frozen):
    """Rows that share an identifier are one person; at most `rows_max` of their rows are kept."""

    kind: Literal["column"]
    column: Annotated[str, Field(min_length=1, max_length=100)]
    rows_max: Annotated[int, Field(ge=1, le=100_000)]


class EdgePerson(Frozen):
    """The rows are edges of a graph, and each edge is one person.

    Privacy hides whether two nodes are joined, not facts about a node. Its two `ends` are
    integer columns with equal bounds, which define the public nodes. Edges have no direction:
    the smaller end is stored first. An edge from a node to itself or to a number that is no node
    is dropped, and a repeated edge is stored once."""

    kind: Literal["edge"]
    ends: Annotated[tuple[str, ...], Field(min_length=2, max_length=2)]

    @field_validator("ends", mode="before")
    @classmethod
    def _from_json_list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @property
    def rows_max(self) -> int:
        return 1


Person = Annotated[RowPerson | ColumnPerson | EdgePerson, Field(discriminator="kind")]
Neighbours = Literal["add_remove", "replace_one"]


class Cells(Frozen):
    """A public partition of the persons: a column's values, or the intervals between edges.

    Intervals include their lower edge, the last one its upper edge too. Persons whose value is
    missing are in one more cell, which is not declared.

    Where a person may have several rows, `one_per_person` is the owner's promise that all of
    them are in one cell. The engine enforces it: it keeps only the rows of one cell for such a
    person (`engines/sql/cleaning.py`)."""

    column: str
    edges: tuple[float, ...] | tuple[datetime.date, ...] | None = None
    one_per_person: bool = False

    @field_validator("edges", mode="before")
    @classmethod
    def _from_json_list(cls, value: object) -> object:
        # Check for one kind of edge before pydantic tries both: its errors would name its own
        # types.
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise ValueError("edges must be a list")
        edges = tuple(map(_edge, value))
        if len({type(edge) for edge in edges}) > 1:
            raise ValueError("edges must be all numbers or all dates")
        return edges


def _edge(value: object) -> float | datetime.date:
    if isinstance(value, str):
        return day(value)
    if isinstance(value, datetime.date):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= EDGE_MAX:
        raise ValueError("an edge must be a number between -1e18 and 1e18, or a date")
    return float(value)


class Card(Frozen):
    """The public description a dataset is registered with."""

    person: Person
    neighbours: Neighbours
    rows: Annotated[int, Field(ge=1, le=ROWS_MAX)] | None = None
    # approximate number of rows; public
    size: Annotated[int, Field(ge=1, le=ROWS_MAX)] | None = None
    columns: Annotated[
        tuple[Annotated[Column, Field(discriminator="type")], ...],
        Field(min_length=1, max_length=COLUMNS_MAX),
    ]
    cells: Cells | None = None

    @field_validator("columns", mode="before")
    @classmethod
    def _from_json_list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [folded(column.name) for column in self.columns]
        if len(set(names)) != len(names):
            raise ValueError("each column may be declared only once (letter case does not count)")
        if self.neighbours == "replace_one" and self.rows is None:
            raise ValueError("replace_one needs the public number of rows")
        if self.neighbours == "add_remove" and self.rows is not None:
            raise ValueError("under add_remove the number of rows is private: leave rows out")
        if isinstance(self.person, ColumnPerson) and folded(self.person.column) in names:
            raise ValueError("the person column must not be among the declared columns")
        if isinstance(self.person, EdgePerson):
            self._must_have(self.person)
        for declared_column in self.columns:
            if declared_column.derived is not None:
                _check_derived(declared_column, declared_column.derived, self)
        if self.cells is not None:
            column = self.column(self.cells.column)
            if column is None:
                known = [declared_column.name for declared_column in self.columns]
                near = did_you_mean(self.cells.column, known)
                raise ValueError(f"cells must name a declared column{near}")
            if isinstance(column, TextColumn):
                raise ValueError("a text column has no cells: its values are not public")
            if not cells_fit(column, self.cells):
                raise ValueError(
                    "cells must be a category's values, a boolean, epochs, or increasing edges "
                    "from low to high"
                )
            if self.cells.one_per_person and not isinstance(self.person, ColumnPerson):
                raise ValueError("one_per_person needs persons identified by a column")
            if cell_count(column, self.cells) > CELLS_MAX:
                raise ValueError(f"there may be at most {CELLS_MAX} cells")
        return self

    def _must_have(self, edge: EdgePerson) -> None:
        ends = [self.column(name) for name in dict.fromkeys(edge.ends)]
        bounds = {(end.low, end.high) for end in ends if isinstance(end, IntegerColumn)}
        if not all(isinstance(end, IntegerColumn) for end in ends):
            raise ValueError("the ends of an edge must be declared integer columns")
        if len(ends) != 2 or len(bounds) != 1:
            raise ValueError("the ends of an edge must be two columns with equal bounds")
        if self.neighbours != "add_remove":
            raise ValueError("edges need add_remove neighbours: an edge is present or absent")

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    def column(self, name: str) -> Column | None:
        return self._by_name.get(name)


def _check_derived(column: Column, expression: Expression, card: Card) -> None:
    """Check that it uses only source columns, and stays within the range every engine can
    compute."""
    if isinstance(card.person, EdgePerson) and column.name in card.person.ends:
        raise ValueError("the ends of an edge must be source columns, not derived")
    known = {other.name: _operand(other) for other in card.columns if other.sourced}
    check_uses(expression, known)
    match column:
        case IntegerColumn() | NumberColumn() if not isinstance(column, EpochColumn):
            check_number(expression, known)
        case BooleanColumn():
            check_truths(expression)
        case CategoryColumn():
            check_texts(expression, column.values)
        case _:
            raise ValueError("a derived column must be an integer, number, boolean or category")


def _operand(column: Column) -> Operand:
    keys = partial(lookup_keys, column)
    match column:
        case IntegerColumn() | NumberColumn():
            return Operand(bounds=held_bounds(column), keys=keys)
        case CategoryColumn():
            return Operand(values=column.values, keys=keys)
        case BooleanColumn():
            return Operand(truth=True, keys=keys)
        case _:
            return Operand()


def cells_fit(column: Column, cells: Cells) -> bool:
    edges = cells.edges
    match column:
        case CategoryColumn() | BooleanColumn() | EpochColumn():
            return edges is None
        case IntegerColumn() | NumberColumn():
            return edges is not None and _cover(edges, column.low, column.high, float)
        case DateColumn():
            return edges is not None and _cover(edges, column.low, column.high, datetime.date)
        case TextColumn():
            return False


def _cover(edges: tuple[Any, ...], low: Any, high: Any, kind: type) -> bool:
    return (
        len(edges) >= 2
        and all(isinstance(edge, kind) for edge in edges)
        and all(lower < upper for lower, upper in pairwise(edges))
        and edges[0] <= low
        and edges[-1] >= high
    )


def cell_count(column: Column, cells: Cells) -> int:
    """Number of declared cells, without the cell of missing values."""
    if cells.edges is not None:
        return len(cells.edges) - 1
    if isinstance(column, EpochColumn):
        return column.high
    return len(column.values) if isinstance(column, CategoryColumn) else 2


@dataclass(frozen=True, slots=True)
class Source:
    """Location of the rows: an engine and the data it needs to find them.

    A connection is a name; its meaning is the operator's secret."""

    engine: str
    path: str  # path of a file, or name of a table
    connection: str | None = None


@dataclass(frozen=True, slots=True)
class Epoch:
    """A file of rows that arrived later."""

    path: str
    digest: str  # SHA-256 of its bytes
    mark: str = ""  # keyed hash of its rows in any order; empty for a file without rows


@dataclass(frozen=True, slots=True)
class Version:
    """One immutable state of a dataset's rows: those of its source and of the epochs after it.

    Its number is that of the newest epoch; the source is epoch 1."""

    id: str
    number: int
    digest: str  # SHA-256 of the source's bytes
    # secret seed that selects the kept rows of a person with too many; equal within a book
    seed: str
    appended: tuple[Epoch, ...] = ()


@dataclass(frozen=True, slots=True)
class Dataset:
    """A registered dataset as the service uses it."""

    id: str
    name: str
    description: str
    book_id: str  # the loss book: shared by every name for the same data
    card: Card
    source: Source
    version: Version
    closed: bool
    created_at: int  # microseconds since 1970
    celled: bool = False  # true if this dataset, or another name of its book, has declared cells

    @property
    def paths(self) -> list[str]:
        """Paths of the rows of every epoch, the source's first."""
        return [self.source.path, *(epoch.path for epoch in self.version.appended)]

    @property
    def digests(self) -> list[str]:
        """Registered digest of each of the paths."""
        return [self.version.digest, *(epoch.digest for epoch in self.version.appended)]
