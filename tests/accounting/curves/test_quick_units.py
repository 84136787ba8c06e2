"""Units computed by floats equal those computed by decimals, on all tested points.

If floats cannot decide, the code falls back to decimals.
"""

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.accounting.curves import conversion, curve_units, quick_units, renyi_curves
from app.accounting.curves.gaussian import normal_cdf, pure_mu
from app.accounting.curves.orders import ORDERS
from app.accounting.precise import CONTEXT, decimal, units_up
from app.accounting.rules.gdp import pure_mu_squared
from app.accounting.units import PICO
from tests.effort import examples

# From one unit to the largest loss that fits, with as many small as large ones.
epsilons = st.one_of(
    st.integers(1, 10**4),
    st.floats(0.0, 18.9).map(lambda digits: int(10.0**digits)),
    st.floats(9.0, 13.5).map(lambda digits: int(10.0**digits)),
    st.integers(1, 40).map(lambda whole: whole * PICO),
)
rounds = st.sampled_from([1, 2, 3, 5, 10, 100, 7919])
steps = st.one_of(
    st.integers(2, 10**6).map(Fraction),
    st.builds(Fraction, st.integers(2**40, 2**70), st.integers(1, 1000)),
).filter(lambda found: found > 1)


def by_decimals(formula: renyi_curves.Formula, times: int = 1) -> renyi_curves.RenyiCurve:
    with localcontext(CONTEXT):
        return renyi_curves.on_grid(lambda order: times * formula(order))


@examples(150)
@given(epsilons, rounds, steps, st.sampled_from([2, 3, 10, 100_000]))
@example(1, 1, Fraction(2), 2)
@example(10**6, 1, Fraction(2**70), 2)  # at the end of the closed form
@example(10**6 + 1, 1, Fraction(3, 2), 2)
@example(1000 * PICO, 1, Fraction(2), 2)
@example(1000 * PICO - 1, 1, Fraction(2), 2)
@example(2**63 - 1, 7919, Fraction(2), 100_000)
def test_units_by_floats_equal_those_by_decimals(
    epsilon: int, times: int, wide: Fraction, categories: int
) -> None:
    e, single = decimal(Fraction(epsilon, PICO)), decimal(Fraction(epsilon, PICO * times))
    assert curve_units.pure_curve(epsilon) == renyi_curves.pure_on_grid(e)
    assert curve_units.pure_curve(epsilon, times) == by_decimals(
        partial(renyi_curves.pure, single), times
    )
    assert curve_units.bounded_range_curve(epsilon, times) == by_decimals(
        partial(renyi_curves.bounded_range, single), times
    )
    assert curve_units.discrete_laplace_curve(
        epsilon, wide
    ) == renyi_curves.discrete_laplace_on_grid(e, decimal(wide))
    assert curve_units.laplace_curve(epsilon) == by_decimals(lambda a: renyi_curves.laplace(e, a))
    assert curve_units.randomized_response_curve(epsilon, categories) == by_decimals(
        lambda a: renyi_curves.randomized_response(e, categories, a)
    )
    with localcontext(CONTEXT):
        assert curve_units.pure_rho(epsilon, times) == units_up(
            times * renyi_curves.pure_rho(single)
        )
        assert curve_units.laplace_rho(epsilon) == units_up(renyi_curves.laplace_rho(e))
        ranged = units_up(times * renyi_curves.bounded_range_rho(single))
    assert curve_units.bounded_range_rho(epsilon, times) == ranged
    place = epsilon % len(ORDERS)
    assert curve_units.pure_at(epsilon, place) == renyi_curves.pure_on_grid(e)[place]


@examples(400)
@given(epsilons)
def test_the_square_of_mu_equals_that_of_the_decimals(epsilon: int) -> None:
    e = Decimal(epsilon) / PICO
    mu = pure_mu(e)
    with localcontext(CONTEXT):
        assert pure_mu_squared(e) == units_up(mu * mu)


def spread(count: int, low: float, high: float) -> list[float]:
    """Numbers spread evenly over the powers of ten, without round ones."""
    return [10.0 ** (low + (high - low) * (k * 0.6180339887 % 1.0)) for k in range(1, count + 1)]


