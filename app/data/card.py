"""What is publicly declared about a dataset: its card.

Everything a price may depend on is here, and nothing here was read from a row. Values are made to
fit the card when a version of the data is prepared (`engines/files/prepare.py`), so that a question
meets a table in which every value is in bounds, in the list, or missing.
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
    """Rows that share an identifier are one person, of whom at most `rows_max` rows are kept."""

    kind: Literal["column"]
    column: Annotated[str, Field(min_length=1, max_length=100)]
    rows_max: Annotated[int, Field(ge=1, le=100_000)]


class EdgePerson(Frozen):
    """The rows are edges of a graph, and each edge is one person: privacy hides whether two nodes
    are joined, not what is known of a node. Its two `ends` are integer columns of the same bounds,
    which are the public nodes. Edges have no direction: the smaller end is held first, an edge from
    a node to itself or to a number that is no node is dropped, and one that is repeated is held
    once."""

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

    Intervals hold their lower edge, the last one its upper edge too. Persons whose value is missing
    are in one more cell, which is not declared.

    Where a person may have several rows, `one_per_person` is the owner's promise that all of them
    are in one cell. Under this name it is kept for them: of a person in several cells the rows of
    one are kept (`engines/sql/cleaning.py`).
    """

    column: str
    edges: tuple[float, ...] | tuple[datetime.date, ...] | None = None
    one_per_person: bool = False

    @field_validator("edges", mode="before")
    @classmethod
    def _from_json_list(cls, value: object) -> object:
        # Whole and of one kind before pydantic tries both: its errors would name its own types.
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise ValueError("edges are a list")
        edges = tuple(map(_edge, value))
        if len({type(edge) for edge in edges}) > 1:
            raise ValueError("edges are all numbers or all dates")
        return edges


def _edge(value: object) -> float | datetime.date:
    if isinstance(value, str):
        return day(value)
    if isinstance(value, datetime.date):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= EDGE_MAX:
        raise ValueError("an edge is a number between -1e18 and 1e18, or a date")
    return float(value)


class Card(Frozen):
    """The public description a dataset is registered with."""

    person: Person
    neighbours: Neighbours
    rows: Annotated[int, Field(ge=1, le=ROWS_MAX)] | None = None
    size: Annotated[int, Field(ge=1, le=ROWS_MAX)] | None = None  # about how many rows; public
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
            raise ValueError("each column is declared once (letter case does not count)")
        if self.neighbours == "replace_one" and self.rows is None:
            raise ValueError("replace_one needs the public number of rows")
        if self.neighbours == "add_remove" and self.rows is not None:
            raise ValueError("under add_remove the number of rows is private: leave rows out")
        if isinstance(self.person, ColumnPerson) and folded(self.person.column) in names:
            raise ValueError("the person column is not among the columns that may be asked about")
        if isinstance(self.person, EdgePerson):
            self._must_have(self.person)
        for each in self.columns:
            if each.derived is not None:
                _check_derived(each, each.derived, self)
        if self.cells is not None:
            column = self.column(self.cells.column)
            if column is None:
                known = [each.name for each in self.columns]
                near = did_you_mean(self.cells.column, known)
                raise ValueError(f"cells name a declared column{near}")
            if isinstance(column, TextColumn):
                raise ValueError("a text column has no cells: its values are not public")
            if not cells_fit(column, self.cells):
                raise ValueError(
                    "cells are a category's values, a boolean, epochs, or increasing edges from "
                    "low to high"
                )
            if self.cells.one_per_person and not isinstance(self.person, ColumnPerson):
                raise ValueError("one_per_person is for persons who are told apart by a column")
            if cell_count(column, self.cells) > CELLS_MAX:
                raise ValueError(f"at most {CELLS_MAX} cells")
        return self

    def _must_have(self, edge: EdgePerson) -> None:
        ends = [self.column(name) for name in dict.fromkeys(edge.ends)]
        bounds = {(end.low, end.high) for end in ends if isinstance(end, IntegerColumn)}
        if not all(isinstance(end, IntegerColumn) for end in ends):
            raise ValueError("the ends of an edge are declared integer columns")
        if len(ends) != 2 or len(bounds) != 1:
            raise ValueError("the ends of an edge are two columns of the same bounds")
        if self.neighbours != "add_remove":
            raise ValueError("an edge is there or not: its neighbours are add_remove")

    @cached_property
    def _by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    def column(self, name: str) -> Column | None:
        return self._by_name.get(name)


