"""Sample and aggregate: a statistic of each of many blocks of rows, and a noisy middle of them.

Theorem: Nissim, Raskhodnikova and Smith 2007. The k-th row that has a value v is in a block that v,
k and a secret seed decide (`statistics.BlockTally`). For any seed, tables that differ by one row
have blocks that differ by one value: v is there once more, which is the value of the next k. So a
person of m rows changes the values of at most m blocks, and one who is replaced of 2 m; all other
blocks hold what they held. Of hash and seed this asks nothing: they make blocks even.
(Blocks by a row's place in the table would all change with one row.)

What a block gives is brought between the public bounds `low` and `high`, on a grid of whole places
0 to W; a block without values gives the middle. So one changed block moves one of L places by at
most W. Of the aggregates, with t = min(L, m or 2 m) changed blocks:

    mean     the sum of the places moves by t W, and is told over L
    median   a choice among candidates by rank (`quantile.py`): of L places one that moves changes
             2 * (places below c) and 2 * (places at or below c) by 2 at most, hence a score by 2,
             up for one candidate and down for another: R = 4 for one place, 4 t for t

Whatever the statistic is like, however sensitive: this is all that one person can do. The interval
covers the noise, not how far the blocks' middle is from the statistic of all rows.
"""

from bisect import bisect_left, bisect_right
from fractions import Fraction
from math import floor, frexp
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from app.datasets import Card, IntegerColumn, NumberColumn
from app.errors import Invalid
from app.queries.choice_shape import ChoiceShape
from app.queries.derived_shape import DerivedShape
from app.queries.figures import Figure, Noisy, number
from app.queries.filters import Filter, declared, resolve
from app.queries.measures import Measure
from app.queries.quantile import Share
from app.queries.shape import AT, Shape
from app.queries.statistics import BlockCounts, BlockTally, Exact
from app.queries.variance import Grid

THEOREM = "Nissim, Raskhodnikova and Smith 2007 (sample and aggregate)"
BLOCKS_MAX = 10_000
PLACE_BITS = 20  # places between the bounds
CANDIDATES = 1001
MEDIAN_STEPS = 2  # of the score in one rank, as the median is q = 1 / 2


def _as_float(value: object) -> object:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


Bound = Annotated[float, BeforeValidator(_as_float), Field(ge=-1e30, le=1e30, allow_inf_nan=False)]


class BlockStatistic(BaseModel):
    """What is computed of each block: `{"kind": "quantile", "column": ..., "q": ...}`"""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["mean", "variance", "median", "quantile", "min", "max", "iqr"]
    column: str
    q: Share | None = None

    @model_validator(mode="after")
    def _share(self) -> Self:
        if (self.q is not None) != (self.kind == "quantile"):
            raise ValueError("q goes with quantile, which needs it")
        return self

    def ranks(self) -> tuple[tuple[int, int], ...]:
        """As shares of the rows; none where it is made of sums."""
        if self.q is not None:
            return (Fraction(self.q).as_integer_ratio(),)
        ranks = {
            "median": ((1, 2),),
            "min": ((0, 1),),
            "max": ((1, 1),),
            "iqr": ((1, 4), (3, 4)),
        }
        return ranks.get(self.kind, ())


