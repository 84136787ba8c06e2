"""Costs and error bounds of choices."""

import math
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.curves.orders import ORDERS
from app.accounting.losses import bounded_range_loss, pure_loss, repeated_loss
from app.accounting.units import ATTO, PICO
from app.errors import Invalid
from app.mechanisms import MECHANISMS
from app.mechanisms.privacy_target import CannotServe, PrivacyTarget
from app.mechanisms.sampling.system import SystemRandom
from app.mechanisms.selection.exponential import LAW as EXPONENTIAL
from app.mechanisms.selection.noisy_max import LAWS as NOISY
from app.mechanisms.selection.noisy_max import laplace_bound
from app.mechanisms.selection.permute_and_flip import LAW as FLIP
from app.mechanisms.selection.selection_release import SelectionRelease, prepare_by
from app.planning.plan import make_plan
from tests.mechanisms.selection.selection_law import (
    discrete_laplace_law,
    exponential_law,
    permute_and_flip_law,
)
from tests.mechanisms.selection.selection_questions import AGE, CITY, choice_question, chosen, shape
from tests.queries.cards import (
    card,
    choice_shape,
    promised_width,
    question,
)


def test_the_exponential_mechanism_is_charged_the_curve_of_bounded_range() -> None:
    loss = bounded_range_loss(PICO)
    assert (loss.epsilon, loss.delta, loss.pure, loss.failure) == (PICO, 0, PICO, 0)
    tight = 1 / (math.e - 1) - 1 + math.log(math.e - 1)  # for bounded range; below epsilon^2 / 8
    assert loss.rho / PICO == pytest.approx(tight, rel=1e-9)
    assert loss.rho < PICO // 8
    curve = dict(zip(map(float, ORDERS), loss.curve, strict=True))
    assert curve[2] / PICO == pytest.approx(0.2402290, rel=1e-6)
    assert curve[8] / PICO == pytest.approx(0.6354594, rel=1e-6)
    assert all(units <= order * PICO / 8 + 1 for order, units in curve.items())
    assert repeated_loss(PICO, 1) == pure_loss(PICO)


@given(st.integers(1, 50 * PICO), st.integers(1, 50))
def test_rounds_never_cost_more_than_one_and_their_rho_falls(epsilon: int, rounds: int) -> None:
    for loss_of in (bounded_range_loss, repeated_loss):
        one, many = loss_of(epsilon, 1), loss_of(epsilon, rounds)
        assert (many.epsilon, many.pure, many.delta) == (epsilon, epsilon, 0)
        assert many.rho <= one.rho + rounds
        assert many.mu_squared <= one.mu_squared
        assert all(a <= b + rounds for a, b in zip(many.curve, one.curve, strict=True))
    assert bounded_range_loss(epsilon, rounds).rho <= repeated_loss(epsilon, rounds).rho


def test_rounds_add_up() -> None:
    fourth = bounded_range_loss(PICO // 4)
    assert 4 * fourth.rho - 4 <= bounded_range_loss(PICO, 4).rho <= 4 * fourth.rho < PICO // 32
    for one, four in zip(fourth.curve, bounded_range_loss(PICO, 4).curve, strict=True):
        assert 4 * one - 4 <= four <= 4 * one


@pytest.mark.parametrize("kind", ["permute_and_flip", "exponential", "noisy_max"])
@pytest.mark.parametrize("rho", ["0.125", "1e-6", "0.5", "30"])
def test_a_rho_is_never_exceeded_and_nearly_used_up(kind: str, rho: str) -> None:
    made = choice_shape(CITY, card())
    release = MECHANISMS[kind](made, PrivacyTarget(rho=Decimal(rho), noise="gumbel"))
    assert isinstance(release, SelectionRelease)
    units = Decimal(rho) * PICO
    assert release.loss.rho <= units
    more = release.law.loss(release.loss.epsilon + 1 + release.loss.epsilon // 10**6, 1)
    assert more.rho > units or more.rho == release.loss.rho == units
    if kind != "permute_and_flip" and float(rho) < 1:
        classical = math.sqrt(
            8 * float(rho)
        )  # of epsilon^2 / 8; the tight rho leaves slightly more
        assert classical * (1 - 1e-5) <= release.loss.epsilon / PICO <= classical * 1.05


def test_a_rho_below_the_cost_of_any_choice_is_refused() -> None:
    tiny = prepare_by(EXPONENTIAL, shape(1), PrivacyTarget(rho=Decimal("1e-12")))
    assert tiny.loss.rho <= 1
    with pytest.raises(CannotServe):
        prepare_by(EXPONENTIAL, shape(1), PrivacyTarget(rho=Decimal("1e-13")))


@pytest.mark.parametrize("epsilon", ["1e-12", "0.001", "1", "50", "1000"])
def test_extreme_epsilons_are_answered(epsilon: str) -> None:
    for mechanism in ("permute_and_flip", "exponential"):
        plan = make_plan(question(CITY, epsilon=epsilon, mechanism={"kind": mechanism}), card())
        assert plan.answer(((5, 0, 3),), SystemRandom())["value"] in ("Bern", "Chur", "Zürich")
        assert plan.loss.epsilon == Decimal(epsilon) * PICO
        assert plan.loss.delta == 0


def test_an_epsilon_too_large_for_any_noise_is_refused() -> None:
    with pytest.raises(Invalid, match="/privacy/epsilon"):
        make_plan(question(CITY, epsilon="1001"), card())


def test_a_delta_beside_epsilon_is_not_spent() -> None:
    plan = make_plan(choice_question(CITY, {"epsilon": 1, "delta": 1e-6}), card())
    assert (plan.loss.epsilon, plan.loss.delta) == (PICO, 0)
    assert ATTO > plan.loss.failure == 0


# Error bounds

SCORES = [[9, 9, 0, 0], [9, 8, 7, 0], [9, 5, 5, 5], [9, 0, 0, 0], [40, 39, 10, 20]]


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99])
def test_the_bound_holds_by_the_exact_laws(epsilon: str, confidence: float) -> None:
    laws = {
        FLIP: permute_and_flip_law,
        EXPONENTIAL: exponential_law,
        NOISY["laplace"]: discrete_laplace_law,
    }
    for law, law_of in laws.items():
        release = prepare_by(law, shape(1), PrivacyTarget(epsilon=Decimal(epsilon)))
        bound = promised_width(release, confidence)
        for scores in SCORES:
            spread = [20 * score for score in scores] if epsilon == "0.1" else scores
            if law.noise == "laplace" and epsilon == "0.1":
                continue  # the same law on fewer steps is checked at 1
            chances = law_of(spread, float(release.rate))
            off = [p for p, s in zip(chances, spread, strict=True) if max(spread) - s > bound]
            assert math.fsum(off) <= 1 - confidence


