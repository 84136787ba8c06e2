"""Tables of a few values, their neighbours, and the exact law of answers that may be withheld.

Nothing here draws. A release first chooses a bound, if it makes one. Then it passes or fails the
test, and last comes a noisy number. The exact law of all three is computed.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise
from typing import Any

from app.accounting.units import PICO
from app.data.card import Card
from app.mechanisms.propose_test_release.propose_test_release import ProposedRelease
from app.planning.plan import make_plan
from app.planning.request import Question
from app.queries.block_tally import BlockCounts, BlockTally
from app.queries.tally import (
    Exact,
    GraphCounts,
    GraphCountsRequest,
    StepCounts,
    StepHistogram,
    Tally,
)
from tests.mechanisms.selection.selection_law import permute_and_flip_law
from tests.queries.cards import card
from tests.queries.reference import tallied

Table = tuple[int, ...]
TOP = 40
VALUES = (0, 1, 2, TOP)
COLUMNS: list[dict[str, Any]] = [
    {"name": "x", "type": "integer", "low": 0, "high": TOP},
    {"name": "kept", "type": "boolean"},
]
KEPT: dict[str, Any] = {"column": "kept", "op": "==", "value": True}
DIGITS = 50


@dataclass(frozen=True)
class TableData:
    """Rows as a release reads them, in place of an engine."""

    made: Card
    table: Table

    def exact(self, tally: Tally) -> Exact:
        rows = [{"x": value, "kept": True} for value in self.table]
        return tallied(self.made, tally, rows)

    def steps(self, wanted: StepHistogram) -> StepCounts:
        inside = [v for v in self.table if any(a <= v <= b for a, b in wanted.ranges)]
        places = [(v - wanted.low) >> wanted.shift for v in inside]
        return sorted((place, places.count(place)) for place in set(places))

    def blocks(self, wanted: BlockTally) -> BlockCounts:
        raise NotImplementedError

    def graph(self, wanted: GraphCountsRequest) -> GraphCounts:
        raise NotImplementedError

    def records(self, wanted: object) -> Any:
        raise NotImplementedError

    def keys(self, wanted: object) -> Any:
        raise NotImplementedError

    def checkpoint(self, step: int) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class Case:
    """A question, and the neighbouring relation under which it is asked."""

    query: dict[str, Any]
    neighbours: str = "add_remove"
    rows_max: int | None = None
    fixed: bool = False  # whether the number of rows is public

    @property
    def card(self) -> Card:
        return card(COLUMNS, neighbours=self.neighbours, rows_max=self.rows_max)

    def release(
        self, mechanism: dict[str, Any], privacy: dict[str, Any] | None = None
    ) -> ProposedRelease:
        question = {
            "dataset": "d",
            "query": self.query,
            "privacy": privacy or {"epsilon": "4", "delta": "0.1"},
            "mechanism": {"kind": "propose_test_release", **mechanism},
        }
        made = make_plan(Question.model_validate(question), self.card).release
        assert isinstance(made, ProposedRelease)
        return made

    def pairs(self) -> Iterator[tuple[Table, Table]]:
        """All pairs of neighbouring tables, in both orders."""
        rows = self.rows_max or 1
        for x in tables():
            for gone in range(min(rows, len(x)) + 1):
                for left in {_without(x, out) for out in _chosen(x, gone)}:
                    most = rows if self.neighbours == "replace_one" else (rows if not gone else 0)
                    for came in range(most + 1):
                        if self.fixed and came != gone:
                            continue
                        for new in combinations_with_replacement(VALUES, came):
                            y = tuple(sorted((*left, *new)))
                            if y != x:
                                yield x, y


def tables() -> list[Table]:
    """All tables of up to three rows, alone and among many rows of one value, which are safe."""
    few = [t for size in range(4) for t in combinations_with_replacement(VALUES, size)]
    return sorted({tuple(sorted((*t, *(1,) * block))) for t in few for block in (0, 2, 7, 14)})


def _chosen(x: Table, count: int) -> set[tuple[int, ...]]:
    if count == 0:
        return {()}
    return {(*rest, v) for rest in _chosen(x, count - 1) for v in set(x)}


def _without(x: Table, gone: tuple[int, ...]) -> Table:
    left = list(x)
    for value in gone:
        if value in left:
            left.remove(value)
    return tuple(left)


# The law


@dataclass(frozen=True)
class Part:
    """Probability of choosing the bound at this index, of passing the test, and the noise's
    centre.
    """

    chance: Decimal
    passed: Decimal
    centre: int
    scale: float


def law(
    release: ProposedRelease,
    made: Card,
    table: Table,
    *,
    threshold: int | None = None,
    distance: Callable[[int], int] = lambda d: d,
    narrower: float = 1.0,
) -> list[Part]:
    """Law of the answer about a table, optionally with a wrong threshold, distance or noise."""
    found = release.statistic.read(TableData(made, table), release.cap)
    distances = [release.statistic.distance(found, b, release.cap) for b in release.bounds]
    centre = release.statistic.value(found)
    threshold = release.test.threshold if threshold is None else threshold
    chances = [1.0]
    if release.chosen is not None:
        target = release.chosen.target
        scores = [min(d - target, target - before) for before, d in pairwise([0, *distances])]
        chances = permute_and_flip_law(scores, float(Fraction(release.chosen.epsilon, 2 * PICO)))
    with localcontext() as context:
        context.prec = DIGITS
        return [
            Part(
                Decimal(chance),
                reaches(threshold + 1 - distance(d), release.test.scale),
                centre,
                scale * narrower,
            )
            for chance, d, scale in zip(chances, distances, release.scales, strict=True)
        ]


def reaches(k: int, scale: float) -> Decimal:
    """P(Z >= k) of discrete Laplace noise."""
    p = (-1 / Decimal(scale)).exp()
    return p**k / (1 + p) if k >= 1 else 1 - p ** (1 - k) / (1 + p)


def hockey_stick(one: list[Part], two: list[Part], epsilon: Decimal) -> Decimal:
    """Least delta for which the answer about one table is (epsilon, delta)-close to the other's.

    Floats of the choice leave an error of 1e-12. Without a choice all numbers have fifty digits.
    """
    with localcontext() as context:
        context.prec = DIGITS
        grown, total = epsilon.exp(), Decimal(0)
        for a, b in zip(one, two, strict=True):
            nothing = a.chance * (1 - a.passed), b.chance * (1 - b.passed)
            total += max(Decimal(0), nothing[0] - grown * nothing[1])
            total += _numbers(a, b, grown)
        return total


def _numbers(a: Part, b: Part, grown: Decimal) -> Decimal:
    """Share of the released numbers in the hockey-stick divergence.

    The likelihood ratio only falls from a's centre towards b's. So the numbers that a releases more
    than `grown` times as often are those up to some t.
    """
    p, q = a.chance * a.passed, b.chance * b.passed
    if p == 0 or q == 0:  # a choice too unlikely for a float
        return p
    scale, apart = Decimal(a.scale), abs(b.centre - a.centre)
    assert a.scale == b.scale
    above = (p / q).ln() - grown.ln()
    if above + apart / scale <= 0:
        return Decimal(0)
    if above - apart / scale > 0:
        return p - grown * q
    # From a's centre on: above + (apart - 2 t) / scale > 0.
    last = math.ceil((apart + scale * above) / 2) - 1
    assert 0 <= last <= apart
    return p * (1 - reaches(last + 1, a.scale)) - grown * q * (
        1 - reaches(last + 1 - apart, a.scale)
    )
