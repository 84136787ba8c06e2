"""The curve of discrete Gaussian noise on Poisson samples, compared with the law point by point.

The tests cover one and two dimensions, both directions and both relations, golden numbers and
dp-accounting.
"""

import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import dp_accounting
import pytest
from dp_accounting.rdp.rdp_privacy_accountant import RdpAccountant
from mpmath import mp, mpf

from app.accounting.curves.conversion import epsilon_at
from app.accounting.curves.orders import ORDERS
from app.accounting.curves.sampled import replaced_discrete_gaussian, sampled_discrete_gaussian
from app.accounting.precise import INFINITE, decimal
from app.accounting.sampled_steps import SampledSteps
from app.accounting.units import PICO

Point = tuple[int, ...]
Law = dict[Point, Any]
LOW_ORDERS = [order for order in ORDERS if order <= 16]


@pytest.fixture(autouse=True)
def digits() -> Iterable[None]:
    with mp.workdps(30):
        yield


def noise(scale: float, dimensions: int, reach: int) -> Law:
    """Discrete Gaussian noise, truncated where it is negligible; `reach` bounds the shifts."""
    far = math.ceil(9 * scale) + 16 * reach
    line = {z: mp.exp(-(mpf(z) ** 2) / (2 * mpf(scale) ** 2)) for z in range(-far, far + 1)}
    total = sum(line.values())
    points = product(line, repeat=dimensions)
    return {p: mp.fprod(line[z] / total for z in p) for p in points}


def released(law: Law, rows: list[Point], rate: str) -> Law:
    """The law of the noisy sum of a sample of the rows."""
    q = mpf(rate)
    dimensions = len(next(iter(law)))
    sums: dict[Point, Any] = {(0,) * dimensions: mpf(1)}
    for row in rows:
        following: dict[Point, Any] = {}
        for point, chance in sums.items():
            moved = tuple(a + b for a, b in zip(point, row, strict=True))
            following[point] = following.get(point, mpf(0)) + (1 - q) * chance
            following[moved] = following.get(moved, mpf(0)) + q * chance
        sums = following
    return {
        p: sum(
            chance * law[tuple(a - b for a, b in zip(p, shift, strict=True))]
            for shift, chance in sums.items()
            if tuple(a - b for a, b in zip(p, shift, strict=True)) in law
        )
        for p in law
    }


def divergence(p: Law, q: Law, order: Fraction) -> Any:
    """Rényi divergence on the points of both laws; the truncated part is below the tolerance."""
    a = mpf(order.numerator) / order.denominator
    moment = sum(p[z] ** a * q[z] ** (1 - a) for z in p if p[z] > 0 and q[z] > 0)
    return mp.log(moment) / (a - 1)


def norm(vector: Point) -> float:
    return math.sqrt(sum(number**2 for number in vector))


CASES = [
    # scale of the noise, rows of others, the row that is added or removed, rate
    pytest.param(1.3, [(1,)], (2,), "0.1", id="little noise"),
    pytest.param(0.6, [], (1,), "0.3", id="far less than a step"),
    pytest.param(4.0, [(3,), (-2,), (1,)], (3,), "0.05", id="three others"),
    pytest.param(2.0, [(2,)], (-2,), "0.9", id="nearly all"),
    pytest.param(1.2, [(1, -1)], (1, 1), "0.2", id="two dimensions", marks=pytest.mark.thorough),
]


@pytest.mark.parametrize(("scale", "others", "row", "rate"), CASES)
def test_no_direction_exceeds_the_curve_and_integer_orders_attain_it(
    scale: float, others: list[Point], row: Point, rate: str
) -> None:
    law = noise(scale, len(row), 1 + int(norm(row)))
    without, with_it = released(law, others, rate), released(law, [*others, row], rate)
    alone = released(law, [row], rate)
    multiplier = Decimal(scale) / Decimal(norm(row))
    for order in LOW_ORDERS:
        bound = sampled_discrete_gaussian(Decimal(rate), multiplier, decimal(order))
        added = divergence(with_it, without, order)
        removed = divergence(without, with_it, order)
        near = mpf("1e-12")
        assert added <= mpf(str(bound)) + near, order
        assert removed <= mpf(str(bound)) + near, order
        assert removed <= divergence(alone, law, order) + near, order
        if order.denominator == 1:  # exactly the curve of continuous noise
            assert abs(divergence(alone, law, order) - mpf(str(bound))) < near, order


@pytest.mark.parametrize(("scale", "others", "row", "rate"), CASES)
def test_saboteur_a_curve_for_a_tenth_more_noise_is_exceeded(
    scale: float, others: list[Point], row: Point, rate: str
) -> None:
    law = noise(scale, len(row), 1 + int(norm(row)))
    multiplier = Decimal("1.1") * Decimal(scale) / Decimal(norm(row))
    alone = released(law, [row], rate)
    for order in (Fraction(2), Fraction(8)):
        bound = sampled_discrete_gaussian(Decimal(rate), multiplier, decimal(order))
        assert divergence(alone, law, order) > mpf(str(bound))