def test_the_bound_of_laplace_noise_uses_both_tails() -> None:
    p = math.exp(-0.5)
    for outcomes in (2, 100):
        for alpha in (0.05, 1e-6):
            w = laplace_bound(2.0, outcomes, alpha) / 2
            assert outcomes * p ** (w + 1) / (1 + p) <= alpha < outcomes * p**w / (1 + p)


@pytest.mark.parametrize("query", [CITY, AGE, {"kind": "top_k", "column": "city", "k": 2}])
@pytest.mark.parametrize("kind", ["permute_and_flip", "exponential", "noisy_max"])
def test_a_half_width_gets_the_least_epsilon(query: dict[str, Any], kind: str) -> None:
    made = choice_shape(query, card())
    earlier = math.inf
    for distance in (1.5, 7.0, 40.0, 1e4):
        wish = PrivacyTarget(half_width=distance, confidence=0.9, noise="laplace")
        release = MECHANISMS[kind](made, wish)
        assert isinstance(release, SelectionRelease)
        error = promised_width(release, 0.9)
        assert error <= distance
        less = Decimal(release.loss.epsilon - 1 - release.loss.epsilon // 10**9) / PICO
        worse = MECHANISMS[kind](made, PrivacyTarget(epsilon=less, noise="laplace"))
        then = promised_width(worse, 0.9)
        assert then > distance or release.loss.epsilon == 1
        assert release.loss.epsilon < earlier
        earlier = release.loss.epsilon


def test_an_impossible_distance_is_refused() -> None:
    for distance in (1e-3, 1e-9):
        with pytest.raises(CannotServe):
            prepare_by(FLIP, shape(1), PrivacyTarget(half_width=distance, confidence=0.9))


def test_the_preview_of_a_quantile_is_a_rank_error_in_rows() -> None:
    plan = make_plan(question(AGE, epsilon="0.5"), card())
    assert chosen(plan).expected_error(0.95).measured == "ranks"
    assert promised_width(chosen(plan), 0.95) == pytest.approx(1 / 0.5 * math.log(101 / 0.05))
    assert plan.mechanism["score_range"] == 1.0
    assert plan.mechanism["scale"] == 2.0
    assert plan.mechanism["outcomes"] == 101


def test_extremes_target_a_rank_just_above_their_error() -> None:
    for kind in ("min", "max"):
        plan = make_plan(question({"kind": kind, "column": "age"}), card())
        error = promised_width(chosen(plan), 0.95)
        assert plan.mechanism["rank"] == math.floor(error) + 1
        named = make_plan(question({"kind": kind, "column": "age", "rank": 7}), card())
        assert named.mechanism["rank"] == 7
        assert named.digest != plan.digest
        first = make_plan(
            choice_question({"kind": kind, "column": "age"}, {"half_width": 12.5}), card()
        )
        assert first.mechanism["rank"] == 13


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "low", "high"), [("min", 30, 50), ("max", 50, 70)])
def test_an_extreme_is_not_beyond_the_last_row(kind: str, low: int, high: int) -> None:
    """1,000 rows: ten of each age from 30 to 70 and the rest at 50. At 0.95 no more than 5 % of the
    answers are beyond; more than 45 of 300 are with probability below 1e-9."""
    plan = make_plan(question({"kind": kind, "column": "age"}, epsilon="1"), card())
    tally = chosen(plan).tally
    assert tally.group_count() == 101  # every age from 0 to 100
    rows = Counter(dict.fromkeys(range(30, 71), 10)) + Counter({50: 590})
    exact = (tuple(rows[age] for age in range(101)),)
    values = [plan.answer(exact, SystemRandom())["value"] for _ in range(300)]
    assert sum(not 30 <= value <= 70 for value in values) <= 45
    assert sum(low <= value <= high for value in values) >= 250
