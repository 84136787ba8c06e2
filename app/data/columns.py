"""Column types that a card may declare, with their public bounds."""

import datetime
import math
import re
from functools import cached_property
from typing import Annotated, Literal, Self

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

from app.data.expression_bounds import Bounds
from app.data.expressions import (
    LOOKUP_MAX,
    Expression,
    key_text,
    parse_expression,
    written_expression,
)

CATEGORIES_MAX = 100_000
CELLS_MAX = 256  # a charge may write one spend for each of them
GRID_BITS = 34  # the larger bound of a `number` column is near 2^34 steps of its grid
TEXT_LENGTH_MAX = 500
_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
# White space and control characters: every run of them in a private text is stored as one space.
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


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


Derived = Annotated[
    Expression,
    PlainValidator(parse_expression),
    PlainSerializer(written_expression),
    WithJsonSchema(
        {
            "type": "object",
            "description": "Expression that computes the column row by row: {column}, {value}, "
            "{add}, {subtract}, {multiply}, {divide}, {case, else} or {lookup: {column, map}}. A "
            "registration may name a file instead of a map: {lookup: {column, table: {path, key, "
            "value}}}.",
            "examples": [{"divide": [{"column": "weight"}, {"column": "height"}]}],
        }
    ),
]


class _Column(Frozen):
    name: Annotated[str, Field(min_length=1, max_length=100)]
    description: Annotated[str, Field(max_length=1000)] | None = None
    derived: Derived | None = None

    @property
    def sourced(self) -> bool:
        """True if the column is in the source."""
        return self.derived is None


class IntegerColumn(_Column):
    """Integers between two bounds."""

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
    """Number of the epoch that a row arrived with; it is in no source.

    The first rows are of epoch 1, and `high` is the last epoch there may be."""

    type: Literal["epoch"]  # type: ignore[assignment]  # an integer column in all but its source
    low: Annotated[int, Field(ge=1, le=1)] = 1
    high: Annotated[int, Field(ge=2, le=CELLS_MAX - 1)] = 120

    @property
    @override
    def sourced(self) -> bool:
        return False


class NumberColumn(_Column):
    """Real numbers between two bounds, stored as integer steps of a power-of-two grid."""

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
            raise ValueError("a bound must be zero or at least 1e-100 away from it")
        return self

    @property
    def grid_exponent(self) -> int:
        """k: the grid is 2^-k, so that the larger bound is about 2^34 steps."""
        return GRID_BITS - math.frexp(max(abs(self.low), abs(self.high)))[1]

    @property
    def steps(self) -> tuple[int, int]:
        """The bounds in integer steps; multiplying by a power of two and flooring are exact."""
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
            raise ValueError("each category may be listed only once")
        if any(len(value) > 200 for value in values):
            raise ValueError("a category may have at most 200 characters")
        return values

    @cached_property
    def known(self) -> frozenset[str]:
        """The values for tests of membership: a search through 100,000 would take milliseconds."""
        return frozenset(self.values)

    def texts(self) -> tuple[str, ...]:
        """The texts that are read as a value; text i means value i modulo the number of values.

        If all values are integers, "1.0" means "1": programs that store missing values as numbers
        write it so."""
        if not all(_WHOLE.fullmatch(value) for value in self.values):
            return self.values
        return (*self.values, *(f"{value}.0" for value in self.values))


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
    """Texts that are not public: a query must pay to learn which texts there are.

    Runs of white space and control characters are stored as one space, none at either end. A
    text of more than `length_max` characters is missing, and so is an empty one."""

    type: Literal["text"]
    length_max: Annotated[int, Field(ge=1, le=TEXT_LENGTH_MAX)] = 100

    def could_hold(self, text: str) -> bool:
        """True if the text has the form in which the column stores texts."""
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
        raise ValueError("a date must be written YYYY-MM-DD")
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise ValueError("a date must be written YYYY-MM-DD") from None


def held_bounds(column: IntegerColumn | NumberColumn) -> Bounds:
    """Bounds of a number in arithmetic: it is its integer steps, so none is nearer to zero than
    a step."""
    low, high = (math.ldexp(float(step), -column.grid_exponent) for step in column.steps)
    return Bounds(low, high, math.ldexp(1.0, -column.grid_exponent))


def lookup_keys(column: Column | None) -> list[str]:
    """Keys that a look-up by the column can have, in the order of the stored values."""
    match column:
        case CategoryColumn():
            return list(column.values)
        case BooleanColumn():
            return [key_text(False), key_text(True)]
        case IntegerColumn() if column.high - column.low < LOOKUP_MAX:
            return [str(key) for key in range(column.low, column.high + 1)]
        case _:
            return []
