"""Many predicates counted in one query, with noise by their overlap rather than their number.

The card determines the sets of predicates that one row can meet (`overlap.py`); disjoint predicates
cost as much as one. Where there are too many combinations of values to examine, the overlap is
unknown. Then a row may meet all predicates, and only `identity` is offered.

The best strategy is public: the one with the least expected total squared error under the noise
that pays for it. The answers are consistent with each other as far as the predicates determine them
(`shapes/workload.py`), by least squares over the cells.
"""

import datetime
import math
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator

from app.caches import owned_cache
from app.data.card import Card
from app.data.columns import Column, DateColumn, IntegerColumn, NumberColumn
from app.errors import Invalid
from app.queries.filters import POINTER, Filter, resolve
from app.queries.shapes.overlap import (
    PIECES_MAX,
    Bits,
    Pieces,
    distinct,
    met_by,
    pieces_of,
    product_size,
)
from app.queries.shapes.sums import SumShape
from app.queries.shapes.workload import (
    LEAVES_MAX,
    LEAVES_MIN,
    OverlappingCounts,
    best_trees,
    changed,
    combined,
    disjoint,
    linear_measure,
    projector,
)
from app.queries.tally import ByEdges, Condition, CountRows, CountWhere, Split, Tally
from app.queries.weighted_noise import Numbers

PREDICATES_MAX = 1000
VALUES_MAX = 8_000  # values compared in all predicates together
EVALUATIONS_MAX = 50_000_000  # limit on predicates times combinations of values
CELLS_MAX = 4096
Strategy = Literal["identity", "cells", "hierarchical"]


