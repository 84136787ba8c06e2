"""Workloads: sensitivity by brute force, golden errors, and strategies."""

import numpy as np
import pytest
from typing_extensions import override

from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.noise.constrained_inference import linear_estimate, running
from app.mechanisms.sampling.system import SystemRandom
from app.planning.mechanism_choice import options
from app.planning.plan import make_plan
from app.queries.shapes.sums import SumShape
from app.queries.shapes.workload import OverlappingCounts, projector
from app.queries.workloads.workload import Workload
from tests.queries.cards import card, promised_width, question
from tests.queries.reference import Row, holds, tallied
from tests.queries.workloads.weight_workloads import (
    BMI,
    COLUMNS,
    LIGHT,
    MALE,
    ODD,
    RANGES,
    ROWS,
    Json,
    linear_of,
    linear_plan,
    shapes,
    workload,
)

SETS: dict[str, list[Json]] = {
    "bmi": BMI,
    "ranges": RANGES,
    "odd": ODD,
    "one": [MALE],
    "all": [{"all": []}],
}


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("where", [None, {"column": "kept", "op": "==", "value": True}])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("rows_max", [None, 2])
def test_no_neighbour_moves_the_measures_by_more_than_is_charged_and_some_as_far(
    name: str, where: Json | None, neighbours: str, rows_max: int | None
) -> None:
    made = card(COLUMNS, neighbours=neighbours, rows_max=rows_max)
    for shape in shapes(workload(SETS[name], where=where), made):
        vectors = np.unique([_measured(made, shape, [row]) for row in ROWS], axis=0)
        m = 1
        if rows_max == 2:  # the total of a person's two rows
            m = 2
            both = (vectors[:, None, :] + vectors[None, :, :]).reshape(-1, vectors.shape[1])
            vectors = np.unique(np.vstack([vectors, both, 0 * vectors[:1]]), axis=0)
        if neighbours == "add_remove":
            apart = np.abs(vectors)
        else:
            apart = np.abs(vectors[:, None, :] - vectors[None, :, :]).reshape(-1, vectors.shape[1])
        measure = shape.measures[0]
        moved, squared = apart.sum(axis=1).max(), (apart**2).sum(axis=1).max()
        assert moved <= measure.sensitivity
        assert squared <= measure.sensitivity_squared
        always = name == "all" and neighbours == "replace_one" and where is None and m == 1
        assert (moved == measure.sensitivity) or always  # a replaced row stays counted
        assert (squared == measure.sensitivity_squared) or always
        if measure.single_cell:
            assert (apart > 0).sum(axis=1).max() <= 1


def _measured(made: Card, shape: SumShape, rows: list[Row]) -> list[int]:
    return linear_of(shape).measurements(tallied(made, shape.tally, rows))


def test_without_an_overlap_check_all_predicates_count() -> None:
    """The opposite of the saboteur: with too many combinations of values, no overlap is
    excluded."""
    many = [
        {"name": name, "type": "category", "values": [str(i) for i in range(60)]}
        for name in ("a", "b", "c", "d")
    ]
    predicates = [
        {"column": name, "op": "==", "value": str(i)} for name in ("a", "b", "c", "d")
        for i in range(20)
    ]  # fmt: skip
    (shape,) = shapes(workload(predicates[:60]), card(many))
    assert linear_of(shape).strategy == "cells" or shape.measures[0].sensitivity <= 60
    (alone,) = shapes(workload(predicates), card(many))
    assert (linear_of(alone).strategy, alone.measures[0].sensitivity) == ("identity", 80)
    with pytest.raises(Invalid, match="/query/strategy"):
        shapes(workload(predicates, strategy="cells"), card(many))


# Golden errors


