"""The Gaussian mechanism: calibration by its exact profile, intervals, draws, half-widths."""

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting import COMPOSITION_RULES
from app.accounting.precise import INFINITE
from app.accounting.units import ATTO, PICO
from app.errors import Invalid
from app.mechanisms.noise.gaussian import LAW, width
from app.mechanisms.noise.gaussian_calibration import SUMMED_MAX, least_scale
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from app.planning.request import Question
from tests.effort import thorough_after
from tests.mechanisms.noise.noise_law import DRAWS, EXPECTED_MIN, FALSE_ALARM, chi_square_tail
from tests.queries.cards import additive, card, question

FINE = 2**20


def true_delta(epsilon: str, scale: float, steps: int) -> mpmath.mpf:
    """sum over z of max(0, P(z) - e^epsilon P(z + D)), to 30 digits."""
    with mpmath.workdps(30):
        s, e = mpmath.mpf(scale), mpmath.mpf(epsilon)
        reach = int(14 * scale) + 2 * steps
        weights = {z: mpmath.exp(-(mpmath.mpf(z) ** 2) / (2 * s * s)) for z in range(-reach, reach)}
        total = mpmath.fsum(weights.values())
        nothing = mpmath.mpf(0)
        lost = (
            weight - mpmath.exp(e) * weights.get(z + steps, nothing)
            for z, weight in weights.items()
        )
        return mpmath.fsum(each for each in lost if each > 0) / total


# Calibration


@pytest.mark.parametrize(
    ("epsilon", "delta", "continuous"),
    [("0.5", "1e-5", 7.031827), ("1", "1e-6", 4.224679), ("2", "1e-6", 2.230476)],
)
def test_the_scale_is_the_analytic_one_and_slightly_more_for_integers(
    epsilon: str, delta: str, continuous: float
) -> None:
    """Continuous values: Balle and Wang (2018), Theorem 8. On a fine grid both agree."""
    coarse = least_scale(Decimal(epsilon), Decimal(delta), steps=1)
    fine = least_scale(Decimal(epsilon), Decimal(delta), steps=FINE) / FINE
    assert continuous * (1 - 1e-6) <= coarse <= continuous * 1.02
    assert continuous * (1 - 1e-6) <= fine <= continuous * 1.001


@pytest.mark.parametrize("steps", [1, 2, 7])
@pytest.mark.parametrize(
    ("epsilon", "delta"), [("0.1", "1e-3"), ("1", "1e-6"), ("4", "1e-5"), ("8", "1e-9")]
)
def test_the_exact_profile_is_within_the_promise_and_a_smaller_scale_breaks_it(
    epsilon: str, delta: str, steps: int
) -> None:
    scale = least_scale(Decimal(epsilon), Decimal(delta), steps=steps)
    for moved in range(1, steps + 1):  # a person may move the answer by less than the maximum
        assert true_delta(epsilon, scale, moved) <= mpmath.mpf(delta)
    if scale > 2 * steps:  # noise of a few integers is not monotone in its scale
        assert true_delta(epsilon, scale * 0.98, steps) > mpmath.mpf(delta)


def test_the_classic_rule_is_wasteful_below_one_and_wrong_above() -> None:
    def classic(epsilon: float, delta: float) -> float:
        return math.sqrt(2 * math.log(1.25 / delta)) / epsilon

    assert classic(0.5, 1e-5) == pytest.approx(9.689611, rel=1e-6)
    assert least_scale(Decimal("0.5"), Decimal("1e-5"), steps=1) < classic(0.5, 1e-5)
    assert least_scale(Decimal(10), Decimal("1e-5"), steps=FINE) / FINE > classic(10, 1e-5)


def test_integers_lose_more_than_the_continuous_formula_says() -> None:
    """0.00724878 where the analytic formula of Balle and Wang (2018) gives 0.00682960."""
    assert float(true_delta("1", 2.0, 1)) == pytest.approx(0.00724878, rel=1e-6)


# The release


def gaussian(query: dict[str, object], privacy: dict[str, object], **more: object) -> Question:
    return Question.model_validate(
        {
            "dataset": "people",
            "query": query,
            "privacy": privacy,
            "mechanism": {"kind": "gaussian"},
            **more,
        }
    )


