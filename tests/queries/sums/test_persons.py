"""Sensitivities of questions about persons by brute force over neighbouring pairs of small tables.

A person has up to three rows out of all combinations of value, group and flag. The value is missing
or one of both bounds. The group is missing, a, b or c. The filter uses the flag. Under add_remove
the person is present or not. Under replace_one any choice of rows becomes any other.
"""

from collections.abc import Iterable
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
from tests.queries.reference import Row, Vectors
from tests.queries.sums.persons import Person, measured_persons

ROWS_MAX = 3
LOW, HIGH = -6, 6  # one row alone reaches every bound
COLUMNS: list[dict[str, Any]] = [
    {"name": "x", "type": "integer", "low": LOW, "high": HIGH},
    {"name": "group", "type": "category", "values": ["a", "b", "c"]},
    {"name": "kept", "type": "boolean"},
]
BOUNDS = {
    "above zero": (0, 4),
    "around zero": (-3, 5),
    "below zero": (-4, -1),
    "far above zero": (2, 3),
}
KINDS: dict[str, dict[str, Any]] = {
    "count_distinct": {"kind": "count_distinct"},
    **{
        f"{kind} {name}": {"kind": kind, "column": "x", "per_person": {"low": low, "high": high}}
        for kind in ("sum", "mean")
        for name, (low, high) in BOUNDS.items()
    },
}
WHERE = {"column": "kept", "op": "==", "value": True}
CASES = [
    pytest.param(
        kind, where, groups_max, neighbours, id=f"{kind}-{where}-{groups_max}-{neighbours}"
    )
    for kind, where, groups_max, neighbours in product(
        KINDS, (False, True), ("no groups", None, 1, 2), ("add_remove", "replace_one")
    )
]


def persons_query(kind: str, where: bool, groups_max: Any) -> dict[str, Any]:
    query = dict(KINDS[kind])
    if where:
        query["where"] = WHERE
    if groups_max != "no groups":
        query["group_by"] = ["group"]
        if groups_max is not None:
            query["groups_max"] = groups_max
    return query


@cache
def persons() -> list[Person]:
    """Every choice of at most this many rows."""
    rows: list[Row] = [
        {"x": x, "group": group, "kept": kept}
        for x, group, kept in product((None, LOW, HIGH), (None, "a", "b", "c"), (True, False))
    ]
    return [
        list(chosen)
        for count in range(ROWS_MAX + 1)
        for chosen in combinations_with_replacement(rows, count)
    ]


@cache
def changes_of(
    kind: str, where: bool, groups_max: Any, neighbours: str
) -> tuple[SumShape, list[Vectors]]:
    made = card(COLUMNS, neighbours=neighbours, rows_max=ROWS_MAX)
    shape = measured_shape(persons_query(kind, where, groups_max), made)
    return shape, changes(made, shape, [[]])


def changes(made: Card, shape: SumShape, others: list[list[Person]]) -> list[Vectors]:
    differences: set[Vectors] = set()
    for other in others:
        results = {measured_persons(made, shape, [*other, person]) for person in persons()}
        before = results
        if made.neighbours == "add_remove":
            before = {measured_persons(made, shape, other)}
        differences |= {difference(a, b) for a in before for b in results}
    return sorted(differences)


def difference(before: Vectors, after: Vectors) -> Vectors:
    return tuple(
        tuple(abs(a - b) for a, b in zip(one, other, strict=True))
        for one, other in zip(before, after, strict=True)
    )


def largest(changes: Iterable[Vectors], measures: tuple[Measure, ...], power: int = 1) -> Fraction:
    """Largest share of the charged sensitivity: of L1 changes, or of squared L2 changes."""
    by = [
        measure.share / (measure.sensitivity if power == 1 else measure.sensitivity_squared)
        for measure in measures
    ]
    return max(
        sum(
            (w * sum(part**power for part in vector) for w, vector in zip(by, change, strict=True)),
            Fraction(0),
        )
        for change in changes
    )


@pytest.mark.parametrize(("kind", "where", "groups_max", "neighbours"), CASES)
def test_no_person_moves_the_measures_by_more_than_is_charged_and_some_as_far(
    kind: str, where: bool, groups_max: Any, neighbours: str
) -> None:
    shape, changes = changes_of(kind, where, groups_max, neighbours)
    assert sum(measure.share for measure in shape.measures) == 1
    assert largest(changes, shape.measures) <= 1
    assert largest(changes, shape.measures, power=2) <= 1
    if not crowded(groups_max, neighbours):
        assert largest(changes, shape.measures) == 1


def crowded(groups_max: Any, neighbours: str) -> bool:
    """True if three groups are too few: a person cannot leave two or three and enter as many
    others.
    """
    return neighbours == "replace_one" and groups_max in (None, 2)


def only(measure: Measure, less: int) -> Measure:
    return Measure(measure.name, measure.terms, measure.sensitivity - less, measure.share, 0)


@pytest.mark.parametrize(("kind", "where", "groups_max", "neighbours"), CASES)
def test_a_sensitivity_one_step_smaller_is_caught(
    kind: str, where: bool, groups_max: Any, neighbours: str
) -> None:
    if crowded(groups_max, neighbours):
        return
    shape, changes = changes_of(kind, where, groups_max, neighbours)
    for planted, measure in enumerate(shape.measures):
        if measure.sensitivity == 1:
            continue
        smaller = list(shape.measures)
        smaller[planted] = only(measure, 1)
        assert largest(changes, tuple(smaller)) > 1, measure.name


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("mean")])
@pytest.mark.parametrize("groups_max", ["no groups", 1])
def test_a_square_one_smaller_is_caught(kind: str, groups_max: Any, neighbours: str) -> None:
    shape, found = changes_of(kind, False, groups_max, neighbours)
    (measure,) = shape.measures
    assert largest(found, shape.measures, power=2) == 1
    moved = max(sum(part**2 for part in vector) for (vector,) in found)
    assert moved == measure.sensitivity_squared


