"""Cells of a question, compared with every row of a small card: other cells never count."""

import datetime
import math
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.data.card import Card
from app.planning.cell_reachability import reach
from app.planning.cells import ChargedCells, cell_labels, cells_to_charge
from app.planning.partition import partition_of
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
    Persons,
    PersonTotal,
    Product,
    Scalar,
    Split,
    SumSteps,
    Tally,
)
from tests.effort import examples
from tests.queries.reference import Row, holds, tallied
from tests.queries.sums.persons import tallied_persons

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


# Soundness: for every possible row


@examples(200)
@given(questions())
def test_a_row_outside_the_cells_never_changes_the_tally(asked: tuple[Kind, Tally]) -> None:
    kind, tally = asked
    card = kind.plain
    cells = cells_to_charge(tally, card).cells
    nothing = tallied(card, tally, [])
    for row in kind.rows:
        if cells is not None and kind.cell(row) not in cells:
            assert tallied(card, tally, [row]) == nothing


@st.composite
def questions_of_persons(draw: st.DrawFn) -> tuple[Kind, Tally]:
    kind = draw(kinds)
    total = PersonTotal("other", -1, 1)
    made: list[tuple[Aggregate, ...]] = [(Persons(),), (Persons("x"),), (total, Persons("other"))]
    where, few = draw(st.none() | conditions(kind)), draw(st.none() | st.just(1))
    return kind, Tally(where, draw(groupings(kind)), draw(st.sampled_from(made)), groups_max=few)


@examples(200)
@given(questions_of_persons())
def test_a_person_in_another_cell_never_changes_the_tally(asked: tuple[Kind, Tally]) -> None:
    kind, tally = asked
    promised = {**kind.plain.model_dump()["cells"], "one_per_person": True}
    person = {"kind": "column", "column": "id", "rows_max": 2}
    card = kind.card(person=person, cells=promised)
    cells = cells_to_charge(tally, card).cells
    nothing = tallied_persons(card, tally, [])
    outside = [row for row in kind.rows if cells is not None and kind.cell(row) not in cells]
    for row, other in product(outside, outside):
        if kind.cell(row) == kind.cell(other):
            assert tallied_persons(card, tally, [[row, other]]) == nothing


@examples(300)
@given(kinds.flatmap(lambda kind: st.tuples(st.just(kind), conditions(kind))))
def test_reach_bounds_where_a_condition_can_and_must_hold(asked: tuple[Kind, Condition]) -> None:
    kind, condition = asked
    reached = reach(condition, "x", partition_of(kind.plain))
    for row in kind.rows:
        bit = 1 << kind.cell(row)
        assert reached.possible & bit or not holds(condition, row)
        assert not reached.certain & bit or holds(condition, row)


# Tightness


def exact(kind: Kind, condition: Condition) -> tuple[int, int]:
    """Cells in which some row meets the condition, and cells in which every row does."""
    cells = {kind.cell(row) for row in kind.rows}
    can = {kind.cell(row) for row in kind.rows if holds(condition, row)}
    must = cells - {kind.cell(row) for row in kind.rows if not holds(condition, row)}
    return sum(1 << i for i in can), sum(1 << i for i in must)


@examples(300)
@given(kinds.flatmap(lambda kind: st.tuples(st.just(kind), comparisons(kind, ("x",)))))
def test_one_comparison_with_the_cell_column_is_exact_and_so_is_its_negation(
    asked: tuple[Kind, Condition],
) -> None:
    kind, condition = asked
    partition = partition_of(kind.plain)
    for each in (condition, Negation(condition)):
        found = reach(each, "x", partition)
        assert (found.possible, found.certain & ~partition.empty) == exact(kind, each)


SINGLE = [KINDS[name] for name in ("category", "boolean", "integer, one value each")]


@given(
    st.sampled_from(SINGLE).flatmap(lambda kind: st.tuples(st.just(kind), conditions(kind, ("x",))))
)
def test_conditions_on_single_value_cells_are_exact(asked: tuple[Kind, Condition]) -> None:
    kind, condition = asked
    partition = partition_of(kind.plain)
    found = reach(condition, "x", partition)
    assert (found.possible, found.certain & ~partition.empty) == exact(kind, condition)


