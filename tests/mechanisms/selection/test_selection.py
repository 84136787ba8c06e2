"""Prepared choices: golden laws, costs, error bounds, and the mechanisms that draw them."""

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
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
from app.mechanisms.selection.release import SelectionRelease, prepare_by, tail_bound
from app.planning.plan import Plan, make_plan
from app.planning.request import Question
from app.queries.shapes.selection import SelectionShape
from app.queries.tally import CountRows, Tally
from tests.mechanisms.noise.noise_law import FALSE_ALARM
from tests.mechanisms.selection.selection_law import (
    chi_square,
    continuous_laplace_law,
    discrete_laplace_law,
    exponential_law,
    first_two_law,
    permute_and_flip_law,
)
from tests.queries.cards import card, choice_shape, measured_shape, promised_width, question
from tests.queries.reference import tallied

CURRENCIES = ["pure", "approximate", "zcdp", "renyi", "gdp"]
CITY = {"kind": "mode", "column": "city"}
AGE = {"kind": "median", "column": "age"}


def shape(score_range: int, outcomes: int = 4, picks: int | None = None) -> SelectionShape:
    tally = Tally(None, (), (CountRows(),))
    return SelectionShape(tally, range(outcomes), lambda e, _: list(e[0]), score_range, picks=picks)


def choice_question(query: dict[str, Any], privacy: dict[str, Any], **more: Any) -> Question:
    body = {"dataset": "people", "query": query, "privacy": privacy, **more}
    return Question.model_validate(body)


def chosen(plan: Plan) -> SelectionRelease:
    assert isinstance(plan.release, SelectionRelease)
    return plan.release


def rate_of(law: Any, score_range: int, epsilon: str) -> float:
    release = prepare_by(law, shape(score_range), PrivacyTarget(epsilon=Decimal(epsilon)))
    return float(release.rate)


# Golden numbers of the mechanism sheet


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


# Costs


def test_the_exponential_mechanism_is_charged_the_curve_of_bounded_range() -> None:
    loss = bounded_range_loss(PICO)
    assert (loss.epsilon, loss.delta, loss.pure, loss.failure) == (PICO, 0, PICO, 0)
    tight = 1 / (math.e - 1) - 1 + math.log(math.e - 1)  # accounting.md 5, below epsilon^2 / 8
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


# Several choices


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["permute_and_flip", "exponential"])
def test_two_choices_are_made_one_after_the_other_at_half_the_rate(kind: str) -> None:
    query = {"kind": "top_k", "column": "city", "k": 2}
    plan = make_plan(question(query, epsilon="2", mechanism={"kind": kind}), card())
    release = chosen(plan)
    assert release.rate == 1
    assert plan.mechanism["choices"] == 2
    law_of = permute_and_flip_law if kind == "permute_and_flip" else exponential_law
    joint = first_two_law(law_of, [3, 2, 2], 1.0)
    names = ["Bern", "Chur", "Zürich"]
    drawn: Counter[tuple[int, int]] = Counter()
    for _ in range(6000):
        first, second = plan.answer(((3, 2, 2),), SystemRandom())["value"]
        drawn[names.index(first), names.index(second)] += 1
    counts = [drawn[pair] for pair in joint]
    assert chi_square(counts, list(joint.values())) > FALSE_ALARM


def test_all_categories_can_be_requested_and_none_comes_twice() -> None:
    query = {"kind": "top_k", "column": "city", "k": 3}
    plan = make_plan(question(query), card())
    for _ in range(20):
        value = plan.answer(((0, 0, 0),), SystemRandom())["value"]
        assert sorted(value) == ["Bern", "Chur", "Zürich"]
    one = make_plan(question({**query, "k": 1}, epsilon="900"), card())
    assert one.answer(((0, 9, 0),), SystemRandom())["value"] == ["Chur"]


# Mechanisms


def test_pure_accounts_use_permute_and_flip_and_those_with_curves_gumbel() -> None:
    for currencies, kind in [
        ({"pure"}, "permute_and_flip"),
        ({"approximate"}, "permute_and_flip"),
        ({"pure", "zcdp"}, "permute_and_flip"),
        ({"approximate", "renyi"}, "permute_and_flip"),
        ({"zcdp"}, "exponential"),
        ({"renyi"}, "exponential"),
        ({"zcdp", "renyi"}, "exponential"),
        ({"gdp"}, "permute_and_flip"),
    ]:
        for privacy in ({"epsilon": 1}, {"half_width": 5.0}):
            for query in (CITY, AGE):
                plan = make_plan(choice_question(query, privacy), card(), frozenset(currencies))
                assert plan.mechanism["kind"] == kind, (currencies, privacy)


def test_the_exponential_mechanism_spends_a_rho_best() -> None:
    for currencies in ({"zcdp"}, {"renyi"}, {"pure"}):
        plan = make_plan(choice_question(CITY, {"rho": "0.125"}), card(), frozenset(currencies))
        assert plan.mechanism["kind"] == "exponential"
        assert PICO - 1 <= plan.loss.epsilon <= 1.01 * PICO


def test_additive_mechanisms_refuse_choices_and_vice_versa() -> None:
    numbers, outcomes = measured_shape({"kind": "count"}, card()), choice_shape(CITY, card())
    one = PrivacyTarget(epsilon=Decimal(1), delta=Decimal("1e-6"), noise="laplace")
    for kind, prepare in MECHANISMS.items():
        wrong = outcomes if kind in ("laplace", "gaussian") else numbers
        with pytest.raises(CannotServe):
            prepare(wrong, one)
    for kind in ("laplace", "gaussian"):
        with pytest.raises(Invalid, match="/mechanism/kind"):
            make_plan(question(CITY, mechanism={"kind": kind}), card())
    with pytest.raises(Invalid, match="/mechanism/kind"):
        make_plan(question({"kind": "count"}, mechanism={"kind": "exponential"}), card())


@pytest.mark.parametrize("noise", ["exponential", "laplace", "gumbel"])
def test_a_noisy_max_is_drawn_if_its_noise_is_named(noise: str) -> None:
    mechanism = {"kind": "noisy_max", "noise": noise}
    plan = make_plan(question(CITY, epsilon="9", mechanism=mechanism), card())
    assert plan.mechanism["noise"] == plan.record["noise"] == noise
    assert plan.record["mechanism"] == plan.mechanism["kind"] == "noisy_max"
    # Another is chosen with probability below 1e-30.
    assert plan.answer(((1, 19, 1),), SystemRandom()) == {"value": "Chur", "interval": None}
    charged = bounded_range_loss if noise == "gumbel" else pure_loss
    assert plan.loss == charged(9 * PICO)


@pytest.mark.parametrize(
    "mechanism", [{"kind": "noisy_max"}, {"kind": "exponential", "noise": "gumbel"}]
)
def test_only_a_noisy_max_takes_a_noise(mechanism: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="noise"):
        question(CITY, mechanism=mechanism)


def test_a_record_holds_the_drawn_parameters() -> None:
    query = {"kind": "top_k", "column": "city", "k": 2}
    plan = make_plan(question(query), card(rows_max=3, neighbours="replace_one"))
    assert plan.record == {
        "query": "top_k",
        "mechanism": "exponential",
        "outcomes": 3,
        "score_range": "6",
        "choices": 2,
    }
    assert chosen(plan).rate == Fraction(1, 12)