def test_groups_beyond_the_maximum_move_further_than_is_charged() -> None:
    """A saboteur: an engine that ignores `groups_max`."""
    for kind in ("count_distinct", "sum around zero"):
        made = card(COLUMNS, rows_max=ROWS_MAX)
        shape = measured_shape(persons_query(kind, False, 1), made)
        forgot = measured_shape(persons_query(kind, False, None), made)
        assert largest(changes(made, forgot, [[]]), shape.measures) > 1


def test_two_persons_counted_as_one_would_move_further_than_is_charged() -> None:
    """A saboteur: two persons with the same hash. Each then changes the other's contribution."""
    made = card(COLUMNS, rows_max=ROWS_MAX)
    for kind, groups_max in (("count_distinct", 1), ("sum around zero", "no groups")):
        shape = measured_shape(persons_query(kind, False, groups_max), made)
        others = [[{"x": LOW, "group": group, "kept": True}] for group in "abc"]
        held_for_one = [
            difference(
                measured_persons(made, shape, [other]),
                measured_persons(made, shape, [[*other, *person]]),
            )
            for other in others
            for person in persons()
        ]
        apart = changes(made, shape, [[other] for other in others])
        assert largest(apart, shape.measures) <= 1
        assert largest(held_for_one, shape.measures) > 1, kind


def test_persons_with_one_row_each_are_counted_as_rows() -> None:
    for neighbours in ("add_remove", "replace_one"):
        made = card(COLUMNS, neighbours=neighbours)
        for more in ({}, {"group_by": ["group"]}):
            rows = measured_shape({"kind": "count", **more}, made)
            counted = measured_shape({"kind": "count_distinct", **more}, made)
            assert counted.tally == rows.tally
            assert counted.measures[0].sensitivity == rows.measures[0].sensitivity
            assert (
                counted.measures[0].sensitivity_l2_squared
                == rows.measures[0].sensitivity_l2_squared
            )
            assert counted.measures[0].single_cell == rows.measures[0].single_cell


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_the_loss_of_every_release_stays_within_its_charge(neighbours: str, mechanism: str) -> None:
    released = 0
    made = card(COLUMNS, neighbours=neighbours, rows_max=ROWS_MAX)
    for kind, groups_max in product(KINDS, ("no groups", None, 1)):
        _, changes = changes_of(kind, False, groups_max, neighbours)
        for rho in ("0.001", "0.5", "3"):
            asking = question(persons_query(kind, False, groups_max), mechanism={"kind": mechanism})
            privacy = {"rho": rho} if mechanism == "gaussian" else {"epsilon": rho}
            asking = asking.model_validate({**asking.model_dump(by_alias=True), "privacy": privacy})
            release = additive(make_plan(asking, made))
            scales = [Fraction(part.scale) for part in release.parts]
            if mechanism == "laplace":
                charge = Fraction(release.loss.epsilon, PICO)
                moved = max(
                    sum(sum(vector) / scale for vector, scale in zip(change, scales, strict=True))
                    for change in changes
                )
            else:
                charge = Fraction(release.loss.rho, PICO)
                moved = max(
                    sum(
                        sum(part**2 for part in vector) / (2 * scale**2)
                        for vector, scale in zip(change, scales, strict=True)
                    )
                    for change in changes
                )
            assert moved <= charge, (kind, groups_max)
            released += 1
    assert released == 81


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "groups of no groups": ({"kind": "count_distinct", "groups_max": 2}, "/query/groups_max"),
    "groups of rows": (
        {"kind": "sum", "column": "x", "group_by": ["group"], "groups_max": 1},
        "/query/groups_max",
    ),
    "groups of rows of a mean": (
        {"kind": "mean", "column": "x", "group_by": ["group"], "groups_max": 1},
        "/query/groups_max",
    ),
    "another column": ({"kind": "count_distinct", "column": "x"}, "/query/column"),
    "half a step": (
        {"kind": "sum", "column": "x", "per_person": {"low": 0, "high": 1.5}},
        "/query/per_person/high",
    ),
    "no room": (
        {"kind": "mean", "column": "x", "per_person": {"low": 3, "high": 3}},
        "/query/per_person/high",
    ),
    "the wrong way round": (
        {"kind": "sum", "column": "x", "per_person": {"low": 3, "high": -3}},
        "/query/per_person/high",
    ),
    "too far": (
        {"kind": "sum", "column": "x", "per_person": {"low": -(2**61), "high": 3}},
        "/query/per_person/low",
    ),
    "larger than any float": (
        {"kind": "sum", "column": "x", "per_person": {"low": 0, "high": 10**400}},
        "/query/per_person/high",
    ),
    "no number": (
        {"kind": "sum", "column": "group", "per_person": {"low": 0, "high": 3}},
        "/query/column",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_invalid_question_about_persons_is_refused_by_its_field(case: str) -> None:
    query, pointer = REFUSED[case]
    with pytest.raises(Invalid) as refused:
        make_plan(question(query), card(COLUMNS, rows_max=2))
    assert [error.pointer for error in refused.value.fields] == [pointer]


def test_the_person_column_may_be_named_if_there_is_one() -> None:
    query = {"kind": "count_distinct", "column": "person"}
    made = card(COLUMNS, rows_max=2)
    assert (
        measured_shape(query, made).tally == measured_shape({"kind": "count_distinct"}, made).tally
    )
    with pytest.raises(Invalid):
        measured_shape(query, card(COLUMNS))
