"""Choices have the golden laws."""

import math

import pytest

from app.mechanisms.selection.exponential import LAW as EXPONENTIAL
from app.mechanisms.selection.noisy_max import LAWS as NOISY
from app.mechanisms.selection.permute_and_flip import LAW as FLIP
from app.mechanisms.selection.selection_release import tail_bound
from app.planning.plan import make_plan
from tests.mechanisms.selection.selection_law import (
    continuous_laplace_law,
    discrete_laplace_law,
    exponential_law,
    permute_and_flip_law,
)
from tests.mechanisms.selection.selection_questions import chosen, rate_of
from tests.queries.cards import (
    card,
    choice_shape,
    promised_width,
    question,
)
from tests.queries.reference import tallied


@pytest.mark.parametrize(
    ("scores", "epsilon", "score_range", "law"),
    [
        ((8, 6, 5, 1), "0.5", 1, (0.616824, 0.226917, 0.137632, 0.0186265)),
        ((8, 6, 5, 1), "0.5", 2, (0.443917, 0.26925, 0.209692, 0.0771413)),
        ((8, 12, 15, 15, 16), "4", 8, (0.00773885, 0.0571828, 0.256276, 0.256276, 0.422527)),
        ((3, 1, 2, 0), "1", 2, (0.455054, 0.167405, 0.276004, 0.101536)),
    ],
)
def test_the_exponential_mechanism_has_the_golden_law(
    scores: tuple[int, ...], epsilon: str, score_range: int, law: tuple[float, ...]
) -> None:
    rate = rate_of(EXPONENTIAL, score_range, epsilon)
    assert exponential_law(scores, rate) == pytest.approx(law, rel=1e-5)
    assert rate_of(NOISY["gumbel"], score_range, epsilon) == rate


@pytest.mark.parametrize(
    ("scores", "epsilon", "score_range", "flip", "laplace"),
    [
        (
            (8, 6, 5, 1),
            "0.5",
            1,
            (0.722087, 0.168614, 0.0969678, 0.0123308),
            (0.630451, 0.22495, 0.129006, 0.0155923),
        ),
        (
            (3, 1, 2, 0),
            "1",
            2,
            (0.535633, 0.137219, 0.24767, 0.0794773),
            (0.476392, 0.156917, 0.276709, 0.0899824),
        ),
    ],
)
def test_permute_and_flip_and_the_noisy_max_have_the_golden_laws(
    scores: tuple[int, ...],
    epsilon: str,
    score_range: int,
    flip: tuple[float, ...],
    laplace: tuple[float, ...],
) -> None:
    rate = rate_of(FLIP, score_range, epsilon)
    assert permute_and_flip_law(scores, rate) == pytest.approx(flip, rel=1e-5)
    assert continuous_laplace_law(scores, rate) == pytest.approx(laplace, rel=1e-5)
    # Ours is discrete, and converges to the golden one on ever finer steps.
    assert rate_of(NOISY["laplace"], score_range, epsilon) == rate
    finer = discrete_laplace_law([100 * score for score in scores], rate / 100)
    assert finer == pytest.approx(laplace, rel=2e-4)


def test_expected_regrets_are_the_golden_ones_in_their_order() -> None:
    scores, rate = (8, 6, 5, 1), 0.5

    def regret(law: list[float]) -> float:
        return math.fsum(p * (8 - score) for p, score in zip(law, scores, strict=True))

    assert regret(exponential_law(scores, rate)) == pytest.approx(0.997116, rel=1e-5)
    assert regret(continuous_laplace_law(scores, rate)) == pytest.approx(0.946066, rel=1e-5)
    assert regret(permute_and_flip_law(scores, rate)) == pytest.approx(0.714447, rel=1e-5)


def test_valuations_and_prices_have_the_golden_scores() -> None:
    made = card([{"name": "x", "type": "integer", "low": 0, "high": 10}], neighbours="replace_one")
    prices = choice_shape({"kind": "price", "column": "x", "candidates": [1, 2, 3, 5, 8]}, made)
    # Values 1, 1, 2, 3, 3, 5, 8, 8: two from 1, one from 2, two from 3, one from 5, two from 8.
    assert prices.scores(((2, 1, 2, 1, 2),), 0) == [8, 12, 15, 15, 16]
    assert prices.score_range == 8


@pytest.mark.parametrize(
    ("q", "golden"),
    [
        ("0.5", (0.0381466, 0.103693, 0.281867, 0.281867, 0.103693, 0.190733)),
        ("0.25", (0.156933, 0.305664, 0.219018, 0.112448, 0.0577325, 0.148204)),
    ],
)
def test_a_quantile_has_the_golden_law_of_intervals(q: str, golden: tuple[float, ...]) -> None:
    """For 1, 2, 3, 4, 5 in [0, 10], an interval is as likely as its candidates, one per unit of
    length."""
    made = card([{"name": "x", "type": "number", "low": 0, "high": 10}])
    candidates = [place + 0.5 for place in range(10)]
    query = {"kind": "quantile", "column": "x", "q": q, "candidates": candidates}
    plan = make_plan(question(query, mechanism={"kind": "exponential"}), made)
    exact = tallied(made, plan.release.tally, [{"x": float(x)} for x in range(1, 6)])
    scores = chosen(plan).shape.scores(exact, 0)
    law = exponential_law(scores, float(chosen(plan).rate))
    assert [*law[:5], math.fsum(law[5:])] == pytest.approx(golden, rel=1e-5)


def test_four_nationalities_have_the_golden_bound() -> None:
    """4.3863 / epsilon and 8.7726 / epsilon at exp(-3)."""
    for score_range, golden in ((1, 4.3863), (2, 8.7726)):
        assert tail_bound(score_range / 1.0, 4, math.exp(-3)) == pytest.approx(golden, abs=1e-4)
    nations = [{"name": "nation", "type": "category", "values": ["a", "b", "c", "d"]}]
    for neighbours, golden in (("add_remove", 4.3863), ("replace_one", 8.7726)):
        made = card(nations, neighbours=neighbours)
        one = question({"kind": "mode", "column": "nation"}, confidence=1 - math.exp(-3))
        width = promised_width(chosen(make_plan(one, made)), one.confidence)
        assert width == pytest.approx(golden, abs=1e-4)
