"""Running totals: sensitivity, order, intervals, refusals."""

import datetime
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from app.errors import Invalid
from app.mechanisms.noise.constrained_inference import running
from app.mechanisms.noise.workload_release import WorkloadRelease, _share
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from app.queries.estimates import Estimate
from app.queries.shapes.sums import SumShape
from tests.queries.cards import card, measured_shape, question
from tests.queries.reference import Row, tallied

Json = dict[str, Any]
COLUMNS: list[Json] = [
    {"name": "x", "type": "integer", "low": 0, "high": 9},
    {"name": "kept", "type": "boolean"},
]
EDGES = [0, 2, 3, 5, 6, 8]
CDF: Json = {"kind": "cdf", "column": "x", "edges": EDGES}
ROWS: list[Row] = [{"x": x, "kept": kept} for x, kept in product((None, *range(10)), (None, True))]


def shapes(query: Json, **kind: Any) -> list[SumShape]:
    shape = measured_shape(query, card(COLUMNS, **kind))
    return [shape, *(each for each in shape.alternatives if isinstance(each, SumShape))]


@pytest.mark.parametrize("where", [None, {"column": "kept", "op": "==", "value": True}])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("rows_max", [None, 2])
def test_the_measures_move_as_far_as_is_charged_and_no_further(
    where: Json | None, neighbours: str, rows_max: int | None
) -> None:
    made = card(COLUMNS, neighbours=neighbours, rows_max=rows_max)
    found = shapes(CDF | {"where": where}, neighbours=neighbours, rows_max=rows_max)
    assert {shape.linear.strategy for shape in found if shape.linear} == {"cells", "hierarchical"}
    for shape in found:
        assert shape.linear is not None
        vectors = np.array(
            [shape.linear.measurements(tallied(made, shape.tally, [row])) for row in ROWS]
        )
        if rows_max == 2:
            both = (vectors[:, None, :] + vectors[None, :, :]).reshape(-1, vectors.shape[1])
            vectors = np.unique(np.vstack([vectors, both]), axis=0)
        apart = np.abs(vectors)
        if neighbours == "replace_one":
            apart = np.abs(vectors[:, None, :] - vectors[None, :, :]).reshape(-1, vectors.shape[1])
        measure = shape.measures[0]
        assert apart.sum(axis=1).max() == measure.sensitivity
        assert (apart**2).sum(axis=1).max() == measure.sensitivity_squared


class Silent(SystemRandom):
    @override
    def discrete_laplace(self, scale: float, size: int) -> list[int]:
        return [0] * size


@pytest.mark.parametrize(
    ("column", "edges"),
    [
        ({"type": "integer", "low": 0, "high": 100}, [0, 20, 40, 60, 100]),
        ({"type": "integer", "low": 0, "high": 100}, [0, 19.5, 20.5, 41, 99]),
        ({"type": "integer", "low": 0, "high": 1 << 53}, [0, 1, 2, 20, 1e17]),
        ({"type": "number", "low": 0, "high": 100}, [0, 20, 40.5, 60, 100]),
        ({"type": "date", "low": "2020-01-01", "high": "2020-06-01"},
         ["2020-01-01", "2020-01-21", "2020-01-22", "2020-03-01", "2020-04-30"]),
    ],
)  # fmt: skip
def test_a_total_counts_values_up_to_and_including_its_edge(column: Json, edges: list[Any]) -> None:
    made = card([{"name": "x", **column}])
    values: list[Any] = [0, 0, 20, 20, 20, 40, 41, 100, 100, None]
    typed = edges
    if column["type"] == "date":
        start = datetime.date(2020, 1, 1)
        values = [v if v is None else start + datetime.timedelta(v) for v in values]
        typed = [datetime.date.fromisoformat(edge) for edge in edges]
    plan = make_plan(question({"kind": "cdf", "column": "x", "edges": edges}), made)
    exact = tallied(made, plan.release.tally, [{"x": value} for value in values])
    items = plan.answer(exact, Silent())["value"]
    assert [item["up_to"] for item in items] == edges[1:]
    there = [value for value in values if value is not None]
    assert [item["value"] for item in items] == pytest.approx(
        [sum(typed[0] <= value <= edge for value in there) for edge in typed[1:]], abs=1e-9
    )


@pytest.mark.parametrize("strategy", ["cells", "hierarchical"])
def test_without_noise_the_totals_are_exact(strategy: str) -> None:
    made = card(COLUMNS)
    plan = make_plan(question(CDF | {"strategy": strategy}), made)
    items = plan.answer(tallied(made, plan.release.tally, ROWS), Silent())["value"]
    assert [item["up_to"] for item in items] == EDGES[1:]
    assert [item["value"] for item in items] == pytest.approx([6, 8, 12, 14, 18], abs=1e-9)
    assert [item["share"]["value"] for item in items] == pytest.approx(
        [6 / 18, 8 / 18, 12 / 18, 14 / 18, 1]
    )