@pytest.mark.parametrize(
    ("neighbours", "identity", "cells"), [("add_remove", 32, 12), ("replace_one", 128, 48)]
)
def test_four_counts_by_sex_and_weight_have_the_golden_errors(
    neighbours: str, identity: float, cells: float
) -> None:
    """Total squared error times epsilon^2, for an epsilon at which integer noise is nearly
    continuous. Asked one by one at epsilon / 4 each, it is 4 * 2 * 4^2 = 128."""
    made = card(COLUMNS, neighbours=neighbours)
    parsed = question(workload(BMI), epsilon="0.01")
    errors = {
        option.release.describe()["strategy"]: option.release.expected_error(0.95).details
        for option in options(parsed, made, frozenset())
    }
    assert errors["identity"]["total_squared_error"] / 1e4 == pytest.approx(identity, rel=1e-4)
    assert errors["cells"]["total_squared_error"] / 1e4 == pytest.approx(cells, rel=1e-4)
    alone = question({"kind": "count", "where": MALE}, epsilon="0.0025")
    (separate,) = make_plan(alone, made).release.standard_deviations
    assert 4 * separate**2 / 1e4 == pytest.approx(128, rel=1e-4)
    chosen = make_plan(parsed, made).mechanism
    assert chosen["strategy"] == "cells"


def test_disjoint_predicates_cost_as_much_as_one() -> None:
    disjoint = [{"column": "bmi", "op": "==", "value": i} for i in range(10, 40)]
    for shape in shapes(workload(disjoint), card(COLUMNS)):
        if linear_of(shape).strategy != "hierarchical":
            assert shape.measures[0].sensitivity == 1


def test_a_hierarchy_answers_many_ranges_best() -> None:
    made = card([{"name": "x", "type": "integer", "low": 0, "high": 255}])
    ranges = [
        {"column": "x", "op": "between", "value": [low, high]}
        for low in range(0, 256, 16)
        for high in range(low + 7, 256, 8)
    ]
    _, release = linear_plan(workload(ranges), made)
    asked = question(workload(ranges))
    errors = {
        option.release.describe()["strategy"]: option.release.expected_error(0.95).details
        for option in options(asked, made, frozenset())
    }
    totals = {name: error["total_squared_error"] for name, error in errors.items()}
    assert min(totals, key=lambda name: totals[name]) == release.linear.strategy
    assert totals["identity"] > 10 * totals["cells"]


# Answers


@pytest.mark.parametrize("strategy", ["identity", "cells", "hierarchical"])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_without_noise_every_strategy_gives_exact_counts(strategy: str, nonnegative: bool) -> None:
    made = card(COLUMNS)
    query = workload(RANGES, strategy=strategy, nonnegative=nonnegative)
    plan, _ = linear_plan(query, made)

    class Silent(SystemRandom):
        @override
        def discrete_laplace(self, scale: float, size: int) -> list[int]:
            return [0] * size

    answer = plan.answer(tallied(made, plan.release.tally, ROWS), Silent())
    asked = plan.question.query
    assert isinstance(asked, Workload)
    exact = [sum(holds(each, row) for row in ROWS) for each in asked.conditions(made)]
    assert [item["value"] for item in answer["value"]] == pytest.approx(exact, abs=1e-6)
    assert [item["name"] for item in answer["value"]] == [str(i) for i in range(len(RANGES))]
    assert not any(item["adjusted"] for item in answer["value"])
    assert answer["interval"] is None


def test_answers_are_consistent_with_each_other() -> None:
    """All = light + not light, for every noise, unless consistency is switched off."""
    predicates = [LIGHT, {"not": LIGHT}, {"all": []}]
    made = card(COLUMNS)
    for strategy in ("identity", "cells"):
        plan, _ = linear_plan(workload(predicates, strategy=strategy), made, epsilon="0.01")
        light, rest, everyone = (
            item["value"]
            for item in plan.answer(tallied(made, plan.release.tally, ROWS), SystemRandom())[
                "value"
            ]
        )
        assert light + rest == pytest.approx(everyone, abs=1e-6)
    raw = workload(predicates, strategy="identity", consistent=False)
    plan, release = linear_plan(raw, made, epsilon="0.01")
    assert release.linear.projection is None
    answer = plan.answer(tallied(made, plan.release.tally, ROWS), SystemRandom())
    assert all(isinstance(item["value"], int) for item in answer["value"])