class SampleAggregate(BaseModel):
    """`{"kind": "sample_aggregate", "statistic": {"kind": "median", "column": ...}, "blocks": 50,
    "low": ..., "high": ..., "aggregate": "median", "where": ...}`"""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["sample_aggregate"]
    statistic: BlockStatistic
    blocks: Annotated[int, Field(ge=2, le=BLOCKS_MAX)]
    low: Bound
    high: Bound
    aggregate: Literal["median", "mean"] = "median"
    where: Filter | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.low < self.high:
            raise ValueError("low must be less than high")
        return self

    def shape(self, card: Card) -> DerivedShape:
        if self.exponent > 200:
            raise Invalid.field(f"{AT}/high", "further from low: there is nothing between them")
        column = self._column(card)
        wanted = BlockTally(
            resolve(self.where, card, f"{AT}/where"),
            column.name,
            self.blocks,
            self.statistic.ranks(),
            low=column.steps[0],
            grain=Grid(column).grain if self.statistic.kind == "variance" else 1,
            squares=self.statistic.kind == "variance",
        )
        twice = 2 if card.neighbours == "replace_one" else 1
        changed = min(self.blocks, twice * card.person.rows_max)
        if self.aggregate == "median":
            shape: Shape | ChoiceShape = self._chosen(changed, wanted)
        else:
            shape = self._added(changed, wanted)

        def exact(counts: BlockCounts) -> Exact:
            places = self.places(counts, column)
            return (places,) if self.aggregate == "median" else ((sum(places),),)

        return DerivedShape(wanted, shape, exact, THEOREM, {"blocks": self.blocks})

    def _column(self, card: Card) -> IntegerColumn | NumberColumn:
        at = f"{AT}/statistic/column"
        column = declared(card, self.statistic.column, at)
        if not isinstance(column, IntegerColumn | NumberColumn):
            raise Invalid.field(at, "an integer or number column")
        return column

    # Places

    @property
    def exponent(self) -> int:
        """Places are 2^-exponent apart: about 2^PLACE_BITS of them between the bounds."""
        return PLACE_BITS - frexp(self.high - self.low)[1]

    @property
    def top(self) -> int:
        """W: the last place."""
        return self._place(Fraction(self.high))

    def _place(self, value: Fraction) -> int:
        inside = min(max(value, Fraction(self.low)), Fraction(self.high))
        return floor((inside - Fraction(self.low)) * Fraction(2) ** self.exponent)

    def places(self, counts: BlockCounts, column: IntegerColumn | NumberColumn) -> tuple[int, ...]:
        """One of each block, exactly."""
        places = [self.top // 2] * self.blocks
        for block, *numbers in counts:
            places[block] = self._place(self._value(numbers, column))
        return tuple(places)

    def _value(self, numbers: list[int], column: IntegerColumn | NumberColumn) -> Fraction:
        step = Fraction(1) / Fraction(2) ** column.grid_exponent
        if self.statistic.ranks():
            return (numbers[-1] - (numbers[0] if len(numbers) == 2 else 0)) * step
        count, total, squares = numbers
        if self.statistic.kind == "mean":
            return (column.steps[0] + Fraction(total, count)) * step
        return Fraction(count * squares - total**2, count**2) * (Grid(column).grain * step) ** 2

    # Aggregates

    def _added(self, changed: int, wanted: BlockTally) -> Shape:
        moved = changed * self.top
        measure = Measure("blocks", ((1, 0),), moved, Fraction(1), self.exponent, in_one=True)
        return Shape(wanted.tally, (measure,), divisor=self.blocks)

    def _chosen(self, changed: int, wanted: BlockTally) -> ChoiceShape:
        width = self.high - self.low
        candidates = [self.low + width * j / (CANDIDATES - 1) for j in range(CANDIDATES - 1)] + [
            self.high
        ]
        at = [self._place(Fraction(candidate)) for candidate in candidates]

        def scores(exact: Exact, _: int) -> list[int]:
            places = sorted(exact[0])
            count = len(places)
            found = []
            for place in at:
                below, at_most = bisect_left(places, place), bisect_right(places, place)
                found.append(-max(0, 2 * below - count, count - 2 * at_most))
            return found

        return ChoiceShape(
            tally=wanted.tally,
            outcomes=candidates,
            scores=scores,
            score_range=2 * MEDIAN_STEPS * changed,
            steps=Fraction(MEDIAN_STEPS),
            error="rank_error",
        )

    def figures(self, noisy: tuple[tuple[Noisy, ...], ...], card: Card) -> list[Figure]:
        """Of the mean: within the bounds, which leaves out nothing that it is."""
        (total,) = noisy[0]
        return [
            Figure(
                *(
                    min(
                        max(self.low + number(each, self.exponent) / self.blocks, self.low),
                        self.high,
                    )
                    for each in total
                )
            )
        ]
