"""How many rows have a value up to each public edge: running totals over the bins between edges.

Measured are the bins, which are disjoint, or a hierarchy of runs of bins (`linear.py`), whichever
has the least expected error over all totals; a total is then a sum of bins, and least squares makes
a hierarchy agree with itself. Totals never fall, so the nearest that do not are told (isotonic
regression), from 0 to the last one: post-processing, free, and never farther from the truth.

A row whose value is missing or outside the edges is in no bin. The share of a total in the last one
is told too; its interval is made of both their intervals, each at half the remaining probability.
"""

from dataclasses import replace
from functools import lru_cache
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, field_validator

from app.datasets import BooleanColumn, Card, CategoryColumn, TextColumn
from app.errors import Invalid
from app.queries.combination import Combination, combinations, equal_weights
from app.queries.filters import Filter, declared, resolve
from app.queries.groups import Edges, resolve_group
from app.queries.linear import (
    LEAVES_MAX,
    LEAVES_MIN,
    Linear,
    best_trees,
    disjoint,
    linear_measure,
    running_totals,
)
from app.queries.shape import AT, Shape
from app.queries.statistics import ByEdges, Rows, Tally

BINS_MAX = 10_000
Strategy = Literal["cells", "hierarchical"]


class Cdf(BaseModel):
    """`{"kind": "cdf", "column": ..., "edges": [...], "where": ..., "strategy": ...}`"""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["cdf"]
    column: str
    edges: Edges
    where: Filter | None = None
    strategy: Strategy | None = None

    @field_validator("edges", mode="before")
    @classmethod
    def _list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    def shape(self, card: Card) -> Shape:
        bins = self._bins(card)
        tally = Tally(resolve(self.where, card, f"{AT}/where"), (bins,), (Rows(),))
        ways: list[tuple[str, tuple[Combination, ...], tuple[int, ...], int]] = []
        count = len(bins.edges) - 1
        if self.strategy != "hierarchical":
            sums = tuple(equal_weights(i + 1) for i in range(count))
            ways.append(("cells", sums, (), disjoint(count, card)))
        if self.strategy != "cells" and LEAVES_MIN <= count <= LEAVES_MAX:
            ways += (("hierarchical", *way) for way in _hierarchies(count, card))
        elif self.strategy == "hierarchical":
            raise Invalid.field(f"{AT}/strategy", f"from {LEAVES_MIN} to {LEAVES_MAX} bins")
        first, *others = (
            self._shaped(tally, bins, card, strategy, sums, runs, d)
            for strategy, sums, runs, d in ways
        )
        return replace(first, alternatives=tuple(others))

    def _bins(self, card: Card) -> ByEdges:
        column = declared(card, self.column, f"{AT}/column")
        if isinstance(column, CategoryColumn | BooleanColumn | TextColumn):
            raise Invalid.field(f"{AT}/column", "an integer, number or date column")
        if len(self.edges) - 1 > BINS_MAX:
            raise Invalid.field(f"{AT}/edges", f"at most {BINS_MAX} bins")
        bins = resolve_group(self.column, self.edges, card, AT)
        assert isinstance(bins, ByEdges)
        return bins

    def _shaped(
        self,
        tally: Tally,
        bins: ByEdges,
        card: Card,
        strategy: str,
        sums: tuple[Combination, ...],
        runs: tuple[int, ...],
        d: int,
    ) -> Shape:
        labels = tuple(label["to"] for label in bins.labels())
        linear = Linear(strategy, labels, len(labels), sums, runs, increasing=True)
        measure = linear_measure(card, d, alone=len(labels) == 1)
        return Shape(tally, (measure,), linear=linear)


@lru_cache(maxsize=64)
def _hierarchies(
    count: int, card: Card
) -> tuple[tuple[tuple[Combination, ...], tuple[int, ...], int], ...]:
    """They depend on the number of bins alone."""
    return tuple(
        (combinations(np.array(weights, dtype=np.float64)), runs, d)
        for d, (_, weights, runs) in best_trees(running_totals(count), card)
    )
