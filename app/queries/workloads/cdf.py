"""Number of rows with a value up to each public edge: running totals over the bins between edges.

A bin includes its upper edge, and the first one its lower edge too, so that a total counts the
values up to its edge; values below the first edge are in no bin.

The query measures the bins, which are disjoint, or a hierarchy of runs of bins
(`shapes/workload.py`). The planner chooses the one with the least expected error over all totals. A
total is then a sum of bins, and least squares makes a hierarchy consistent. Totals never fall, so
the nearest non-decreasing totals are released (isotonic regression), from 0 to the last one:
post-processing, free, and never farther from the truth.

A row whose value is missing or outside the edges is in no bin. The share of a total in the last one
is released too; its interval combines both their intervals, each at half the remaining probability.
"""

import operator
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, field_validator

from app.caches import owned_cache
from app.data.card import Card
from app.data.columns import BooleanColumn, CategoryColumn, TextColumn
from app.errors import Invalid
from app.queries.candidates import OrderedColumn
from app.queries.cut_points import until_edges
from app.queries.filters import POINTER, Filter, declared, resolve
from app.queries.groups import Edges, resolve_group
from app.queries.shapes.sums import SumShape
from app.queries.shapes.workload import (
    LEAVES_MAX,
    LEAVES_MIN,
    OverlappingCounts,
    best_trees,
    disjoint,
    linear_measure,
    running_totals,
)
from app.queries.tally import AllOf, ByEdges, Compare, CountRows, Tally
from app.queries.weighted_noise import WeightedNoiseSum, combinations, equal_weights

BINS_MAX = 10_000
CdfStrategy = Literal["cells", "hierarchical"]


class Cdf(BaseModel):
    """`{"kind": "cdf", "column": ..., "edges": [...], "where": ..., "strategy": ...}`"""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["cdf"]
    column: str
    edges: Edges
    where: Filter | None = None
    strategy: CdfStrategy | None = None

    @field_validator("edges", mode="before")
    @classmethod
    def _list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    def shape(self, card: Card) -> SumShape:
        column = self._column(card)
        requested = resolve_group(self.column, self.edges, card, POINTER)
        assert isinstance(requested, ByEdges)
        bins = until_edges(column, requested.edges)
        if not all(map(operator.lt, bins.edges, bins.edges[1:])):
            raise Invalid.field(f"{POINTER}/edges", "must have a value between each two edges")
        up_to = Compare(column.name, "<=", requested.edges[-1])
        where = resolve(self.where, card, f"{POINTER}/where")
        counted = up_to if where is None else AllOf((where, up_to))
        tally = Tally(counted, (bins,), (CountRows(),))
        labels = tuple(label["to"] for label in requested.labels())
        ways: list[tuple[str, tuple[WeightedNoiseSum, ...], tuple[int, ...], int]] = []
        count = len(bins.edges) - 1
        if self.strategy != "hierarchical":
            sums = tuple(equal_weights(i + 1) for i in range(count))
            ways.append(("cells", sums, (), disjoint(count, card)))
        if self.strategy != "cells" and LEAVES_MIN <= count <= LEAVES_MAX:
            ways += (("hierarchical", *way) for way in _hierarchies(count, card))
        elif self.strategy == "hierarchical":
            raise Invalid.field(
                f"{POINTER}/strategy", f"hierarchical needs from {LEAVES_MIN} to {LEAVES_MAX} bins"
            )
        first, *others = (
            self._shaped(tally, labels, card, strategy, sums, runs, d)
            for strategy, sums, runs, d in ways
        )
        return replace(first, alternatives=tuple(others))

    def _column(self, card: Card) -> OrderedColumn:
        column = declared(card, self.column, f"{POINTER}/column")
        if isinstance(column, CategoryColumn | BooleanColumn | TextColumn):
            raise Invalid.field(f"{POINTER}/column", "must be an integer, number or date column")
        if len(self.edges) - 1 > BINS_MAX:
            raise Invalid.field(f"{POINTER}/edges", f"may make at most {BINS_MAX} bins")
        return column

    def _shaped(
        self,
        tally: Tally,
        labels: tuple[Any, ...],
        card: Card,
        strategy: str,
        sums: tuple[WeightedNoiseSum, ...],
        runs: tuple[int, ...],
        d: int,
    ) -> SumShape:
        linear = OverlappingCounts(strategy, labels, len(labels), sums, runs, increasing=True)
        measure = linear_measure(card, d, alone=len(labels) == 1)
        return SumShape(tally, (measure,), linear=linear)


@owned_cache(maxsize=64)
def _hierarchies(
    count: int, card: Card
) -> tuple[tuple[tuple[WeightedNoiseSum, ...], tuple[int, ...], int], ...]:
    """Best hierarchies; they depend only on the number of bins and the card."""
    return tuple(
        (combinations(np.array(weights, dtype=np.float64)), runs, d)
        for d, (_, weights, runs) in best_trees(running_totals(count), card)
    )