class Predicate(BaseModel):
    """A filter with a name."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Annotated[str, Field(min_length=1, max_length=200)]
    where: Filter


class Workload(BaseModel):
    """`{"kind": "workload", "predicates": [{"name": ..., "where": ...}, ...], "where": ...,
    "strategy": ..., "consistent": true, "nonnegative": false}`"""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["workload"]
    predicates: Annotated[tuple[Predicate, ...], Field(max_length=PREDICATES_MAX)]
    where: Filter | None = None
    strategy: Strategy | None = None
    consistent: bool = True
    nonnegative: bool = False

    @field_validator("predicates", mode="before")
    @classmethod
    def _list(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value

    def shape(self, card: Card) -> SumShape:
        """Shape of the requested strategy, or of all strategies, the others as alternatives of
        the first."""
        text = self.model_dump_json(by_alias=True)  # in Python 1, 1.0 and True are equal
        first, *others = _shapes(text, card)
        return replace(first, alternatives=tuple(others))

    def conditions(self, card: Card) -> tuple[Condition, ...]:
        if not self.predicates:
            raise Invalid.field(f"{POINTER}/predicates", "must have at least one predicate")
        names = [predicate.name for predicate in self.predicates]
        first = {name: i for i, name in reversed(list(enumerate(names)))}
        twice = [i for i, name in enumerate(names) if first[name] != i]
        if twice:
            raise Invalid.field(
                f"{POINTER}/predicates/{twice[0]}/name", "each name may appear only once"
            )
        resolved = []
        for i, predicate in enumerate(self.predicates):
            condition = resolve(predicate.where, card, f"{POINTER}/predicates/{i}/where")
            assert condition is not None
            resolved.append(condition)
        if Tally(None, (), tuple(map(CountWhere, resolved))).size() > VALUES_MAX:
            rule = f"predicates may compare with at most {VALUES_MAX} values together"
            raise Invalid.field(f"{POINTER}/predicates", rule)
        return tuple(resolved)


@owned_cache(maxsize=8)
def _shapes(text: str, card: Card) -> tuple[SumShape, ...]:
    return tuple(_Designer(Workload.model_validate_json(text), card).shapes())


class _Designer:
    """One workload on one card, and the strategies that can answer it."""

    def __init__(self, query: Workload, card: Card) -> None:
        self.query, self.card = query, card
        self.conditions = query.conditions(card)
        self.where = resolve(query.where, card, f"{POINTER}/where")
        looked_at = [*self.conditions, *([] if self.where is None else [self.where])]
        self.pieces = pieces_of(looked_at, card)
        self.met: Bits | None = None
        self.sets: Bits | None = None
        size = product_size(self.pieces)
        if size <= PIECES_MAX and size * len(self.conditions) <= EVALUATIONS_MAX:
            self.met = met_by(self.conditions, self.pieces, self.where)
            self.sets = distinct(self.met)
        self.labels = tuple(predicate.name for predicate in query.predicates)

    def shapes(self) -> list[SumShape]:
        ways = {"identity": self.identity, "cells": self.cells, "hierarchical": self.hierarchical}
        if self.query.strategy is not None:
            shapes_or_reason = ways[self.query.strategy]()
            if isinstance(shapes_or_reason, str):
                raise Invalid.field(f"{POINTER}/strategy", shapes_or_reason)
            return shapes_or_reason
        return [shape for way in ways.values() for shape in way() if isinstance(shape, SumShape)]

    def identity(self) -> list[SumShape] | str:
        """Noise on the predicates' own counts."""
        count = len(self.conditions)
        d, projection = count, None
        known = self.sets is not None and self.sets.shape[1] <= CELLS_MAX
        if self.sets is not None:
            assert self.met is not None
            nothing = self.card.person.kind == "column" or not self.met.any(axis=0).all()
            d = changed(self.sets, self.card, nothing=bool(nothing))
            if known and self.query.consistent:
                projection = projector(self.sets)
        weights = np.eye(count) if projection is None else projection
        linear = replace(
            self.linear("identity", count, weights),
            wanted=self.sets if known else None,
            projection=projection,
        )
        tally = Tally(self.where, (), tuple(map(CountWhere, self.conditions)))
        return [self.shaped(tally, linear, d)]

    def cells(self) -> list[SumShape] | str:
        """Noise on the disjoint sets of predicates that rows can meet."""
        sets = self.sets
        if sets is None:
            return "must be identity: there are too many combinations of values"
        count = sets.shape[1]
        if not 0 < count <= CELLS_MAX:
            return f"cells needs predicates that make from 1 to {CELLS_MAX} disjoint cells"
        signatures = tuple(sum(1 << int(i) for i in np.nonzero(members)[0]) for members in sets.T)
        tally = Tally(self.where, (), (CountRows(),), Split(self.conditions, signatures))
        linear = replace(self.linear("cells", count, sets), wanted=sets)
        return [self.shaped(tally, linear, disjoint(count, self.card))]

    def hierarchical(self) -> list[SumShape] | str:
        """Noise on the pieces of one ordered column, and on runs of them."""
        column = self.ordered_column()
        if isinstance(column, str):
            return column
        assert self.met is not None
        present = self.met[:, :-1]
        turns = np.any(present[:, 1:] != present[:, :-1], axis=0)
        starts = [0, *(int(i) + 1 for i in np.nonzero(turns)[0])]
        if not LEAVES_MIN <= len(starts) <= LEAVES_MAX:
            return f"hierarchical needs ranges that make {LEAVES_MIN} to {LEAVES_MAX} pieces"
        bins = _bins_of(column.column, [column.values[start] for start in starts])
        if bins is None:
            return "hierarchical needs a column that ends before the last possible day"
        requested = present[:, starts]
        tally = Tally(self.where, (bins,), (CountRows(),))
        return [
            self.shaped(tally, replace(self.linear("hierarchical", *sized), wanted=requested), d)
            for d, sized in best_trees(requested, self.card)
        ]

    def ordered_column(self) -> Pieces | str:
        if len(self.pieces) != 1 or not self.pieces[0].ordered or self.met is None:
            return "hierarchical needs one integer, number or date column in all filters"
        if self.met[:, -1].any():
            return "hierarchical needs ranges: no predicate may hold for a missing value"
        return self.pieces[0]

    def linear(
        self, strategy: Strategy, cells: int, weights: Numbers | Bits, runs: tuple[int, ...] = ()
    ) -> OverlappingCounts:
        return OverlappingCounts(
            strategy, self.labels, cells, combined(weights), runs, self.query.nonnegative
        )

    def shaped(self, tally: Tally, linear: OverlappingCounts, d: int) -> SumShape:
        counted = len(tally.aggregates) * tally.group_count()
        measure = linear_measure(self.card, d, alone=counted == 1 and not linear.runs)
        return SumShape(tally, (measure,), linear=linear)


def _bins_of(column: Column, starts: list[Any]) -> ByEdges | None:
    """Bins of an ordered column, each from its start to below the next, the last to the bound.

    They hold every present value. None if the last edge would be past the last possible day.
    """
    if isinstance(column, DateColumn):
        if column.high < datetime.date.max:
            return ByEdges(column.name, (*starts, column.high + datetime.timedelta(days=1)))
        return ByEdges(column.name, (*starts, column.high)) if starts[-1] < column.high else None
    assert isinstance(column, IntegerColumn | NumberColumn)
    return ByEdges(column.name, (*map(float, starts), math.nextafter(float(column.high), math.inf)))