@pytest.mark.parametrize(("scale", "others", "row", "rate"), CASES)
def test_replacing_a_row_never_exceeds_its_curve(
    scale: float, others: list[Point], row: Point, rate: str
) -> None:
    law = noise(scale, len(row), 1 + int(norm(row)))
    opposite = tuple(-number for number in row)
    first, second = (released(law, [*others, each], rate) for each in (row, opposite))
    multiplier = Decimal(scale) / Decimal(norm(row))
    worst = Decimal(0)
    for order in LOW_ORDERS:
        bound = replaced_discrete_gaussian(Decimal(rate), multiplier, decimal(order))
        for one, other in ((first, second), (second, first)):
            assert divergence(one, other, order) <= mpf(str(bound)) + mpf("1e-12"), order
        single = sampled_discrete_gaussian(Decimal(rate), multiplier, decimal(order))
        assert bound >= single
        worst = max(worst, single)
    assert worst > 0


# Golden numbers (Mironov, Talwar and Zhang 2019; checked with dp-accounting)


@pytest.mark.parametrize(
    ("rate", "multiplier", "curve"),
    [
        ("0.01", "1.1", {2: 1.2851008e-4, 8: 5.8407034e-4, 32: 8.4694164}),
        ("0.1", "4", {2: 6.447367e-4, 8: 2.6744986e-3, 32: 0.012720223}),
    ],
)
def test_golden_curves_are_reproduced(rate: str, multiplier: str, curve: dict[int, float]) -> None:
    for order, expected in curve.items():
        found = sampled_discrete_gaussian(Decimal(rate), Decimal(multiplier), Decimal(order))
        assert float(found) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("steps", "rate", "multiplier", "expected"),
    [(1000, "0.01", "1.1", 1.981436), (200, "0.1", "4", 1.755048)],
)
def test_golden_epsilons_are_reproduced(
    steps: int, rate: str, multiplier: str, expected: float
) -> None:
    found = SampledSteps(steps, Decimal(rate), Decimal(multiplier), replaced=False)
    assert float(found.epsilon(Decimal("1e-6"))) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("rate", ["0.001", "0.01", "0.2", "0.7"])
@pytest.mark.parametrize("multiplier", ["0.5", "1.1", "20"])
def test_integer_orders_agree_with_dp_accounting(rate: str, multiplier: str) -> None:
    orders = [2, 3, 5, 8, 16, 64, 256]
    accountant = RdpAccountant(orders)
    each = dp_accounting.GaussianDpEvent(float(multiplier))
    accountant.compose(dp_accounting.PoissonSampledDpEvent(float(rate), each), 100)
    for order, theirs in zip(orders, accountant._rdp, strict=True):
        steps = SampledSteps(100, Decimal(rate), Decimal(multiplier), replaced=False)
        assert float(steps.divergence(Decimal(order))) == pytest.approx(float(theirs), rel=1e-8)


# Many steps together


def steps(**changes: Any) -> SampledSteps:
    arguments: dict[str, Any] = {
        "steps": 500,
        "rate": Decimal("0.02"),
        "multiplier": Decimal("1.3"),
        "replaced": False,
        "rho": Decimal("0.001"),
    }
    return SampledSteps(**(arguments | changes))


@pytest.mark.parametrize("replaced", [False, True])
def test_the_loss_is_the_curve_with_the_requested_promise(replaced: bool) -> None:
    composed = steps(replaced=replaced)
    loss = composed.loss((3 * PICO, 1000))
    assert (loss.epsilon, loss.delta) == (3 * PICO, 1000)
    assert loss.rho == loss.pure == loss.mu_squared == INFINITE
    for order, units in zip(ORDERS, loss.curve, strict=True):
        exact = composed.divergence(decimal(order))
        assert 0 <= units - exact * PICO <= Decimal("1.1") or units == INFINITE


@pytest.mark.parametrize("replaced", [False, True])
def test_every_epsilon_holds_and_a_search_finds_nearly_the_least(replaced: bool) -> None:
    composed = steps(replaced=replaced)
    delta = Decimal("1e-7")
    least = composed.epsilon(delta)
    by_order = [epsilon_at(composed.divergence(decimal(a)), decimal(a), delta) for a in ORDERS]
    assert least <= min(by_order)
    for place in (0, 12, 40):
        searched, _ = composed.epsilon_from(delta, place)
        assert least <= searched <= least * Decimal("1.01")


CHANGES: dict[str, Callable[[SampledSteps], SampledSteps]] = {
    "more steps": lambda s: steps(steps=501),
    "a larger sample": lambda s: steps(rate=Decimal("0.021")),
    "less noise": lambda s: steps(multiplier=Decimal("1.29")),
    "a dearer release beside": lambda s: steps(rho=Decimal("0.0011")),
    "a row replaced": lambda s: steps(replaced=True),
}


@pytest.mark.parametrize("change", CHANGES)
def test_more_of_any_parameter_costs_more_at_every_order(change: str) -> None:
    before, after = steps(), CHANGES[change](steps())
    for order in ORDERS:
        assert after.divergence(decimal(order)) > before.divergence(decimal(order))


def test_a_sample_never_costs_more_than_all_rows() -> None:
    for rate, order in product(("0.001", "0.5", "0.999"), ORDERS):
        one = sampled_discrete_gaussian(Decimal(rate), Decimal(2), decimal(order))
        assert one <= decimal(order) / 8
        assert (
            replaced_discrete_gaussian(Decimal(rate), Decimal(2), decimal(order))
            <= decimal(order) / 2
        )
