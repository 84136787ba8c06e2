"""Exact statistics of each block, defined as the queries of the same name.

The result of a block depends on its own rows alone. The engine returns one or a few integers per
block (`block_tally.py`), and `value` turns them into an exact fraction in the statistic's own unit.
A block without rows has no result, except a count and a sum, which are 0. A regression has none if
the rows do not determine it.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.data.card import Card
from app.data.columns import BooleanColumn, CategoryColumn, DateColumn, IntegerColumn, NumberColumn
from app.errors import Invalid
from app.queries.block_tally import Added, AtRanks, Commonest, Meets, Steps, Trimmed
from app.queries.blocks.regression import BlockRegression
from app.queries.blocks.value import HERE, BlockValue, step
from app.queries.filters import declared, resolve, typed
from app.queries.ranks.quantile import Share
from app.queries.ranks.trimmed_mean import Trim
from app.queries.shapes.sums import numeric
from app.queries.sums.ratio import Part, divided, must_be_either
from app.queries.sums.variance import CentredGrid
from app.queries.tally import CategoryIndex, CentredBucket, Compare, Condition, IsMissing, Negation

_RANKS = {"median": ((1, 2),), "min": ((0, 1),), "max": ((1, 1),), "iqr": ((1, 4), (3, 4))}


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class BlockColumn(_Frozen):
    """`{"kind": "quantile", "column": ..., "q": ...}`"""

    kind: Literal["mean", "sum", "variance", "median", "quantile", "min", "max", "iqr"]
    column: str
    q: Share | None = None

    @model_validator(mode="after")
    def _share(self) -> Self:
        if (self.q is not None) != (self.kind == "quantile"):
            raise ValueError("q is required for quantile and allowed only there")
        return self

    def computed(self, card: Card) -> BlockValue:
        column = numeric(card, self.column, f"{HERE}/column")
        unit, read, total = step(column), (Steps(column.name),), Added(((0,),))
        match self.kind:
            case "mean":
                return BlockValue(read, total, lambda sums: unit * sums[1] / sums[0])
            case "sum":
                return BlockValue(read, total, lambda sums: unit * sums[1], Fraction(0))
            case "variance":
                return _variance(column)
            case "quantile":
                assert self.q is not None
                ranks: tuple[tuple[int, int], ...] = (Fraction(self.q).as_integer_ratio(),)
            case kind:
                ranks = _RANKS[kind]
        if len(ranks) == 1:
            return BlockValue(read, AtRanks(ranks), lambda values: unit * values[0])
        return BlockValue(read, AtRanks(ranks), lambda values: unit * (values[1] - values[0]))


class BlockTrimmedMean(_Frozen):
    """`{"kind": "trimmed_mean", "column": ..., "trim": 0.1}`"""

    kind: Literal["trimmed_mean"]
    column: str
    trim: Trim

    def computed(self, card: Card) -> BlockValue:
        column = numeric(card, self.column, f"{HERE}/column")
        unit = step(column)
        a, b = Fraction(self.trim).as_integer_ratio()

        def value(sums: Sequence[int]) -> Fraction:
            n, total = sums
            return unit * Fraction(total, n - 2 * (n * a // b))

        return BlockValue((Steps(column.name),), Trimmed((a, b)), value)


class BlockCount(_Frozen):
    """`{"kind": "count"}`"""

    kind: Literal["count"]

    def computed(self, card: Card) -> BlockValue:
        return BlockValue((), Added(), lambda numbers: Fraction(numbers[0]), Fraction(0))


class BlockRatio(_Frozen):
    """`{"kind": "ratio", "numerator": {"where": ...}}`, or
    `{"kind": "ratio", "numerator": {"column": ...}, "denominator": {"column": ...}}`"""

    kind: Literal["ratio"]
    numerator: Part
    denominator: Part | None = None

    def computed(self, card: Card) -> BlockValue:
        must_be_either(self.numerator, self.denominator, HERE)
        if self.denominator is None:
            met = resolve(self.numerator.where, card, f"{HERE}/numerator/where")
            assert met is not None
            return _share(met)
        above, below = divided(self.numerator, self.denominator, card, HERE)
        unit = step(above) / step(below)
        return BlockValue(
            (Steps(above.name), Steps(below.name)),
            Added(((0,), (1,))),
            lambda sums: unit * Fraction(sums[1], sums[2]),
        )


class BlockCdf(_Frozen):
    """The share of values that are at most an edge: `{"kind": "cdf", "column": ..., "edge": 40}`"""

    kind: Literal["cdf"]
    column: str
    edge: int | float | str

    def computed(self, card: Card) -> BlockValue:
        column = declared(card, self.column, f"{HERE}/column")
        if not isinstance(column, IntegerColumn | NumberColumn | DateColumn):
            raise Invalid.field(f"{HERE}/column", "must be an integer, number or date column")
        below = Compare(column.name, "<=", typed(column, self.edge, f"{HERE}/edge"))
        return _share(below, Negation(IsMissing(column.name)))


class BlockMode(_Frozen):
    """`{"kind": "mode", "column": ...}`"""

    kind: Literal["mode"]
    column: str

    def values(self, card: Card) -> tuple[str, ...] | tuple[bool, ...]:
        column = declared(card, self.column, f"{HERE}/column")
        if not isinstance(column, CategoryColumn | BooleanColumn):
            raise Invalid.field(f"{HERE}/column", "must be a category or boolean column")
        return column.values if isinstance(column, CategoryColumn) else (False, True)

    def computed(self, card: Card) -> BlockValue:
        return BlockValue(
            (CategoryIndex(self.column),), Commonest(), lambda numbers: Fraction(numbers[0])
        )


BlockStatistic = Annotated[
    BlockColumn
    | BlockTrimmedMean
    | BlockCount
    | BlockRatio
    | BlockCdf
    | BlockMode
    | BlockRegression,
    Field(discriminator="kind"),
]


def _share(met: Condition, *present: Condition) -> BlockValue:
    """Share of the rows that meet a condition."""
    return BlockValue(
        (Meets(met),),
        Added(((0,),)),
        lambda sums: Fraction(sums[1], sums[0]),
        present=present,
    )


def _variance(column: IntegerColumn | NumberColumn) -> BlockValue:
    grain = CentredGrid(column).grain
    square = (grain * step(column)) ** 2

    def value(sums: Sequence[int]) -> Fraction:
        n, total, squares = sums
        return square * Fraction(n * squares - total**2, n**2)

    bucket = CentredBucket(column.name, column.steps[0], grain, 0)
    return BlockValue((bucket,), Added(((0,), (0, 0))), value)