@pytest.mark.parametrize("strategy", ["cells", "hierarchical"])
@pytest.mark.parametrize("rows", [[], ROWS[:1], ROWS], ids=["none", "missing", "some"])
def test_totals_never_fall_and_stay_between_zero_and_the_last(
    strategy: str, rows: list[Row]
) -> None:
    made = card(COLUMNS)
    plan = make_plan(question(CDF | {"strategy": strategy}, epsilon="0.05"), made)
    for _ in range(20):
        items = plan.answer(tallied(made, plan.release.tally, rows), SystemRandom())["value"]
        values = [item["value"] for item in items]
        assert values == sorted(values)
        assert values[0] >= 0
        for item in items:
            for figure in (item, item["share"]):
                interval = figure["interval"]
                assert 0 <= interval["low"] <= figure["value"] <= interval["high"]
            assert item["share"]["interval"]["high"] <= 1


@pytest.mark.statistical
@pytest.mark.parametrize("strategy", ["cells", "hierarchical"])
def test_intervals_of_totals_and_shares_hold_as_often_as_stated(strategy: str) -> None:
    """300 answers at 80 %: one figure has more than 110 misses with probability below 1e-6."""
    made = card(COLUMNS)
    plan = make_plan(question(CDF | {"strategy": strategy}, confidence=0.8), made)
    rows = ROWS * 4
    exact = [24, 32, 48, 56, 72]
    tally = tallied(made, plan.release.tally, rows)
    misses = [[0] * 5, [0] * 5]
    for _ in range(300):
        for i, item in enumerate(plan.answer(tally, SystemRandom())["value"]):
            for kind, (figure, truth) in enumerate(
                ((item, exact[i]), (item["share"], exact[i] / exact[-1]))
            ):
                interval = figure["interval"]
                misses[kind][i] += not (interval["low"] - 1e-9 <= truth <= interval["high"] + 1e-9)
    assert max(map(max, misses)) <= 110


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.data())
def test_the_order_correction_never_moves_totals_away_from_the_truth(
    steps: list[int], data: st.DataObject
) -> None:
    truth = np.cumsum(steps).astype(float)
    noise = data.draw(st.lists(st.integers(-30, 30), min_size=len(steps), max_size=len(steps)))
    noisy = truth + np.array(noise)
    assert np.linalg.norm(running(noisy) - truth) <= np.linalg.norm(noisy - truth) + 1e-6


@given(st.floats(0, 50), st.floats(0, 50), st.floats(0, 9), st.floats(0, 9))
def test_the_interval_of_a_share_holds_for_every_point_of_the_box(
    part: float, rest: float, half_part: float, half_whole: float
) -> None:
    whole = part + rest
    one = Estimate(part, max(part - half_part, 0.0), part + half_part)
    all_ = Estimate(whole, max(whole - half_whole, 0.0), whole + half_whole)
    shown = _share(one, all_)
    assert 0 <= shown.low <= shown.value <= shown.high <= 1 + 1e-9
    if all_.low >= 1:
        for above, below in product((one.low, one.high), (all_.low, all_.high)):
            assert shown.low - 1e-9 <= min(above / below, 1.0) <= shown.high + 1e-9


def test_a_half_width_bounds_the_last_total() -> None:
    made = card(COLUMNS)
    privacy = question(CDF).privacy.model_validate({"half_width": 12})
    plan = make_plan(question(CDF).model_copy(update={"privacy": privacy}), made)
    assert isinstance(plan.release, WorkloadRelease)
    assert 10 <= plan.release.half_width(0.95) <= 12


WRONG: dict[str, tuple[Json, str]] = {
    "a category": ({"column": "kept", "edges": [0, 1]}, "/query/column"),
    "no column": ({"column": "shoes", "edges": [0, 1]}, "/query/column"),
    "edges that fall": ({"column": "x", "edges": [1, 0]}, "/query/edges"),
    "too many bins": ({"column": "x", "edges": list(range(10_002))}, "/query/edges"),
    "a hierarchy of few": (
        {"column": "x", "edges": [0, 1, 2], "strategy": "hierarchical"},
        "/query/strategy",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_invalid_cdf_is_refused_by_its_field(wrong: str) -> None:
    members, pointer = WRONG[wrong]
    with pytest.raises(Invalid) as caught:
        make_plan(question({"kind": "cdf", **members}), card(COLUMNS))
    assert [field.pointer for field in caught.value.fields] == [pointer]
