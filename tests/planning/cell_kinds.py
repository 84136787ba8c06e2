"""Columns that divide a dataset into cells, and random questions about them."""

import datetime
import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from hypothesis import strategies as st

from app.data.card import Card
from app.queries.tally import (
    Aggregate,
    AllOf,
    AnyOf,
    ByEdges,
    ByValues,
    CentredBucket,
    Compare,
    ComparisonSign,
    Condition,
    CountPresent,
    CountRows,
    CountWhere,
    Grouping,
    IsMissing,
    Negation,
    OneOf,
    Product,
    Scalar,
    Split,
    SumSteps,
    Tally,
)
from tests.queries.reference import Row

ORDER: tuple[ComparisonSign, ...] = ("<", "<=", ">", ">=")
EQUALITY: tuple[ComparisonSign, ...] = ("==", "!=")
OTHER: list[int | None] = [0, 1, 2, None]


def days(*numbers: int) -> list[datetime.date]:
    return [datetime.date(2020, 1, number) for number in numbers]


def around(*values: float) -> list[float]:
    """Each double with its two neighbours."""
    return [math.nextafter(v, way) for v in values for way in (-math.inf, v, math.inf)]


@dataclass(frozen=True)
class Kind:
    """A cell column `x` with all its values, or for doubles those next to every edge."""

    column: dict[str, Any]
    edges: list[Any] | None
    stored: list[Any]
    compared: list[Any]  # values a question may name, including outside ones

    def card(self, **changes: Any) -> Card:
        cells = {"column": "x"} | ({} if self.edges is None else {"edges": self.edges})
        other = {"name": "other", "type": "integer", "low": 0, "high": 2}
        declared = {
            "person": {"kind": "row"},
            "neighbours": "add_remove",
            "columns": [{"name": "x", **self.column}, other],
            "cells": cells,
        }
        return Card.model_validate(declared | changes)

    @cached_property
    def plain(self) -> Card:
        return self.card()

    @cached_property
    def rows(self) -> list[Row]:
        return [{"x": x, "other": y} for x, y in product([*self.stored, None], OTHER)]

    def cell(self, row: Row) -> int:
        """The cell of a row, directly from the card."""
        value = row["x"]
        edges = self.edges
        if edges is None:
            labels = [*self.column.get("values", [False, True]), None]
            return next(i for i, label in enumerate(labels) if label is value or label == value)
        last = len(edges) - 2
        if value is None:
            return last + 1
        for i in range(last + 1):
            if edges[i] <= value < edges[i + 1] or (i == last and value == edges[-1]):
                return i
        raise AssertionError("the edges cover every value")


INTEGERS = {"type": "integer", "low": -2, "high": 4}
NUMBERS = {"type": "number", "low": -1.0, "high": 2.0}
DATES = {"type": "date", "low": "2020-01-02", "high": "2020-01-06"}
POINTS = [-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 2.0, 3.0]
DOUBLES = [v for v in around(*POINTS) if -1.0 <= v <= 2.0]
WHOLE: list[Any] = [-9, -3, -2, -1, 0, 0.0, 1, 1.5, 2, 2.6, 3, 4, 4.5, 5, 10**18]
KINDS: dict[str, Kind] = {
    "integer": Kind(INTEGERS, [-2, 0, 1, 4], list(range(-2, 5)), WHOLE),
    # Empty intervals, below the bounds and between two integers.
    "integer, wide edges": Kind(INTEGERS, [-9, -5, -1, 2.5, 2.75, 9], list(range(-2, 5)), WHOLE),
    "integer, one value each": Kind(INTEGERS, [*range(-2, 4), 3.5, 4], list(range(-2, 5)), WHOLE),
    "number": Kind(NUMBERS, [-1.0, 0.0, 1.0, 2.0], DOUBLES, [*around(*POINTS), -1, 0, 2]),
    "number, wide edges": Kind(
        NUMBERS, [-8.0, -4.0, -1.0, 0.25, 2.0, 7.0], DOUBLES, [*around(*POINTS), 1]
    ),
    "date": Kind(DATES, days(2, 4, 5, 6), days(*range(2, 7)), days(*range(1, 9))),
    "date, wide edges": Kind(DATES, days(1, 2, 3, 6, 9), days(*range(2, 7)), days(*range(1, 9))),
    "category": Kind(
        {"type": "category", "values": ["a", "b", "c"]}, None, ["a", "b", "c"], ["a", "b", "c"]
    ),
    "boolean": Kind({"type": "boolean"}, None, [False, True], [False, True]),
}
kinds = st.sampled_from(sorted(KINDS)).map(KINDS.__getitem__)