def test_impossible_cells_are_those_without_a_value() -> None:
    for kind in KINDS.values():
        partition = partition_of(kind.plain)
        used = {kind.cell(row) for row in kind.rows}
        assert [i for i in range(partition.size) if partition.empty >> i & 1] == [
            i for i in range(partition.size) if i not in used
        ]


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
PINNED: list[tuple[Kind, Condition, tuple[int, ...] | None]] = [
    (AGES, x("<", 18), (0,)),
    (AGES, x("<", 17.5), (0,)),
    (AGES, x("<=", 17.5), (0,)),
    (AGES, x("<=", 18), (0, 1)),
    (AGES, x(">", 17), (1, 2)),
    (AGES, x(">", 64), (2,)),  # integers above 64 are at least 65
    (AGES, x(">", 63.5), (1, 2)),
    (AGES, x("==", 65), (2,)),
    (AGES, x("==", 120), (2,)),
    (AGES, x("==", 17.5), None),  # never
    (AGES, x("!=", 17.5), (0, 1, 2)),
    (AGES, x("!=", 70), (0, 1, 2)),
    (AGES, Negation(x("==", 70)), None),  # a missing value is not 70 either
    (AGES, Negation(x("<", 18)), (1, 2, 3)),
    (AGES, Negation(x(">=", 18)), (0, 3)),
    (AGES, both(x(">=", 18), x("<", 65)), (1,)),
    (AGES, both(x(">=", 18), x("<=", 65)), (1, 2)),
    (AGES, both(x(">=", 20), OTHERS), (1, 2)),
    (AGES, either(x(">=", 20), OTHERS), None),
    (AGES, either(x("<", 3), x(">", 100)), (0, 2)),
    (AGES, both(Negation(x("<", 18)), Negation(IsMissing("x"))), (1, 2)),
    (AGES, Negation(both(x("<", 18), OTHERS)), None),
    (AGES, Negation(either(x("<", 18), OTHERS)), (1, 2, 3)),
    (AGES, OneOf("x", (3, 70, 70.5)), (0, 2)),
    (AGES, Negation(OneOf("x", tuple(range(18)))), (1, 2, 3)),  # all values of the first cell
    (AGES, Negation(OneOf("x", tuple(range(17)))), None),
    (AGES, IsMissing("x"), (3,)),
    (AGES, Negation(IsMissing("x")), (0, 1, 2)),
    (AGES, x(">", 120), None),
    (AGES, x(">=", -5), (0, 1, 2)),
    (AGES, AnyOf(()), None),
    (AGES, AllOf(()), None),
    (AGES, OTHERS, None),
    (AGES, IsMissing("other"), None),
    (INCOMES, x("<", 10), (0,)),
    (INCOMES, x("<", 10.5), (0, 1)),
    (INCOMES, x(">", 9.5), (0, 1, 2)),
    (INCOMES, x(">", 49.5), (1, 2)),  # there are numbers between 49.5 and 50
    (INCOMES, x("==", 100), (2,)),
    (INCOMES, Negation(x("<", 50)), (2, 3)),
    (INCOMES, OneOf("x", (10.0, 0)), (0, 1)),
    (SEEN, x("<", datetime.date(2020, 1, 11)), (0,)),
    (SEEN, x(">", datetime.date(2020, 1, 20)), (2,)),
    (SEEN, x("==", datetime.date(2020, 1, 31)), (2,)),
    (SEEN, Negation(OneOf("x", tuple(days(*range(1, 11))))), (1, 2, 3)),
    (CITIES, x("==", "Chur"), (1,)),
    (CITIES, x("!=", "Chur"), (0, 2)),
    (CITIES, Negation(x("==", "Chur")), (0, 2, 3)),
    (CITIES, OneOf("x", ("Thun", "Bern")), (0, 2)),
    (CITIES, OneOf("x", ()), None),
    (CITIES, both(x("==", "Bern"), x("==", "Chur")), None),
    (CITIES, Negation(either(x("==", "Bern"), IsMissing("x"))), (1, 2)),
    (MEMBERS, x("==", True), (1,)),
    (MEMBERS, x("!=", True), (0,)),
    (MEMBERS, Negation(x("==", True)), (0, 2)),
]


@pytest.mark.parametrize(("kind", "where", "cells"), PINNED)
def test_a_filter_is_limited_to_the_cells(
    kind: Kind, where: Condition, cells: tuple[int, ...] | None
) -> None:
    assert cells_to_charge(Tally(where, (), (CountRows(),)), kind.plain).cells == cells


