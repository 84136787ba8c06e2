"""Sensitivities by brute force: every neighbouring pair of small tables, in exact arithmetic.

A person has up to `rows_max` rows out of all combinations of value, group and flag. The value is
missing, one of both bounds or in between. The group is missing, a or b. The filter uses the flag.
Under add_remove the person is present or not. Under replace_one any choice of rows becomes any
other. Every second table has another person's row.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product
from typing import Any

import pytest

from app.accounting.units import PICO
from app.data.card import Card
from app.errors import Invalid
from app.planning.plan import make_plan
from app.queries.shapes.measures import Measure
from app.queries.shapes.sums import SumShape
from tests.queries.cards import additive, card, measured_shape, question
from tests.queries.reference import Row, Vectors, measured

VALUES: dict[str, dict[str, Any]] = {
    "from zero": {"type": "integer", "low": 0, "high": 3},
    "around zero": {"type": "integer", "low": -2, "high": 3},
    "below zero": {"type": "integer", "low": -5, "high": -2},
    "above zero": {"type": "integer", "low": 2, "high": 5},
    "fractions": {"type": "number", "low": -0.3, "high": 0.7},
    "fractions above zero": {"type": "number", "low": 0.1, "high": 0.7},
    "huge numbers": {"type": "number", "low": -1e15, "high": 3e14},
}
WHERE = {"column": "kept", "op": "==", "value": True}
GROUPS = ["group"]
KINDS: dict[str, dict[str, Any]] = {
    "count": {"kind": "count"},
    "sum": {"kind": "sum", "column": "x"},
    "mean": {"kind": "mean", "column": "x"},
    "histogram": {"kind": "histogram", "column": "group"},
    "variance": {"kind": "variance", "column": "x"},
    "ratio": {"kind": "ratio", "numerator": {"where": {"column": "x", "op": "is_null"}}},
    "reciprocal": {"kind": "reciprocal"},
}
CASES = [
    pytest.param(kind, where, grouped, neighbours, rows_max, id="-".join(words))
    for kind, where, grouped, neighbours, rows_max in product(
        KINDS, (False, True), (False, True), ("add_remove", "replace_one"), (None, 2)
    )
    if not (grouped and kind == "histogram")
    for words in [
        [
            kind,
            *(["where"] if where else []),
            *(["groups"] if grouped else []),
            neighbours,
            "rows" if rows_max is None else "persons",
        ]
    ]
]


def case(
    kind: str, where: bool, grouped: bool, neighbours: str, rows_max: int | None, values: str
) -> tuple[Card, dict[str, Any]]:
    columns = [
        {"name": "x", **VALUES[values]},
        {"name": "group", "type": "category", "values": ["a", "b"]},
        {"name": "kept", "type": "boolean"},
    ]
    query = dict(KINDS[kind])
    if where:
        query["where"] = WHERE
    if grouped:
        query["group_by"] = GROUPS
    return card(columns, neighbours=neighbours, rows_max=rows_max), query


@cache
def persons(values: str, rows_max: int) -> list[list[Row]]:
    """Every choice of at most this many rows."""
    low, high = VALUES[values]["low"], VALUES[values]["high"]
    between = low + 1 if isinstance(low, int) else low + (high - low) / 3
    rows = [
        {"x": x, "group": group, "kept": kept}
        for x, group, kept in product((None, low, between, high), (None, "a", "b"), (True, False))
    ]
    return [
        list(chosen)
        for count in range(rows_max + 1)
        for chosen in combinations_with_replacement(rows, count)
    ]


@cache
def changes_of(
    kind: str, where: bool, grouped: bool, neighbours: str, rows_max: int | None, values: str
) -> tuple[SumShape, list[Vectors]]:
    made, query = case(kind, where, grouped, neighbours, rows_max, values)
    shape = measured_shape(query, made)
    return shape, list(changes(made, shape, values))


def changes(made: Card, shape: SumShape, values: str) -> Iterator[Vectors]:
    """Differences of the measures between the tables of all neighbouring pairs, without repeats."""
    other = {"x": VALUES[values]["high"], "group": "a", "kept": True}
    single = made.person.kind == "row"
    seen: set[Vectors] = set()
    for context in ([], [other]):
        choices = persons(values, made.person.rows_max)
        if made.neighbours == "add_remove":
            firsts: list[list[Row]] = [[]]
        elif single:  # as many rows as before, which is public
            firsts = choices = [choice for choice in choices if len(choice) == 1]
        else:
            firsts = choices
        results = {measured(made, shape, [*context, *choice]) for choice in choices}
        for before in {measured(made, shape, [*context, *first]) for first in firsts}:
            for after in results:
                change = tuple(
                    tuple(abs(a - b) for a, b in zip(*vectors, strict=True))
                    for vectors in zip(before, after, strict=True)
                )
                if change not in seen:
                    seen.add(change)
                    yield change


def largest(all_changes: list[Vectors], weights: list[Fraction]) -> Fraction:
    """Largest sum over the measures of weight times L1 change."""
    return max(
        sum((w * sum(vector) for w, vector in zip(weights, change, strict=True)), Fraction(0))
        for change in all_changes
    )


def weights_of(measures: tuple[Measure, ...]) -> list[Fraction]:
    return [measure.share / measure.sensitivity for measure in measures]


def loose(kind: str, where: bool, grouped: bool, neighbours: str, rows_max: int | None) -> bool:
    """True if the number of rows cannot change because each is replaced; it is charged all the
    same.
    """
    return (
        kind in ("count", "reciprocal")
        and neighbours == "replace_one"
        and rows_max is None
        and not where
        and not grouped
    )


@pytest.mark.parametrize(("kind", "where", "grouped", "neighbours", "rows_max"), CASES)
def test_no_neighbour_moves_the_measures_by_more_than_is_charged_and_some_as_far(
    kind: str, where: bool, grouped: bool, neighbours: str, rows_max: int | None
) -> None:
    for values in VALUES:
        shape, found = changes_of(kind, where, grouped, neighbours, rows_max, values)
        assert sum(measure.share for measure in shape.measures) == 1
        moved = largest(found, weights_of(shape.measures))
        if loose(kind, where, grouped, neighbours, rows_max):
            assert moved == 0
        else:
            assert moved == 1, values


@pytest.mark.parametrize(("kind", "where", "grouped", "neighbours", "rows_max"), CASES)
def test_a_sensitivity_one_step_smaller_is_caught(
    kind: str, where: bool, grouped: bool, neighbours: str, rows_max: int | None
) -> None:
    if loose(kind, where, grouped, neighbours, rows_max):
        return
    for values in VALUES:
        shape, observed = changes_of(kind, where, grouped, neighbours, rows_max, values)
        for planted in range(len(shape.measures)):
            weights = weights_of(shape.measures)
            measure = shape.measures[planted]
            smaller = max(Fraction(measure.sensitivity - 1), Fraction(1, 2))
            weights[planted] = measure.share / smaller
            assert largest(observed, weights) > 1, (values, measure.name)


@pytest.mark.parametrize(("neighbours", "rows_max"), [("add_remove", 2), ("replace_one", None)])
def test_a_histogram_of_public_intervals_moves_as_far_as_one_of_categories(
    neighbours: str, rows_max: int | None
) -> None:
    made, _ = case("histogram", False, False, neighbours, rows_max, "around zero")
    query = {"kind": "histogram", "column": "x", "edges": [-2, 0, 3]}
    shape = measured_shape(query, made)
    found = list(changes(made, shape, "around zero"))
    assert largest(found, weights_of(shape.measures)) == 1


def test_two_groupings_together_move_as_far_as_one() -> None:
    for neighbours in ("add_remove", "replace_one"):
        made, _ = case("sum", False, False, neighbours, 2, "around zero")
        query = {"kind": "sum", "column": "x", "group_by": ["group", "kept"]}
        shape = measured_shape(query, made)
        found = list(changes(made, shape, "around zero"))
        assert largest(found, weights_of(shape.measures)) == 1


@pytest.mark.parametrize(("kind", "where", "grouped", "neighbours", "rows_max"), CASES)
def test_the_loss_of_every_release_stays_within_its_charge(
    kind: str, where: bool, grouped: bool, neighbours: str, rows_max: int | None
) -> None:
    """The loss is the sum over measures of the L1 change divided by the scale of the drawn
    noise.
    """
    released = 0
    for values in ("around zero", "fractions", "huge numbers"):
        made, query = case(kind, where, grouped, neighbours, rows_max, values)
        _, observed = changes_of(kind, where, grouped, neighbours, rows_max, values)
        for epsilon in ("1000", "1", "0.7", "0.1", "1e-3", "1e-6", "1e-12"):
            try:
                release = additive(make_plan(question(query, epsilon=epsilon), made))
            except Invalid:
                continue  # no release, no loss
            charge = Fraction(release.loss.epsilon, PICO)
            loss = largest(observed, [1 / Fraction(part.scale) for part in release.parts])
            assert loss <= charge, (values, epsilon)
            released += 1
    assert released >= 12