def comparisons(
    kind: Kind, columns: tuple[str, ...] = ("x", "other")
) -> st.SearchStrategy[Condition]:
    def of(column: str) -> st.SearchStrategy[Condition]:
        values = st.sampled_from(kind.compared if column == "x" else [0, 1, 2])
        signs = EQUALITY if column == "x" and kind.edges is None else EQUALITY + ORDER
        return st.one_of(
            st.builds(Compare, st.just(column), st.sampled_from(signs), values),
            st.builds(OneOf, st.just(column), st.lists(values, max_size=5).map(tuple)),
            st.just(IsMissing(column)),
        )

    return st.sampled_from(columns).flatmap(of)


def conditions(
    kind: Kind, columns: tuple[str, ...] = ("x", "other")
) -> st.SearchStrategy[Condition]:
    def grown(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
        parts = st.lists(inner, max_size=3).map(tuple)
        return st.one_of(
            st.builds(AllOf, parts), st.builds(AnyOf, parts), st.builds(Negation, inner)
        )

    return st.recursive(comparisons(kind, columns), grown, max_leaves=8)


@st.composite
def groupings(draw: st.DrawFn, kind: Kind) -> tuple[Grouping, ...]:
    made: list[Grouping] = []
    if draw(st.booleans()):
        made.append(ByEdges("other", draw(st.sampled_from([(0.0, 2.0), (1.0, 1.5, 9.0)]))))
    if draw(st.booleans()):
        if kind.edges is None:
            values = kind.stored[: draw(st.integers(1, len(kind.stored)))]
            made.append(ByValues("x", tuple(values), missing=draw(st.booleans())))
        else:
            edges = draw(st.lists(st.sampled_from(kind.compared), min_size=2, max_size=4))
            if len(edges := sorted(set(edges))) >= 2:
                made.append(ByEdges("x", tuple(edges)))
    return tuple(made)


@st.composite
def questions(draw: st.DrawFn) -> tuple[Kind, Tally]:
    kind = draw(kinds)
    summed: list[Aggregate] = [
        CountRows(),
        CountPresent("x"),
        CountPresent("other"),
        SumSteps("other"),
    ]
    if kind.column["type"] in ("integer", "number"):
        summed.append(SumSteps("x"))
        summed.append(Product((CentredBucket("x", 0, 1, 1), CentredBucket("x", 0, 1, 1))))
        summed.append(Product((CentredBucket("other", 0, 1, 1), CentredBucket("x", 0, 1, 1))))
    meeting: st.SearchStrategy[Aggregate] = conditions(kind).map(CountWhere)
    aggregates: list[Aggregate] = draw(
        st.lists(st.sampled_from(summed), min_size=1, max_size=2, unique=True)
        | st.lists(meeting, min_size=1, max_size=2)
    )
    where = draw(st.none() | conditions(kind))
    if draw(st.booleans()):
        met = tuple(draw(st.lists(conditions(kind), min_size=1, max_size=2)))
        listed = draw(st.lists(st.integers(0, 2 ** len(met) - 1), min_size=1, unique=True))
        return kind, Tally(where, (), tuple(aggregates), Split(met, tuple(listed)))
    return kind, Tally(where, draw(groupings(kind)), tuple(aggregates))


AGES = Kind({"type": "integer", "low": 0, "high": 120}, [0, 18, 65, 120], [], [])
INCOMES = Kind({"type": "number", "low": 0, "high": 100}, [0, 10, 50, 100], [], [])
SEEN = Kind(
    {"type": "date", "low": "2020-01-01", "high": "2020-01-31"}, days(1, 11, 21, 31), [], []
)
CITIES = Kind({"type": "category", "values": ["Bern", "Chur", "Thun"]}, None, [], [])
MEMBERS = Kind({"type": "boolean"}, None, [], [])


def x(sign: ComparisonSign, value: Scalar) -> Condition:
    return Compare("x", sign, value)


def both(*parts: Condition) -> Condition:
    return AllOf(parts)


def either(*parts: Condition) -> Condition:
    return AnyOf(parts)


OTHERS = Compare("other", "==", 1)
