"""Sample and aggregate: a statistic of each of many blocks of rows, and a noisy centre of them.

Theorem: Nissim, Raskhodnikova and Smith 2007. For every seed and hash, one person is in one block.
If each person has one row, the row's readings and its number among rows with equal readings select
the block. If a person may have several rows, a hash of the person selects it (`block_tally.py` has
both proofs). So adding or removing a person changes one block, and replacing one changes two, for
any number of rows per person; all other blocks are unchanged. This requires nothing of hash and
seed: they only make blocks even. (Blocks by a row's position in the table would all change with one
row.)

The result of a block is clamped to the public bounds `low` and `high`, on a grid of integer
positions 0 to W. A block without a result gives the middle. So L blocks have L positions, and one
changed block moves one of them by at most W. For the aggregates, with t = 1 or 2 changed blocks:

    mean     the sum of the positions moves by t W, and is released divided by L
    median   a choice among candidates by rank (`quantile.py`), where each candidate stands for an
             interval of positions. Let B positions be below the interval and E below its end: the
             score is -max(0, 2 B - L, L - 2 E). One position that moves changes B and E by at most
             1, hence a score by at most 2. It may raise one score and lower another: R = 4 for
             one position, 4 t for t
    votes    for a mode, which has no bounds: a choice among the public categories, whose score is
             the number of blocks with that mode (ties in a block go to the first on the card, and
             a block without values has none). A changed block moves its vote from one category
             to another: R = 2 for one block, 2 t for t

This bounds the effect of one person for any statistic, even a very sensitive one. The interval
covers the noise, not the distance of the blocks' centre from the statistic of all rows.
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
POSITION_BITS = 20  # about 2^20 positions between the bounds
CANDIDATES = 1001
MEDIAN_STEPS = 2  # score steps per rank, as the median is q = 1 / 2


def _as_float(value: object) -> object:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


BlockBound = Annotated[
    float, BeforeValidator(_as_float), Field(ge=-1e30, le=1e30, allow_inf_nan=False)
]


class SampleAggregate(BaseModel):
    """`{"kind": "sample_aggregate", "statistic": {"kind": "median", "column": ...}, "blocks": 50,
    "low": ..., "high": ..., "aggregate": "median", "where": ...}`"""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["sample_aggregate"]
    statistic: BlockStatistic
    blocks: Annotated[int, Field(ge=2, le=BLOCKS_MAX)]
    low: BlockBound | None = None
    high: BlockBound | None = None
    aggregate: Literal["median", "mean", "votes"] = "median"
    where: Filter | None = None

    @model_validator(mode="before")
    @classmethod
    def _usual(cls, sent: Any) -> Any:
        """Default the aggregate of a mode to votes, the only one it has."""
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
                f"{POINTER}/blocks", f"must be at most {WORK_MAX // value.work} for this statistic"
            )
        block_tally = BlockTally(
            self._counted(card, value),
            self.blocks,
            value.readings,
            value.given,
            persons=card.person.rows_max > 1,
        )
        changed = 2 if card.neighbours == "replace_one" else 1
        description = {"blocks": self.blocks, "blocks_changed": changed}
        if isinstance(self.statistic, BlockMode):
            values = self.statistic.values(card)
            shape = _voted(changed, block_tally, values)
            return PostProcessedShape(
                block_tally,
                shape,
                lambda counts: (_votes(counts, len(values)),),
                THEOREM,
                description,
            )
        if self.aggregate == "median":
            chosen = self._chosen(changed, block_tally)
            return PostProcessedShape(
                block_tally,
                chosen,
                lambda counts: (self.positions(counts, value),),
                THEOREM,
                description,
            )
        added = self._added(changed, block_tally)
        return PostProcessedShape(
            block_tally,
            added,
            lambda counts: ((sum(self.positions(counts, value)),),),
            THEOREM,
            description,
        )

    def _must_fit(self) -> None:
        """Require bounds for a numeric statistic, and none for a mode."""
        bounds = {"low": self.low, "high": self.high}
        if isinstance(self.statistic, BlockMode):
            if self.aggregate != "votes":
                raise Invalid.field(f"{POINTER}/aggregate", "must be votes: a mode is not a number")
            for name, bound in bounds.items():
                if bound is not None:
                    rule = "must be absent: a mode is not a number"
                    raise Invalid.field(f"{POINTER}/{name}", rule)
            return
        if self.aggregate == "votes":
            raise Invalid.field(
                f"{POINTER}/aggregate", "must be median or mean: votes are for a mode"
            )
        for name, bound in bounds.items():
            if bound is None:
                raise Invalid.field(
                    f"{POINTER}/{name}", "required: a public bound for the result of a block"
                )
        if self.exponent > 200:
            raise Invalid.field(
                f"{POINTER}/high", "must be further from low: there is no number between them"
            )

    def _counted(self, card: Card, value: BlockValue) -> Condition | None:
        where = resolve(self.where, card, f"{POINTER}/where")
        if not value.present:
            return where
        return AllOf(value.present if where is None else (where, *value.present))

    # Positions

    @property
    def exponent(self) -> int:
        """Positions are 2^-exponent apart: about 2^POSITION_BITS of them between the bounds."""
        low, high = self._bounds
        return POSITION_BITS - frexp(high - low)[1]

    @property
    def _bounds(self) -> tuple[float, float]:
        assert self.low is not None, "a numeric statistic has bounds"
        assert self.high is not None, "a numeric statistic has bounds"
        return self.low, self.high

    @property
    def top(self) -> int:
        """W: the last position."""
        return self._position(Fraction(self._bounds[1]))

    def _position(self, value: Fraction) -> int:
        low, high = map(Fraction, self._bounds)
        return floor((min(max(value, low), high) - low) * Fraction(2) ** self.exponent)

    def positions(self, counts: BlockCounts, value: BlockValue) -> tuple[int, ...]:
        """Exact position of each block."""
        middle = self.top // 2
        positions = [middle if value.empty is None else self._position(value.empty)] * self.blocks
        for block, *numbers in counts:
            result = value.value(numbers)
            positions[block] = middle if result is None else self._position(result)
        return tuple(positions)

    # Aggregates

    def _added(self, changed: int, block_tally: BlockTally) -> SumShape:
        moved = changed * self.top
        measure = Measure("blocks", ((1, 0),), moved, Fraction(1), self.exponent, single_cell=True)
        return SumShape(block_tally.tally, (measure,), divisor=self.blocks)

    def _chosen(self, changed: int, block_tally: BlockTally) -> SelectionShape:
        low, high = self._bounds
        evenly = (low + (high - low) * j / (CANDIDATES - 1) for j in range(CANDIDATES - 1))
        candidates = [*evenly, high]
        # A candidate stands for the positions nearest to it. So blocks that all give one position
        # have a best candidate, for every position.
        at = [self._position(Fraction(candidate)) for candidate in candidates]
        cuts = [0, *((a + b + 1) // 2 for a, b in pairwise(at)), self.top + 1]

        def scores(exact: Exact, _: int) -> list[int]:
            positions = sorted(exact[0])
            count = len(positions)
            below = [bisect_left(positions, cut) for cut in cuts]
            return [-max(0, 2 * few - count, count - 2 * many) for few, many in pairwise(below)]

        return SelectionShape(
            tally=block_tally.tally,
            outcomes=candidates,
            scores=scores,
            score_range=2 * MEDIAN_STEPS * changed,
            steps=Fraction(MEDIAN_STEPS),
            error="rank_error",
        )

    def figures(self, noisy: tuple[tuple[NoisySteps, ...], ...], card: Card) -> list[Estimate]:
        """Estimate of the mean, clamped to the bounds, which loses no possible value."""
        (total,) = noisy[0]
        low, high = self._bounds
        ends = (low + number(steps, self.exponent) / self.blocks for steps in total)
        return [Estimate(*(min(max(end, low), high) for end in ends))]


def _voted(
    changed: int, block_tally: BlockTally, values: tuple[str, ...] | tuple[bool, ...]
) -> SelectionShape:
    return SelectionShape(
        tally=block_tally.tally,
        outcomes=values,
        scores=lambda exact, _: list(exact[0]),
        score_range=2 * changed,
    )


def _votes(counts: BlockCounts, categories: int) -> tuple[int, ...]:
    votes = Counter(code for _, code in counts)
    return tuple(votes[code] for code in range(categories))
