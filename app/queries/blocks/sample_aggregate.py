"""Sample and aggregate: a statistic of each of many blocks of rows, and a noisy middle of them.

Theorem: Nissim, Raskhodnikova and Smith 2007. For every seed and hash, one person is in one block:
where a person is a row, what is read of it and its number among those of which the same is read
decide the block; where a person may have several rows, who they are (`block_tally.py` has both
proofs). So a person who comes or goes changes one block, and one who is replaced two, however many
rows they have; all other blocks hold what they held. Of hash and seed this asks nothing: they make
blocks even. (Blocks by a row's place in the table would all change with one row.)

What a block gives is brought between the public bounds `low` and `high`, on a grid of whole places
0 to W; a block that decides nothing gives the middle. So one changed block moves one of L places by
at most W. Of the aggregates, with t = 1 or 2 changed blocks:

    mean     the sum of the places moves by t W, and is told over L
    median   a choice among candidates by rank (`quantile.py`), each of which stands for an interval
             of places: of L places one that moves changes 2 * (places below the interval) and
             2 * (places below its end) by 2 at most, hence a score by 2, up for one candidate and
             down for another: R = 4 for one place, 4 t for t
    votes    of a mode, which has no bounds: a choice among the public categories, whose score is
             how many blocks have it as theirs (ties in a block go to the first on the card, and one
             without values has none). A changed block takes its vote from one and gives it to
             another: R = 2 for one block, 2 t for t

Whatever the statistic is like, however sensitive: this is all that one person can do. The interval
covers the noise, not how far the blocks' middle is from the statistic of all rows.
"""

from bisect import bisect_left
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from math import floor, frexp
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from app.data.card import Card
from app.errors import Invalid
from app.queries.block_tally import BlockCounts, BlockTally
from app.queries.blocks.statistics import BlockMode, BlockStatistic
from app.queries.blocks.value import BlockValue
from app.queries.estimates import Estimate, NoisySteps, number
from app.queries.filters import POINTER, Filter, resolve
from app.queries.shapes.measures import Measure
from app.queries.shapes.post_processed import PostProcessedShape
from app.queries.shapes.selection import SelectionShape
from app.queries.shapes.sums import SumShape
from app.queries.tally import AllOf, Condition, Exact

THEOREM = "Nissim, Raskhodnikova and Smith 2007 (sample and aggregate)"
BLOCKS_MAX = 10_000
WORK_MAX = 2_000_000
PLACE_BITS = 20  # places between the bounds
CANDIDATES = 1001
MEDIAN_STEPS = 2  # of the score in one rank, as the median is q = 1 / 2


def _as_float(value: object) -> object:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


Bound = Annotated[float, BeforeValidator(_as_float), Field(ge=-1e30, le=1e30, allow_inf_nan=False)]


