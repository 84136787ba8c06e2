"""Every trade-off curve is valid, and the best bound of an account is shown."""

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.curves.orders import ORDERS
from app.accounting.tradeoff import exact
from app.accounting.tradeoff.curve import (
    ALPHAS,
    GUARD,
    GaussianTradeoff,
    LaplaceTradeoff,
    LeakyInputTradeoff,
    RandomizedResponseTradeoff,
    Single,
    Tradeoff,
    shown,
    tradeoff_of,
)
from tests.accounting.tradeoff.reference_curves import ROUNDING, F, deltas, epsilons
from tests.effort import examples

singles: st.SearchStrategy[Single] = st.one_of(
    st.builds(RandomizedResponseTradeoff, epsilons, categories=st.integers(2, 9), delta=deltas),
    st.builds(RandomizedResponseTradeoff, epsilons, repeats=st.integers(1, 50), delta=deltas),
    st.builds(LeakyInputTradeoff, deltas),
    st.builds(LaplaceTradeoff, epsilons, steps=st.none() | st.integers(1, 10**12)),
    st.builds(GaussianTradeoff, epsilons),
)
optional = st.none() | epsilons


@st.composite
def totals(draw: st.DrawFn) -> dict[str, Any]:
    per_order = draw(st.none() | epsilons)
    return {
        "pure": draw(optional),
        "failure": draw(deltas),
        "rho": draw(optional),
        "mu_squared": draw(optional),
        "renyi": None if per_order is None else [(a, per_order * a) for a in ORDERS],
    }


def must_be_a_tradeoff(curve: Tradeoff) -> None:
    points = list(zip(curve.alphas, curve.betas, strict=True))
    for alpha, beta in points:
        assert 0 <= beta <= 1 - alpha + 1e-15
    for (_, left), (_, right) in pairwise(points):
        assert right <= left
    for (a, left), (b, middle), (c, right) in zip(points, points[1:], points[2:], strict=False):
        assert middle <= left + (right - left) * (b - a) / (c - a) + ROUNDING


@examples(50)
@given(singles.map(lambda s: tradeoff_of(single=s)) | totals().map(lambda t: tradeoff_of(**t)))
def test_a_curve_falls_is_convex_and_never_better_than_guessing(curve: Tradeoff) -> None:
    must_be_a_tradeoff(curve)


@examples(50)
@given(singles)
def test_a_curve_of_a_release_is_its_own_inverse(release: Single) -> None:
    """The order of the two datasets is arbitrary."""
    grid = [i / 20 for i in range(21)]
    for alpha, beta in zip(grid, tradeoff_of(single=release, alphas=grid).betas, strict=True):
        if beta > 1e-6:  # a flat piece at zero cannot be inverted
            [back] = tradeoff_of(single=release, alphas=[beta]).betas
            # One guard moves alpha by the slope of the curve.
            [before] = tradeoff_of(single=release, alphas=[min(1.0, beta + 3 * GUARD)]).betas
            assert before - 3 * GUARD <= alpha <= back + 3 * GUARD + (back - before)


# The entry point


def test_the_best_of_the_totals_is_shown_and_named() -> None:
    parts: list[dict[str, Any]] = [{"pure": F(1)}, {"rho": F("0.1")}, {"mu_squared": F("0.3")}]
    separate = [tradeoff_of(**each, failure=F("1e-3")).betas for each in parts]
    together = tradeoff_of(pure=F(1), rho=F("0.1"), mu_squared=F("0.3"), failure=F("1e-3"))
    assert together.betas == [max(each) for each in zip(*separate, strict=True)]
    for word in ("Kairouz", "Dong", "zCDP"):
        assert word in together.theorem
    assert not together.exact


def test_a_total_without_a_bound_hides_nothing() -> None:
    for curve in (
        tradeoff_of(),
        tradeoff_of(failure=F(1), pure=F(1), rho=F(1), mu_squared=F(1)),
        tradeoff_of(renyi=[(F(2), math.inf)]),
        tradeoff_of(pure=F(10**6)),
    ):
        assert curve.betas[1:] == [0.0] * 100


def test_an_account_that_spent_nothing_hides_everything() -> None:
    curve = tradeoff_of(pure=F(0))
    assert curve.betas == pytest.approx([1 - alpha for alpha in ALPHAS], abs=2 * GUARD)
    assert (len(curve.alphas), curve.alphas[0], curve.alphas[-1]) == (101, 0.0, 1.0)


def test_an_invalid_value_is_shown_as_zero() -> None:
    curve = shown(lambda alpha: math.nan, [0.0, 0.5], exact=False, theorem="")
    assert curve.betas == [0.0, 0.0]


def test_invalid_numbers_are_refused() -> None:
    wrong: list[dict[str, Any]] = [
        {"pure": F(-1)},
        {"failure": F(2)},
        {"failure": F(-1)},
        {"rho": F(-1)},
        {"mu_squared": F(-1)},
        {"renyi": [(F(1), F(1))]},
        {"renyi": [(F(2), F(-1))]},
        {"renyi": [(F(2), math.nan)]},
        {"alphas": [0.0, 1.5]},
        {"alphas": [0.5, 0.5]},
        {"alphas": [math.nan]},
        {"single": RandomizedResponseTradeoff(F(-1))},
        {"single": RandomizedResponseTradeoff(F(1), categories=1)},
        {"single": RandomizedResponseTradeoff(F(1), categories=3, repeats=2)},
        {"single": RandomizedResponseTradeoff(F(1), repeats=0)},
        {"single": RandomizedResponseTradeoff(F(1), repeats=exact.REPEATS_MAX + 1)},
        {"single": RandomizedResponseTradeoff(F(1), delta=F(2))},
        {"single": LeakyInputTradeoff(F(2))},
        {"single": LaplaceTradeoff(F(1), steps=0)},
        {"single": GaussianTradeoff(F(-1))},
    ]
    for each in wrong:
        with pytest.raises(ValueError, match=r"."):
            tradeoff_of(**each)