def test_parts_and_their_total_are_projected_onto_sums_that_agree() -> None:
    """Parts (30, 45, 35) and total 100 of equal variances become (27.5, 42.5, 32.5; 102.5)."""
    parts = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=bool)
    projection = projector(parts)
    assert projection is not None
    assert projection @ [30, 45, 35, 100] == pytest.approx([27.5, 42.5, 32.5, 102.5])


def test_a_tree_has_the_least_squares_leaves() -> None:
    """10; 6, 3; 4, 1, 2, 2 has the leaves 4.4761905, 1.4761905, 1.8095238, 1.8095238."""
    linear = OverlappingCounts(
        "hierarchical", (), 4, (), runs=(1, 2, 4), wanted=np.eye(4, dtype=bool)
    )
    leaves = linear_estimate(linear, [4, 1, 2, 2, 6, 3, 10])
    assert leaves == pytest.approx([4.4761905, 1.4761905, 1.8095238, 1.8095238], abs=1e-7)


def test_running_totals_are_fitted_by_isotonic_regression() -> None:
    assert running(np.array([3.0, 1, 2, 5, 4])) == pytest.approx([2, 2, 2, 4.5, 4.5])


def test_nonnegative_answers_are_not_negative_and_report_the_correction() -> None:
    made = card(COLUMNS)
    for strategy in ("identity", "cells", "hierarchical"):
        query = workload(RANGES, strategy=strategy, nonnegative=True)
        plan, _ = linear_plan(query, made, epsilon="0.001")
        items = plan.answer(tallied(made, plan.release.tally, []), SystemRandom())["value"]
        assert all(item["value"] >= 0 for item in items)
        for item in items:
            assert 0 <= item["interval"]["low"] <= item["value"] <= item["interval"]["high"]


@pytest.mark.statistical
@pytest.mark.parametrize("strategy", ["identity", "cells", "hierarchical"])
def test_intervals_cover_the_exact_counts_as_often_as_stated(strategy: str) -> None:
    """300 answers to each of 6 predicates at 80 %. If each misses with at most 0.2 (60 expected,
    deviation 6.9), more than 110 misses have probability below 1e-6."""
    made = card(COLUMNS)
    plan, _ = linear_plan(workload(RANGES, strategy=strategy), made, confidence=0.8)
    asked = plan.question.query
    assert isinstance(asked, Workload)
    exact = [sum(holds(each, row) for row in ROWS) for each in asked.conditions(made)]
    tally = tallied(made, plan.release.tally, ROWS)
    misses = [0] * len(exact)
    for _ in range(300):
        for i, item in enumerate(plan.answer(tally, SystemRandom())["value"]):
            interval = item["interval"]
            misses[i] += not interval["low"] - 1e-6 <= exact[i] <= interval["high"] + 1e-6
    assert max(misses) <= 110


# Half-widths


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("predicates", [BMI, RANGES], ids=["bmi", "ranges"])
def test_a_half_width_is_charged_at_the_least_loss_that_keeps_every_interval_within_it(
    mechanism: str, predicates: list[Json]
) -> None:
    made = card(COLUMNS)
    losses = []
    for half_width in (5.0, 20.0, 300.5):
        parsed = question(workload(predicates), mechanism={"kind": mechanism}).model_copy(
            update={"privacy": question({"kind": "count"}).privacy.model_validate(
                {"half_width": half_width, "delta": 1e-6})}
        )  # fmt: skip
        plan = make_plan(parsed, made)
        promised = promised_width(plan.release, 0.95)
        assert half_width * 0.9 - 1 <= promised <= half_width
        answer = plan.answer(tallied(made, plan.release.tally, ROWS), SystemRandom())
        for item in answer["value"]:
            interval = item["interval"]
            assert interval["high"] - interval["low"] <= 2 * half_width * (1 + 1e-9)
        losses.append(plan.loss.rho)
    assert losses == sorted(losses, reverse=True)