GROUPED: list[tuple[Kind, Tally, tuple[int, ...] | None]] = [
    (AGES, Tally(None, (ByEdges("x", (0.0, 10.0, 18.0)),), (CountRows(),)), (0, 1)),
    (AGES, Tally(None, (ByEdges("x", (0.0, 10.0, 17.0)),), (CountRows(),)), (0,)),
    (AGES, Tally(None, (ByEdges("x", (0.0, 120.0)),), (CountRows(),)), (0, 1, 2)),
    (AGES, Tally(x(">=", 18), (ByEdges("x", (0.0, 64.0)),), (CountRows(),)), (1,)),
    (AGES, Tally(None, (ByEdges("other", (0.0, 1.0)),), (CountRows(),)), None),
    (CITIES, Tally(None, (ByValues("x", ("Bern", "Chur", "Thun")),), (CountRows(),)), (0, 1, 2)),
    (CITIES, Tally(x("!=", "Bern"), (ByValues("x", ("Bern", "Chur")),), (CountRows(),)), (1,)),
    # None of these counts a missing value.
    (AGES, Tally(None, (), (CountPresent("x"), SumSteps("x"))), (0, 1, 2)),
    (AGES, Tally(None, (), (CountRows(), SumSteps("x"))), None),
    (AGES, Tally(None, (), (CountPresent("x"), SumSteps("other"))), None),
    (AGES, Tally(None, (), (SumSteps("other"),)), None),
    (AGES, Tally(None, (), (Persons("x"),)), (0, 1, 2)),
    (AGES, Tally(None, (), (PersonTotal("x", 0, 9), Persons("x"))), (0, 1, 2)),
    (AGES, Tally(None, (), (Persons(),)), None),
]


@pytest.mark.parametrize(("kind", "tally", "cells"), GROUPED)
def test_groups_and_sums_exclude_rows_too(
    kind: Kind, tally: Tally, cells: tuple[int, ...] | None
) -> None:
    assert cells_to_charge(tally, kind.plain).cells == cells


# Rules, and explanations for the analyst

BERN = Tally(x("==", "Bern"), (), (CountRows(),))
TWO = Tally(OneOf("x", ("Bern", "Chur")), (), (CountRows(),))


def test_without_cells_every_question_is_about_all_rows() -> None:
    pinning = cells_to_charge(BERN, CITIES.card(cells=None))
    assert pinning == ChargedCells(None, "no cells are declared")


def test_a_person_with_several_rows_may_be_in_several_cells() -> None:
    several = CITIES.card(person={"kind": "column", "column": "id", "rows_max": 2})
    assert cells_to_charge(BERN, several) == ChargedCells(None, "a person may be in several cells")
    one = CITIES.card(person={"kind": "column", "column": "id", "rows_max": 1})
    assert cells_to_charge(BERN, one).cells == (0,)
    cells = {"column": "x", "one_per_person": True}
    promised = CITIES.card(person=several.person.model_dump(), cells=cells)
    assert cells_to_charge(BERN, promised).cells == (0,)


def test_under_replace_one_only_a_question_about_one_cell_is_parallel() -> None:
    card = CITIES.card(neighbours="replace_one", rows=100)
    assert cells_to_charge(BERN, card).cells == (0,)
    pinning = cells_to_charge(TWO, card)
    assert pinning.cells is None
    assert "replace_one" in pinning.why
    assert cells_to_charge(TWO, CITIES.card()).cells == (0, 1)


def test_a_question_about_nobody_is_not_free() -> None:
    for neighbours in ({}, {"neighbours": "replace_one", "rows": 100}):
        pinning = cells_to_charge(Tally(AnyOf(()), (), (CountRows(),)), CITIES.card(**neighbours))
        assert pinning.cells is None
        assert "no cell possible" in pinning.why


def test_a_question_about_future_epochs_is_charged_to_those_that_have_arrived() -> None:
    column = {"name": "arrival", "type": "epoch", "high": 4}
    card = CITIES.card(columns=[column], cells={"column": "arrival"})
    for where in (Compare("arrival", "==", 3), Compare("arrival", ">", 2), AnyOf(())):
        asked = Tally(where, (), (CountRows(),))
        assert cells_to_charge(asked, card, 1).cells == (0,)
        pinning = cells_to_charge(asked, card, 2)
        assert pinning.cells == (0, 1)
        assert pinning.why.endswith("as about all that have arrived")
    assert cells_to_charge(
        Tally(Compare("arrival", "==", 3), (), (CountRows(),)), card, 3
    ).cells == (2,)


def test_the_analyst_gets_the_reason() -> None:
    card = CITIES.card()
    assert cells_to_charge(TWO, card).why == "only rows in 2 of 4 cells can count"
    everything = cells_to_charge(Tally(None, (), (CountRows(),)), card)
    assert everything.why == "the filter leaves every cell possible"


def test_labels_describe_each_cell_and_missing_values_come_last() -> None:
    assert cell_labels(CITIES.card()) == ["Bern", "Chur", "Thun", None]
    assert cell_labels(MEMBERS.card()) == [False, True, None]
    assert cell_labels(AGES.card())[0] == {"from": 0.0, "to": 18.0}
    assert cell_labels(SEEN.card())[1:] == [
        {"from": "2020-01-11", "to": "2020-01-21"},
        {"from": "2020-01-21", "to": "2020-01-31"},
        None,
    ]
    assert cell_labels(CITIES.card(cells=None)) == []
    for kind in KINDS.values():
        assert len(cell_labels(kind.plain)) == partition_of(kind.plain).size