class SampleAggregate(BaseModel):
    """`{"kind": "sample_aggregate", "statistic": {"kind": "median", "column": ...}, "blocks": 50,
    "low": ..., "high": ..., "aggregate": "median", "where": ...}`"""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["sample_aggregate"]
    statistic: BlockStatistic
    blocks: Annotated[int, Field(ge=2, le=BLOCKS_MAX)]
    low: Bound | None = None
    high: Bound | None = None
    aggregate: Literal["median", "mean", "votes"] = "median"
    where: Filter | None = None

    @model_validator(mode="before")
    @classmethod
    def _usual(cls, sent: Any) -> Any:
        """Of modes there are votes only."""
        statistic = sent.get("statistic") if isinstance(sent, dict) else None
        if isinstance(statistic, dict) and statistic.get("kind") == "mode":
            return {"aggregate": "votes", **sent}
        return sent

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError("low must be less than high")
        return self

    def shape(self, card: Card) -> PostProcessedShape:
        self._must_fit()
        value = self.statistic.computed(card)
        if self.blocks * value.work > WORK_MAX:
            raise Invalid.field(
                f"{POINTER}/blocks", f"at most {WORK_MAX // value.work} of so many terms"
            )
        wanted = BlockTally(
            self._counted(card, value),
            self.blocks,
            value.readings,
            value.given,
            persons=card.person.rows_max > 1,
        )
        changed = 2 if card.neighbours == "replace_one" else 1
        told = {"blocks": self.blocks, "blocks_changed": changed}
        if isinstance(self.statistic, BlockMode):
            values = self.statistic.values(card)
            shape = _voted(changed, wanted, values)
            return PostProcessedShape(
                wanted, shape, lambda counts: (_votes(counts, len(values)),), THEOREM, told
            )
        if self.aggregate == "median":
            chosen = self._chosen(changed, wanted)
            return PostProcessedShape(
                wanted, chosen, lambda counts: (self.places(counts, value),), THEOREM, told
            )
        added = self._added(changed, wanted)
        return PostProcessedShape(
            wanted, added, lambda counts: ((sum(self.places(counts, value)),),), THEOREM, told
        )

    def _must_fit(self) -> None:
        """Bounds of what is a number, and none of what is not."""
        bounds = {"low": self.low, "high": self.high}
        if isinstance(self.statistic, BlockMode):
            if self.aggregate != "votes":
                raise Invalid.field(f"{POINTER}/aggregate", "votes: a mode is no number")
            for name, bound in bounds.items():
                if bound is not None:
                    raise Invalid.field(f"{POINTER}/{name}", "left out: a mode is no number")
            return
        if self.aggregate == "votes":
            raise Invalid.field(f"{POINTER}/aggregate", "median or mean: votes are for a mode")
        for name, bound in bounds.items():
            if bound is None:
                raise Invalid.field(f"{POINTER}/{name}", "a public bound of what a block may give")
        if self.exponent > 200:
            raise Invalid.field(
                f"{POINTER}/high", "further from low: there is nothing between them"
            )

    def _counted(self, card: Card, value: BlockValue) -> Condition | None:
        where = resolve(self.where, card, f"{POINTER}/where")
        if not value.present:
            return where
        return AllOf(value.present if where is None else (where, *value.present))

    # Places

    @property
    def exponent(self) -> int:
        """Places are 2^-exponent apart: about 2^PLACE_BITS of them between the bounds."""
        low, high = self._bounds
        return PLACE_BITS - frexp(high - low)[1]

    @property
    def _bounds(self) -> tuple[float, float]:
        assert self.low is not None, "of what is a number"
        assert self.high is not None, "of what is a number"
        return self.low, self.high

    @property
    def top(self) -> int:
        """W: the last place."""
        return self._place(Fraction(self._bounds[1]))

    def _place(self, value: Fraction) -> int:
        low, high = map(Fraction, self._bounds)
        return floor((min(max(value, low), high) - low) * Fraction(2) ** self.exponent)

    def places(self, counts: BlockCounts, value: BlockValue) -> tuple[int, ...]:
        """One of each block, exactly."""
        middle = self.top // 2
        places = [middle if value.empty is None else self._place(value.empty)] * self.blocks
        for block, *numbers in counts:
            found = value.value(numbers)
            places[block] = middle if found is None else self._place(found)
        return tuple(places)

    # Aggregates

    def _added(self, changed: int, wanted: BlockTally) -> SumShape:
        moved = changed * self.top
        measure = Measure("blocks", ((1, 0),), moved, Fraction(1), self.exponent, single_cell=True)
        return SumShape(wanted.tally, (measure,), divisor=self.blocks)

    def _chosen(self, changed: int, wanted: BlockTally) -> SelectionShape:
        low, high = self._bounds
        evenly = (low + (high - low) * j / (CANDIDATES - 1) for j in range(CANDIDATES - 1))
        candidates = [*evenly, high]
        # A candidate stands for the places that are nearer to it than to others: blocks that all
        # give the same place have a best one, whichever place it is.
        at = [self._place(Fraction(candidate)) for candidate in candidates]
        cuts = [0, *((a + b + 1) // 2 for a, b in pairwise(at)), self.top + 1]

        def scores(exact: Exact, _: int) -> list[int]:
            places = sorted(exact[0])
            count = len(places)
            below = [bisect_left(places, cut) for cut in cuts]
            return [-max(0, 2 * few - count, count - 2 * many) for few, many in pairwise(below)]

        return SelectionShape(
            tally=wanted.tally,
            outcomes=candidates,
            scores=scores,
            score_range=2 * MEDIAN_STEPS * changed,
            steps=Fraction(MEDIAN_STEPS),
            error="rank_error",
        )

    def figures(self, noisy: tuple[tuple[NoisySteps, ...], ...], card: Card) -> list[Estimate]:
        """Of the mean: within the bounds, which leaves out nothing that it is."""
        (total,) = noisy[0]
        low, high = self._bounds
        told = (low + number(each, self.exponent) / self.blocks for each in total)
        return [Estimate(*(min(max(each, low), high) for each in told))]


def _voted(
    changed: int, wanted: BlockTally, values: tuple[str, ...] | tuple[bool, ...]
) -> SelectionShape:
    return SelectionShape(
        tally=wanted.tally,
        outcomes=values,
        scores=lambda exact, _: list(exact[0]),
        score_range=2 * changed,
    )


def _votes(counts: BlockCounts, categories: int) -> tuple[int, ...]:
    given = Counter(code for _, code in counts)
    return tuple(given[code] for code in range(categories))
