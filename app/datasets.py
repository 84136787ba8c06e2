"""What is publicly declared about a dataset: its card.

Everything a price may depend on is here, and nothing here was read from a row. Values are made to
fit the card when a version of the data is prepared (`engines/prepare.py`), so that a question meets
a table in which every value is in bounds, in the list, or missing.
"""

import datetime
import math
import re
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from typing_extensions import override

from app.expressions import (
    LOOKUP_MAX,
    Bounds,
    Expression,
    key_text,
    parse_expression,
    written_expression,
)
from app.names import folded
from app.operands import Operand, check_number, check_texts, check_truths, check_uses

COLUMNS_MAX = 500
CATEGORIES_MAX = 100_000
EDGE_MAX = 10**18
CELLS_MAX = 256  # a charge may write one spend for each of them
ROWS_MAX = 1 << 40
EPOCHS_MAX = 4096  # a new version reads the files of all epochs again
GRID_BITS = 34  # the larger bound of a `number` column is near 2^34 steps of its grid
TEXT_LENGTH_MAX = 500
# White space and control characters: of a private text every run of them is held as one space.
TEXT_GAPS = (
    (0x00, 0x20),
    (0x7F, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


Derived = Annotated[
    Expression,
    PlainValidator(parse_expression),
    PlainSerializer(written_expression),
    WithJsonSchema(
        {
            "type": "object",
            "description": "What the column is computed from, row by row: {column}, {value}, "
            "{add}, {subtract}, {multiply}, {divide}, {case, else} or {lookup: {column, map}}. A "
            "registration may name a file instead of a map: {lookup: {column, table: {path, key, "
            "value}}}.",
            "examples": [{"divide": [{"column": "weight"}, {"column": "height"}]}],
        }
    ),
]


class _Column(_Frozen):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    description: Annotated[str, Field(max_length=1000)] | None = None
    derived: Derived | None = None

    @property
    def sourced(self) -> bool:
        """Does it stand in the source?"""
        return self.derived is None


class IntegerColumn(_Column):
    """Whole numbers between two bounds."""

    type: Literal["integer"]
    low: Annotated[int, Field(ge=-(1 << 53), le=1 << 53)]
    high: Annotated[int, Field(ge=-(1 << 53), le=1 << 53)]

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low >= self.high:
            raise ValueError("low must be less than high")
        return self

    @property
    def grid_exponent(self) -> int:
        return 0

    @property
    def steps(self) -> tuple[int, int]:
        return self.low, self.high


class EpochColumn(IntegerColumn):
    """The number of the epoch that a row came with: the first rows are of epoch 1, and `high` is
    the last one there may be. It stands in no source."""

    type: Literal["epoch"]  # type: ignore[assignment]  # an integer column in all but its source
    low: Annotated[int, Field(ge=1, le=1)] = 1
    high: Annotated[int, Field(ge=2, le=CELLS_MAX - 1)] = 120

    @property
    @override
    def sourced(self) -> bool:
        return False


class NumberColumn(_Column):
    """Real numbers between two bounds, held as whole steps of a power-of-two grid."""

    type: Literal["number"]
    low: Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]
    high: Annotated[float, Field(ge=-1e15, le=1e15, allow_inf_nan=False)]

    @field_validator("low", "high", mode="before")
    @classmethod
    def _whole_numbers_too(cls, value: object) -> object:
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low >= self.high:
            raise ValueError("low must be less than high")
        if max(abs(self.low), abs(self.high)) < 1e-9:
            raise ValueError("one bound must be at least 1e-9 away from zero")
        if any(0.0 < abs(bound) < 1e-100 for bound in (self.low, self.high)):
            raise ValueError("a bound is zero or at least 1e-100 away from it")
        return self

    @property
    def grid_exponent(self) -> int:
        """k: the grid is 2^-k, so that the larger bound is about 2^34 steps."""
        return GRID_BITS - math.frexp(max(abs(self.low), abs(self.high)))[1]

    @property
    def steps(self) -> tuple[int, int]:
        """The bounds in whole steps; multiplying by a power of two and flooring are exact."""
        k = self.grid_exponent
        return math.floor(math.ldexp(self.low, k)), math.floor(math.ldexp(self.high, k))


class CategoryColumn(_Column):
    """One of a public list of texts."""

    type: Literal["category"]
    values: Annotated[tuple[str, ...], Field(min_length=1, max_length=CATEGORIES_MAX)]

    @field_validator("values", mode="before")
    @classmethod
    def _from_json_list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    @field_validator("values")
    @classmethod
    def _distinct(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(values)) != len(values):
            raise ValueError("each category is listed once")
        if any(len(value) > 200 for value in values):
            raise ValueError("a category has at most 200 characters")
        return values


class BooleanColumn(_Column):
    type: Literal["boolean"]


class DateColumn(_Column):
    """Days between two bounds."""

    type: Literal["date"]
    low: datetime.date
    high: datetime.date

    @field_validator("low", "high", mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return day(value) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low >= self.high:
            raise ValueError("low must be before high")
        return self


class TextColumn(_Column):
    """Texts that are not public: which of them there are is told by a question that pays for it.

    Runs of white space and control characters are held as one space, none at either end; a text of
    more than `length_max` characters is missing, and so is an empty one.
    """

    type: Literal["text"]
    length_max: Annotated[int, Field(ge=1, le=TEXT_LENGTH_MAX)] = 100

    def could_hold(self, text: str) -> bool:
        """Is it a text as the column holds them?"""
        return (
            0 < len(text) <= self.length_max
            and text == _GAP.sub(" ", text).strip(" ")
            and not _SURROGATE.search(text)
        )


_GAP = re.compile("[" + "".join(f"{chr(low)}-{chr(high)}" for low, high in TEXT_GAPS) + "]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
Column = (
    IntegerColumn
    | EpochColumn
    | NumberColumn
    | CategoryColumn
    | BooleanColumn
    | DateColumn
    | TextColumn
)


def day(text: str) -> datetime.date:
    """A date written YYYY-MM-DD, and no other way."""
    if not _DAY.fullmatch(text):  # ISO has weeks and other forms too
        raise ValueError("a date is written YYYY-MM-DD")
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise ValueError("a date is written YYYY-MM-DD") from None


class RowPerson(_Frozen):
    """Each row is one person."""

    kind: Literal["row"]

    @property
    def rows_max(self) -> int:
        return 1


class ColumnPerson(_Frozen):
    """Rows that share an identifier are one person, of whom at most `rows_max` rows are kept."""

    kind: Literal["column"]
    column: Annotated[str, Field(min_length=1, max_length=100)]
    rows_max: Annotated[int, Field(ge=1, le=100_000)]


class EdgePerson(_Frozen):
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


class Cells(_Frozen):
    """A public partition of the persons: a column's values, or the intervals between edges.

    Intervals hold their lower edge, the last one its upper edge too. Persons whose value is missing
    are in one more cell, which is not declared.

    Where a person may have several rows, `one_per_person` is the owner's promise that all of them
    are in one cell. Under this name it is kept for them: of a person in several cells the rows of
    one are kept (`engines/cleaning.py`).
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


class Card(_Frozen):
    """The public description a dataset is registered with."""

    person: Person
    neighbours: Neighbours
    rows: Annotated[int, Field(ge=1, le=ROWS_MAX)] | None = None
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
                raise ValueError("cells name a declared column")
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


def held_bounds(column: IntegerColumn | NumberColumn) -> Bounds:
    """In arithmetic a number is its whole steps, so that none is nearer to zero than one step."""
    low, high = (math.ldexp(float(step), -column.grid_exponent) for step in column.steps)
    return Bounds(low, high, math.ldexp(1.0, -column.grid_exponent))


def lookup_keys(column: Column | None) -> list[str]:
    """The keys that a look-up by the column can have, in the order of what is stored."""
    match column:
        case CategoryColumn():
            return list(column.values)
        case BooleanColumn():
            return [key_text(False), key_text(True)]
        case IntegerColumn() if column.high - column.low < LOOKUP_MAX:
            return [str(key) for key in range(column.low, column.high + 1)]
        case _:
            return []


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


@dataclass(frozen=True, slots=True)
class Source:
    """Where the rows are: an engine and what it needs to find them. A connection is a name: what it
    stands for is the operator's secret."""

    engine: str
    path: str  # of a file; the name of a table
    connection: str | None = None


@dataclass(frozen=True, slots=True)
class Epoch:
    """A file of rows that arrived later."""

    path: str
    digest: str  # SHA-256 of its bytes
    mark: str = ""  # a keyed hash of its rows in any order; older ledgers do not have it


@dataclass(frozen=True, slots=True)
class Version:
    """One immutable state of a dataset's rows: those of its source and of the epochs after it. Its
    number is that of the newest epoch; the source is epoch 1."""

    id: str
    number: int
    digest: str  # SHA-256 of the source's bytes
    seed: str  # which rows of a person with too many are kept; secret, the same on every server
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