def _check_derived(column: Column, expression: Expression, card: Card) -> None:
    """Of columns that stand in the source alone, and within what every engine can compute."""
    if isinstance(card.person, EdgePerson) and column.name in card.person.ends:
        raise ValueError("the ends of an edge stand in the source")
    known = {each.name: _operand(each) for each in card.columns if each.sourced}
    check_uses(expression, known)
    match column:
        case IntegerColumn() | NumberColumn() if not isinstance(column, EpochColumn):
            check_number(expression, known)
        case BooleanColumn():
            check_truths(expression)
        case CategoryColumn():
            check_texts(expression, column.values)
        case _:
            raise ValueError("a derived column is an integer, a number, a boolean or a category")


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
    """How many cells are declared: the missing values' cell is not among them."""
    if cells.edges is not None:
        return len(cells.edges) - 1
    if isinstance(column, EpochColumn):
        return column.high
    return len(column.values) if isinstance(column, CategoryColumn) else 2


PLAIN = 1  # "1.0" is no boolean and no category "1"
WITH_FRACTIONS = 2  # "1.0" is read as "1"


@dataclass(frozen=True, slots=True)
class Source:
    """Where the rows are: an engine and what it needs to find them. A connection is a name: what it
    stands for is the operator's secret."""

    engine: str
    path: str  # of a file; the name of a table
    connection: str | None = None
    # How texts are read as values. A dataset keeps the one it was registered with: under another,
    # persons could be in another cell than the one that bears their loss.
    reading: int = WITH_FRACTIONS


@dataclass(frozen=True, slots=True)
class Epoch:
    """A file of rows that arrived later."""

    path: str
    digest: str  # SHA-256 of its bytes
    mark: str = ""  # a keyed hash of its rows in any order; empty for a file without rows


@dataclass(frozen=True, slots=True)
class Version:
    """One immutable state of a dataset's rows: those of its source and of the epochs after it. Its
    number is that of the newest epoch; the source is epoch 1."""

    id: str
    number: int
    digest: str  # SHA-256 of the source's bytes
    seed: str  # which rows of a person with too many are kept; secret, the same in all of a book
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
    celled: bool = False  # has this dataset, or another name of its book, declared cells

    @property
    def paths(self) -> list[str]:
        """Where the rows of every epoch are, the source's first."""
        return [self.source.path, *(epoch.path for epoch in self.version.appended)]

    @property
    def digests(self) -> list[str]:
        """What was registered of each of the paths."""
        return [self.version.digest, *(epoch.digest for epoch in self.version.appended)]


@dataclass(frozen=True, slots=True)
class Inspection:
    """What registration learns of a source: nothing that a question could be answered from."""

    digest: str  # SHA-256 of the source's bytes: has the file changed since?
    content: str  # hash of the rows as a multiset, the same in every engine: is it known data?
    place: str  # where the source really is, however it was written
    parts: tuple[str, ...] = ()  # where its files are, if it is a folder
    celled: str | None = None  # hash of whole rows, column names and each row's cell, if declared


@dataclass(frozen=True, slots=True)
class EpochInspection:
    """What is learned of a file of rows that arrived later."""

    digest: str
    content: str
    place: str
    together: str  # content hash of the dataset with it, as if all rows were in one source
    empty: bool
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PrivateFiles:
    """Files that hold rows of datasets: where they are, and digests of all that ever did."""

    paths: tuple[str, ...] = ()
    digests: frozenset[str] = frozenset()