FORMULAS: dict[
    str, Callable[[float], tuple[Callable[[float], quick_units.Near], renyi_curves.Formula]]
] = {
    "pure": lambda e: (quick_units.pure(e), lambda a: renyi_curves.pure(Decimal(e), a)),
    "laplace": lambda e: (quick_units.laplace(e), lambda a: renyi_curves.laplace(Decimal(e), a)),
    "discrete_laplace": lambda e: (
        quick_units.discrete_laplace(e, e / 64),
        lambda a: renyi_curves.discrete_laplace(Decimal(e), Decimal(64), a),
    ),
    "randomized_response": lambda e: (
        quick_units.randomized_response(e, 50),
        lambda a: renyi_curves.randomized_response(Decimal(e), 50, a),
    ),
    "bounded_range": lambda e: (
        quick_units.bounded_range(e),
        lambda a: renyi_curves.bounded_range(Decimal(e), a),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_no_float_error_exceeds_its_stated_bound(name: str) -> None:
    """The bounds leave room for libraries that round worse than this one."""
    worst = 0.0
    for e in spread(150, -5.5, 2.5):
        near, formula = FORMULAS[name](e)
        for order in ORDERS:
            value, off = near(float(order))
            with localcontext(CONTEXT):
                true = formula(decimal(order)) - Decimal(e)
            worst = max(worst, abs(float(Decimal(value) - true)) / off)
    assert worst < 0.75


def test_the_math_library_is_as_exact_as_assumed() -> None:
    """The errors of exp, expm1, log, log1p, erf and erfc are at most half of the assumed ones.

    The test uses as many points as take a second.
    """
    context = Context(prec=50)

    def off(value: float, true: Decimal) -> float:
        return abs(float(context.divide(context.subtract(Decimal(value), true), true)))

    with localcontext(context):
        root = Decimal(2).sqrt()
        for x in spread(3000, -12, 2.5):
            d = Decimal(x)
            assert off(math.exp(-x), (-d).exp()) < quick_units.U / 2
            if x > 1e-9:  # the decimals cancel too
                assert off(math.expm1(-x), (-d).exp() - 1) < quick_units.U / 2
                assert off(math.log1p(x), (1 + d).ln()) < quick_units.U / 2
            assert off(math.log(x), d.ln()) < quick_units.U / 2
        for y in spread(200, -3, 0.7):
            tail = normal_cdf(-Decimal(y) * root)
            assert off(math.erf(y), 1 - 2 * tail) < quick_units.U / 2
            assert off(math.erfc(y), 2 * tail) < quick_units.U


def test_decimals_decide_where_floats_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    decided_by_decimals: list[int] = []
    slowly = renyi_curves.pure_on_grid

    def heard(e: Decimal, places: Sequence[int]) -> renyi_curves.RenyiCurve:
        decided_by_decimals.extend(places)
        return slowly(e, places)

    monkeypatch.setattr(renyi_curves, "pure_on_grid", heard)
    for epsilon in range(PICO // 10, PICO // 10 + 300):
        curve_units.pure_curve(epsilon)
    assert 0 < len(decided_by_decimals) < 300 * len(ORDERS) / 20  # some, and few


@pytest.mark.parametrize("value", [0.25, 1 - 1e-13, 1 + 1e-13, 1e-9, 123456789.5])
def test_floats_decide_a_unit_only_if_the_whole_error_interval_has_it(value: float) -> None:
    def decided(off: float) -> int | None:
        return quick_units.units_above(0, (value / PICO, off / PICO))

    assert decided(0.0) in (None, max(1, math.ceil(value)))
    assert decided(0.6) is None
    assert quick_units.units_above(0, (math.nan, 0.0)) is None
    assert quick_units.units_above(0, (math.inf, 0.0)) is None


def test_a_saboteur_without_margins_is_caught() -> None:
    """Without its margin a float gets some units wrong, and the comparison above would notice."""
    wrong, times = 0, 7919
    for epsilon in range(PICO // 3, PICO // 3 + 5):
        each = decimal(Fraction(epsilon, PICO * times))
        near = quick_units.pure(float(each))
        bold = [epsilon + math.ceil(near(a)[0] * times * PICO) for a in quick_units.ORDERS_NEAR]
        slowly = by_decimals(partial(renyi_curves.pure, each), times)
        wrong += sum(map(int.__ne__, bold, slowly))
    assert wrong > 0


@examples(100)
@given(epsilons, st.floats(0.0, 17.9).map(lambda digits: int(10.0**digits)))
def test_the_best_order_equals_that_of_the_decimals(epsilon: int, delta: int) -> None:
    e, d = Decimal(epsilon) / PICO, Decimal(delta) / 10**18
    found = conversion.rho_limit(e, d), conversion.epsilon_of_rho(e, d)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conversion, "_OFF", math.inf)  # floats decide nothing
        assert found == (conversion.rho_limit(e, d), conversion.epsilon_of_rho(e, d))
