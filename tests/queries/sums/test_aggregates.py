"""Several aggregates in one question, by brute force over all neighbours of small tables."""

from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from app.accounting.units import PICO
from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from app.queries.shapes.sums import SumShape
from tests.queries.cards import additive, card, measured_shape, question
from tests.queries.reference import Vectors, tallied
from tests.queries.shapes.test_squares import largest_square, squares_of
from tests.queries.test_sensitivity import GROUPS, VALUES, WHERE, changes, largest, weights_of

COUNT = {"kind": "count"}
SUM, MEAN, VARIANCE = ({"kind": each, "column": "x"} for each in ("sum", "mean", "variance"))
SETS = {
    "count and sum": [COUNT, SUM],
    "sum and mean": [SUM, MEAN],
    "all": [COUNT, SUM, MEAN, VARIANCE],
}
CASES = [
    pytest.param(*each, id="-".join(map(str, each)))
    for each in product(
        SETS, (False, True), (False, True), ("add_remove", "replace_one"), (None, 2)
    )
]


def case(
    names: str, where: bool, grouped: bool, neighbours: str, rows_max: int | None, values: str
) -> tuple[Card, dict[str, Any], SumShape, list[Vectors]]:
    columns = [
        {"name": "x", **VALUES[values]},
        {"name": "group", "type": "category", "values": ["a", "b"]},
        {"name": "kept", "type": "boolean"},
    ]
    made = card(columns, neighbours=neighbours, rows_max=rows_max)
    query: dict[str, Any] = {"kind": "aggregates", "of": SETS[names]}
    query |= {"where": WHERE} if where else {}
    query |= {"group_by": GROUPS} if grouped else {}
    shape = measured_shape(query, made)
    return made, query, shape, list(changes(made, shape, values))


@pytest.mark.parametrize(("names", "where", "grouped", "neighbours", "rows_max"), CASES)
def test_no_neighbour_moves_all_aggregates_by_more_than_is_charged(
    names: str, where: bool, grouped: bool, neighbours: str, rows_max: int | None
) -> None:
    for values in ("around zero", "fractions above zero"):
        made, query, shape, changes = case(names, where, grouped, neighbours, rows_max, values)
        assert sum(measure.share for measure in shape.measures) == 1
        assert largest(changes, weights_of(shape.measures)) <= 1
        assert largest_square(changes, squares_of(shape.measures)) <= 1
        release = additive(make_plan(question(query, epsilon="0.7"), made))
        loss = largest(changes, [1 / Fraction(part.scale) for part in release.parts])
        assert loss <= Fraction(release.loss.epsilon, PICO)


@pytest.mark.parametrize(("names", "where", "grouped", "neighbours", "rows_max"), CASES)
def test_the_whole_loss_for_each_aggregate_is_caught(
    names: str, where: bool, grouped: bool, neighbours: str, rows_max: int | None
) -> None:
    """The planted bug: shares that were not divided."""
    if (neighbours, rows_max, where, grouped) == ("replace_one", None, False, False):
        return  # all rows count: their number stays, and is charged all the same
    _, _, shape, changes = case(names, where, grouped, neighbours, rows_max, "around zero")
    count = len(SETS[names])
    whole = [weight * count for weight in weights_of(shape.measures)]
    assert largest(changes, whole) > 1
    squares = [square * count for square in squares_of(shape.measures)]
    assert largest_square(changes, squares) > 1


@pytest.mark.parametrize("grouped", [False, True])
def test_some_neighbour_moves_a_count_and_a_sum_as_far_as_is_charged(grouped: bool) -> None:
    for values in VALUES:
        _, _, shape, found = case("count and sum", False, grouped, "add_remove", 2, values)
        assert largest(found, weights_of(shape.measures)) == 1


def test_each_aggregate_has_its_own_noise_and_a_shared_total_is_read_once() -> None:
    made = card()
    columns = [{"kind": "sum", "column": "age"}, {"kind": "mean", "column": "age"}, COUNT]
    plan = make_plan(question({"kind": "aggregates", "of": columns}, epsilon="3"), made)
    alone = [
        part
        for each in columns
        for part in additive(make_plan(question(each, epsilon="1"), made)).parts
    ]
    parts = additive(plan).parts
    assert [part.scale for part in parts] == [part.scale for part in alone]
    assert len(plan.release.tally.aggregates) == 3  # total, values, rows


def test_an_answer_shows_each_aggregate_of_each_group_with_its_own_interval() -> None:
    made = card()
    of = [COUNT, {"kind": "mean", "column": "age"}, {"kind": "variance", "column": "age"}]
    query = {"kind": "aggregates", "of": of, "group_by": ["member"]}
    plan = make_plan(question(query, epsilon="3000"), made)
    rows: list[dict[str, Any]] = [
        {"age": age, "income": None, "city": None, "member": member, "born": None}
        for age, member in [(10, True), (30, True), (50, False), (None, False)] * 50
    ]
    answer = plan.answer(tallied(made, plan.release.tally, rows), SystemRandom())
    assert [item["group"] for item in answer["value"]] == [{"member": False}, {"member": True}]
    others, members = ([item["value"] for item in row["values"]] for row in answer["value"])
    assert members == pytest.approx([100, 20, 100], rel=0.02)
    assert others[:2] == pytest.approx([100, 50], rel=0.02)
    for row in answer["value"]:
        assert [
            {k: item[k] for k in item if k in ("kind", "column")} for item in row["values"]
        ] == of
        for item in row["values"]:
            assert item["interval"]["low"] <= item["value"] <= item["interval"]["high"]
            assert item["interval"]["confidence"] == 0.95


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"of": [COUNT, COUNT]}, "/query/of/1"),
        ({"of": [COUNT, {"kind": "sum", "column": "city"}]}, "/query/of/1/column"),
        ({"of": [{"kind": "mean", "column": "nobody"}, COUNT]}, "/query/of/0/column"),
        (
            {
                "of": [COUNT, {"kind": "sum", "column": "age"}],
                "group_by": [{"column": "age", "edges": list(range(50_002))}],
            },
            "/query/of",
        ),
        (
            {"of": [COUNT, MEAN], "group_by": [{"column": "city", "keys": "private"}]},
            "/query/of/1/column",
        ),
        (
            {
                "of": [COUNT, {"kind": "sum", "column": "age"}],
                "group_by": [{"column": "city", "keys": "private"}],
            },
            "/query/group_by/0/keys",
        ),
    ],
)
def test_an_invalid_question_is_named(query: dict[str, Any], pointer: str) -> None:
    with pytest.raises(Invalid) as refused:
        make_plan(question({"kind": "aggregates", **query}), card())
    assert refused.value.fields[0].pointer == pointer


def test_a_half_width_of_several_aggregates_is_refused() -> None:
    asked = question({"kind": "aggregates", "of": [COUNT, {"kind": "sum", "column": "age"}]})
    asked = asked.model_copy(update={"privacy": asked.privacy.model_validate({"half_width": 3})})
    with pytest.raises(Invalid) as refused:
        make_plan(asked, card())
    assert refused.value.fields[0].pointer == "/privacy/half_width"
