"""The Laplace mechanism: scales from the charged integer, intervals from the law of the noise."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typing_extensions import override

from app.accounting.units import PICO, UNITS_MAX
from app.errors import Invalid
from app.mechanisms.noise.additive import AdditiveRelease
from app.mechanisms.noise.laplace import prepare, width
from app.mechanisms.privacy_target import PrivacyTarget
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from app.queries.shapes.measures import Measure
from app.queries.shapes.sums import SumShape
from app.queries.tally import ByValues, CountRows, Tally
from tests.mechanisms.noise.noise_law import inside_summed, tail_exact
from tests.queries.cards import additive, card, measured_shape, question

ONE = Tally(None, (), (CountRows(),))
sensitivities = st.integers(1, 2**72)
shares = st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(1, 3)])
epsilons = st.integers(1, UNITS_MAX)


def privacy_of(epsilon: int) -> PrivacyTarget:
    return PrivacyTarget(epsilon=Decimal(epsilon).scaleb(-12))


def release(sensitivity: int, epsilon: int, share: Fraction = Fraction(1)) -> AdditiveRelease:
    measure = Measure("count", ((1, 0),), sensitivity, share, 0)
    return prepare(SumShape(ONE, (measure,)), privacy_of(epsilon))


# Scales


def promised(release: AdditiveRelease) -> tuple[int, int, int, int]:
    loss = release.loss
    return loss.epsilon, loss.delta, loss.pure, loss.failure


@given(sensitivities, epsilons, shares)
def test_the_scale_is_the_least_float_sufficient_for_the_charged_integer(
    sensitivity: int, epsilon: int, share: Fraction
) -> None:
    exact = sensitivity * PICO / (Fraction(epsilon) * share)
    try:
        made = release(sensitivity, epsilon, share)
    except Invalid:
        assert exact < Fraction(1, 1000) or exact > 2**55 * (1 - Fraction(1, 2**52))
        return
    scale = made.parts[0].scale
    assert Fraction(scale) >= exact > Fraction(math.nextafter(scale, 0.0))
    assert promised(made) == (epsilon, 0, epsilon, 0)


def test_an_epsilon_between_two_units_is_charged_and_drawn_as_the_next_larger() -> None:
    made = additive(make_plan(question({"kind": "count"}, epsilon="0.0999999999991"), card()))
    assert promised(made) == (99_999_999_999 + 1, 0, 99_999_999_999 + 1, 0)
    assert made.parts[0].scale == 10.0
    unrounded = 1 / Fraction("0.0999999999991")
    assert Fraction(made.parts[0].scale) < unrounded  # no more noise than was paid for


@pytest.mark.parametrize("epsilon", ["1e-12", "0.000001", "0.1", "1", "37.5", "1000"])
def test_extreme_epsilons_of_a_count_are_answered(epsilon: str) -> None:
    plan = make_plan(question({"kind": "count"}, epsilon=epsilon), card())
    answer = plan.answer(((1000,),), SystemRandom())
    low, high = answer["interval"]["low"], answer["interval"]["high"]
    assert low <= answer["value"] <= high
    assert plan.loss.epsilon == Decimal(epsilon) * PICO


@pytest.mark.parametrize("epsilon", ["1001", "9223372"])
def test_an_epsilon_too_large_for_any_noise_is_refused(epsilon: str) -> None:
    with pytest.raises(Invalid, match="/privacy/epsilon"):
        make_plan(question({"kind": "count"}, epsilon=epsilon), card())


def test_an_epsilon_whose_noise_does_not_fit_64_bits_is_refused() -> None:
    with pytest.raises(Invalid, match="/privacy/epsilon"):
        make_plan(question({"kind": "sum", "column": "income"}, epsilon="1e-12"), card())


def test_a_column_narrower_than_its_grid_is_refused_rather_than_answered_without_noise() -> None:
    narrow = [{"name": "x", "type": "number", "low": 1.0, "high": 1.0 + 1e-14}]
    with pytest.raises(Invalid):
        make_plan(question({"kind": "mean", "column": "x"}), card(narrow))


def test_a_record_holds_exactly_the_drawn_parameters() -> None:
    shape = measured_shape({"kind": "mean", "column": "income"}, card())
    made = prepare(shape, privacy_of(PICO // 7))
    for said, part in zip(made.ledger_entry()["noise"], made.parts, strict=True):
        assert float.fromhex(said["scale"]) == part.scale
        spend = Fraction(made.loss.epsilon, PICO) * Fraction(said["share"])
        assert Fraction(part.scale) >= int(said["sensitivity"]) / spend


# Drawing


class PlannedNoise(SystemRandom):
    """A sampler that returns the planned draws."""

    def __init__(self, *draws: int) -> None:
        super().__init__()
        self.draws = list(draws)
        self.asked: list[tuple[float, int]] = []

    @override
    def discrete_laplace(self, scale: float, size: int) -> list[int]:
        self.asked.append((scale, size))
        taken, self.draws = self.draws[:size], self.draws[size:]
        return taken

    discrete_gaussian = discrete_laplace


def test_every_group_and_measure_gets_its_own_draw_with_its_own_scale() -> None:
    parsed = question({"kind": "mean", "column": "age", "group_by": ["city"]})
    made = additive(make_plan(parsed, card()))
    noise = PlannedNoise(1, 2, 3, 10, 20, 30)
    totals, counts = made.draw(((500, 600, 700), (10, 11, 12)), noise, confidence=0.9)
    assert [z.steps for z in totals] == [500 - 500 + 1, 600 - 550 + 2, 700 - 600 + 3]
    assert [z.steps for z in counts] == [20, 31, 42]
    assert noise.asked == [(part.scale, 3) for part in made.parts]


def test_noise_is_added_without_saturating() -> None:
    made = additive(make_plan(question({"kind": "count"}), card()))
    ((noisy,),) = made.draw(((2**200,),), PlannedNoise(2**63 - 1), confidence=0.5)
    assert noisy.steps == 2**200 + 2**63 - 1


def test_a_sampler_that_returns_too_few_draws_raises_an_error() -> None:
    groups = Tally(None, (ByValues("city", ("a", "b")),), (CountRows(),))
    measure = Measure("count", ((1, 0),), 1, Fraction(1), 0)
    made = prepare(SumShape(groups, (measure,)), privacy_of(PICO))
    with pytest.raises(ValueError, match="shorter"):
        made.draw(((1, 2),), PlannedNoise(5), confidence=0.95)


# Intervals


@given(st.floats(0.001, 30.0), st.floats(0.01, 1 - 1e-9))
@example(scale=1.0, confidence=0.95)
@example(scale=0.001, confidence=0.999)
def test_the_width_is_the_smallest_that_covers_by_exact_summation(
    scale: float, confidence: float
) -> None:
    alpha = 1.0 - confidence
    w = width(scale, alpha)
    inside = 1 - Decimal(alpha)
    slack = Decimal("1e-30")
    assert inside_summed(scale, w) >= inside - slack
    assert w == 0 or inside_summed(scale, w - 1) < inside + slack


@given(st.floats(1e-3, 2.0**55), st.floats(0.5, 1 - 1e-12))
def test_a_width_at_any_scale_covers_and_is_at_most_a_trillionth_too_wide(
    scale: float, confidence: float
) -> None:
    alpha = 1.0 - confidence
    w = width(scale, alpha)
    assert tail_exact(scale, w) <= Decimal(alpha)
    spare = 1 + math.ceil(w * 2e-12)
    assert w < spare or tail_exact(scale, w - spare) > Decimal(alpha)


@pytest.mark.parametrize(("scale", "w"), [(1.0, 3), (2.0, 6), (10.0, 30)])
def test_widths_at_95_percent_are_the_golden_ones(scale: float, w: int) -> None:
    assert width(scale, 0.05) == w


def test_the_tail_formula_agrees_with_the_sum() -> None:
    for scale in (0.1, 1.0, 7.3):
        for w in range(20):
            assert abs(inside_summed(scale, w) + tail_exact(scale, w) - 1) < Decimal("1e-25")


@given(st.floats(0.001, 1e6), st.floats(0.1, 0.98), st.floats(0.001, 0.019))
def test_more_confidence_or_more_noise_never_narrows_an_interval(
    scale: float, confidence: float, more: float
) -> None:
    w = width(scale, 1.0 - confidence)
    assert width(scale, 1.0 - confidence - more) >= w
    assert width(scale * (1 + more), 1.0 - confidence) >= w


def test_the_half_width_of_a_preview_is_that_of_the_draw() -> None:
    for query in ({"kind": "count"}, {"kind": "sum", "column": "income"}):
        plan = make_plan(question(query, confidence=0.8), card())
        answer = plan.answer(((0,),), PlannedNoise(0))
        assert additive(plan).half_width(0.8) == answer["interval"]["high"]
        assert answer["interval"]["low"] == -answer["interval"]["high"]
    mean = make_plan(question({"kind": "mean", "column": "age"}), card())
    assert additive(mean).half_width(0.8) is None