def test_the_promise_is_for_basic_composition_and_the_curve_for_the_others() -> None:
    loss = make_plan(gaussian({"kind": "count"}, {"epsilon": 1, "delta": 1e-6}), card()).loss
    assert (loss.epsilon, loss.delta) == (PICO, ATTO // 10**6)
    assert (loss.pure, loss.failure, loss.mu_squared) == (INFINITE, 0, INFINITE)
    scale = Fraction(least_scale(Decimal(1), Decimal("1e-6"), steps=1))
    assert loss.rho == math.ceil(PICO / (2 * scale * scale))
    able = {name for name, rule in COMPOSITION_RULES.items() if rule.can_pay(rule.read(loss))}
    assert able == {"approximate", "zcdp", "renyi"}


def test_a_rho_is_charged_as_requested_and_has_a_promise_only_with_a_delta() -> None:
    plain = make_plan(gaussian({"kind": "count"}, {"rho": 0.02}), card()).loss
    assert plain.rho == PICO // 50
    assert plain.epsilon == INFINITE
    assert "epsilon" in plain.to_json()
    promised = make_plan(gaussian({"kind": "count"}, {"rho": 0.02, "delta": 1e-6}), card()).loss
    assert promised.epsilon == pytest.approx(0.8995 * PICO, rel=1e-2)
    assert promised.delta == ATTO // 10**6


def test_epsilon_without_a_delta_is_refused_by_its_field() -> None:
    with pytest.raises(Invalid, match="delta") as refused:
        make_plan(gaussian({"kind": "count"}, {"epsilon": 1}), card())
    assert refused.value.fields[0].pointer == "/privacy"


def test_laplace_at_a_rho_costs_no_more_than_the_rho() -> None:
    parsed = Question.model_validate(
        {
            "dataset": "people",
            "query": {"kind": "count"},
            "privacy": {"rho": 0.02},
            "mechanism": {"kind": "laplace"},
        }
    )
    loss = make_plan(parsed, card()).loss
    assert PICO // 50 - 1000 <= loss.rho <= PICO // 50


# Intervals and draws


def outside(scale: float, w: int) -> float:
    weights = [math.exp(-(z * z) / (2 * scale * scale)) for z in range(int(40 * scale) + 2)]
    total = 2 * sum(weights) - 1
    return 2 * sum(weights[w + 1 :]) / total


@given(st.floats(0.3, 200), st.sampled_from([0.5, 0.1, 0.05, 0.01, 1e-6]))
def test_an_interval_has_its_coverage_and_is_hardly_wider(scale: float, alpha: float) -> None:
    w = width(scale, alpha)
    assert outside(scale, w) <= alpha
    assert w == 0 or outside(scale, w - (1 if scale <= SUMMED_MAX else 2)) > alpha


def test_golden_widths() -> None:
    """The 95 % widths of integer noise."""
    assert (width(2.0, 0.05), width(10.0, 0.05)) == (4, 20)


def p_value(draws: list[int], scale: float) -> float:
    """P value of chi-square over bins symmetric around zero, so degrees of freedom are even."""
    weights = {
        z: math.exp(-(z * z) / (2 * scale * scale))
        for z in range(-int(12 * scale), int(12 * scale))
    }
    total = sum(weights.values())
    marks = [round(scale * q) for q in (0.0, 0.25, 0.5, 0.8, 1.1, 1.5, 2.0, 2.6)]
    starts = sorted({m for m in marks if m >= 1})

    def bin_of(z: int) -> int:
        reach = sum(abs(z) >= start for start in starts)
        return reach if z > 0 else -reach

    expected: dict[int, float] = {}
    for z, weight in weights.items():
        expected[bin_of(z)] = expected.get(bin_of(z), 0.0) + weight / total * len(draws)
    assert min(expected.values()) >= EXPECTED_MIN
    counts = dict.fromkeys(expected, 0)
    for draw in draws:
        counts[bin_of(draw)] += 1
    statistic = sum((counts[b] - want) ** 2 / want for b, want in expected.items())
    return chi_square_tail(statistic, len(expected) - 1)


@pytest.mark.statistical
@pytest.mark.parametrize("scale", thorough_after(1, [4.22, 30.0, 1e3]))
@pytest.mark.parametrize("at_once", [1, DRAWS])
def test_draws_fit_the_law_and_a_scale_off_by_a_tenth_is_rejected(
    scale: float, at_once: int
) -> None:
    """False alarm probability 1e-6."""
    noise = SystemRandom()
    draws = [z for _ in range(DRAWS // at_once) for z in noise.discrete_gaussian(scale, at_once)]
    assert p_value(draws, scale) > FALSE_ALARM
    assert p_value(draws, scale * 1.1) < FALSE_ALARM
    assert p_value(draws, scale * 0.9) < FALSE_ALARM


# Half-widths


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("half_width", [2, 5, 10, 40.5, 1000])
def test_a_half_width_is_charged_at_the_least_loss(kind: str, half_width: float) -> None:
    def planned(width_asked: float) -> tuple[float, int]:
        parsed = question({"kind": "count"}).model_copy(
            update={
                "privacy": question({"kind": "count"}).privacy.model_validate(
                    {"half_width": float(width_asked), "confidence": 0.95}
                ),
                "mechanism": question({"kind": "count"}, mechanism={"kind": kind}).mechanism,
            }
        )
        plan = make_plan(parsed, card())
        promised = additive(plan).half_width(0.95)
        assert promised is not None
        return promised, plan.loss.rho

    promised, rho = planned(half_width)
    assert promised <= half_width
    assert promised >= half_width - 1  # integers
    assert planned(half_width / 2)[1] > rho  # more accuracy never costs less


@pytest.mark.parametrize("half_width", [1, 2, 3, 5, 10, 60, 300])
def test_a_half_width_gets_the_largest_gaussian_noise_possible(half_width: int) -> None:
    parsed = Question.model_validate(
        {
            "dataset": "d",
            "query": {"kind": "count"},
            "privacy": {"half_width": half_width},
            "mechanism": {"kind": "gaussian"},
        }
    )
    scale = additive(make_plan(parsed, card(), frozenset({"zcdp"}))).parts[0].scale
    assert outside(scale, half_width) <= 0.05
    assert outside(scale * (1 + 1e-6), half_width) > 0.05 or scale > SUMMED_MAX
    assert outside(scale * 1.001, half_width) > 0.05


@pytest.mark.parametrize("scale", [0.4, 0.7, 1.0, 3.0, 40.0, 60.0])
def test_the_deviation_is_that_of_integer_noise(scale: float) -> None:
    weights = [math.exp(-(z * z) / (2 * scale * scale)) for z in range(int(40 * scale) + 2)]
    variance = 2 * sum(z * z * w for z, w in enumerate(weights)) / (2 * sum(weights) - 1)
    assert LAW.deviation(scale) == pytest.approx(math.sqrt(variance), rel=1e-9)


def test_golden_epsilons_of_half_widths() -> None:
    """Roots of 2 e^(-epsilon (w + 1)) / (1 + e^-epsilon) = 0.05: 0.538174 for a half width w of 5,
    0.2843485 for 10."""
    for half_width, epsilon in ((5, 0.538174), (10, 0.2843485)):
        asked = Question.model_validate(
            {"dataset": "d", "query": {"kind": "count"}, "privacy": {"half_width": half_width}}
        )
        plan = make_plan(asked, card(), frozenset({"pure"}))
        assert plan.release.describe()["kind"] == "laplace"
        assert plan.loss.epsilon / PICO == pytest.approx(epsilon, rel=1e-5)


@pytest.mark.statistical
@pytest.mark.parametrize("currencies", [frozenset({"pure"}), frozenset({"zcdp"})])
def test_the_promised_half_width_holds_in_simulation(currencies: frozenset[str]) -> None:
    """At least 95 % of 4,000 answers are inside.

    Fewer than 3,726 have a probability below 1e-6 (binomial, normal bound: 3,800 - 5.3 * 13.8).
    """
    asked = Question.model_validate(
        {"dataset": "d", "query": {"kind": "count"}, "privacy": {"half_width": 12}}
    )
    plan = make_plan(asked, card(), currencies)
    noise = SystemRandom()
    inside = sum(abs(plan.answer(((500,),), noise)["value"] - 500) <= 12 for _ in range(4000))
    assert inside >= 3726


def test_a_mean_cannot_be_priced_by_half_width() -> None:
    parsed = Question.model_validate(
        {
            "dataset": "d",
            "query": {"kind": "mean", "column": "age"},
            "privacy": {"half_width": 1},
        }
    )
    with pytest.raises(Invalid, match="/privacy/half_width: none: the width depends"):
        make_plan(parsed, card())


# The planner's choice


@pytest.mark.parametrize(
    ("currencies", "privacy", "kind"),
    [
        ({"pure"}, {"epsilon": 1, "delta": 1e-6}, "laplace"),
        ({"zcdp"}, {"rho": 0.01}, "gaussian"),
        ({"pure", "zcdp"}, {"rho": 0.01}, "laplace"),
        ({"approximate"}, {"epsilon": 1, "delta": 1e-6}, "laplace"),
        ({"gdp"}, {"rho": 0.01}, "laplace"),
        ({"zcdp"}, {"half_width": 20}, "gaussian"),
        ({"pure"}, {"half_width": 20}, "laplace"),
    ],
)
def test_the_planner_takes_the_least_error_the_accounts_can_pay(
    currencies: set[str], privacy: dict[str, object], kind: str
) -> None:
    asked = Question.model_validate(
        {"dataset": "d", "query": {"kind": "count"}, "privacy": privacy}
    )
    plan = make_plan(asked, card(), frozenset(currencies))
    assert plan.release.describe()["kind"] == kind
