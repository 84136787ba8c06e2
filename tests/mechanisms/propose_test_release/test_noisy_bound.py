"""Triangles with a noisy bound: the exact law of the bound and of the answers."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.accounting.curves.orders import ORDERS
from app.accounting.units import ATTO, PICO
from app.mechanisms.propose_test_release.noisy_bound import BoundedRelease
from app.mechanisms.sampling.system import SystemRandom
from app.queries.tally import GraphCounts
from tests.mechanisms.noise.noise_law import FALSE_ALARM, chi_square
from tests.mechanisms.smooth_sensitivity.triangle_plans import plan


def bounded(nodes: int, epsilon: str, delta: str, share: str = "0.5") -> BoundedRelease:
    made = plan(
        nodes,
        {"epsilon": epsilon, "delta": delta},
        {"kind": "noisy_bound", "bound_share": share},
    ).release
    assert isinstance(made, BoundedRelease)
    return made


def test_the_shift_is_the_least_that_delta_allows() -> None:
    """T = 26 for 0.5 and 1e-6, so that P(Y > 26) <= 1e-6 < P(Y > 25)."""
    release = bounded(1000, "1", "1e-6")
    assert release.above.threshold == 26
    assert math.isclose(
        release.above.failure / ATTO, math.exp(-0.5 * 27) / (1 + math.exp(-0.5)), rel_tol=1e-9
    )
    assert release.loss.epsilon == PICO
    assert release.loss.delta == release.loss.failure == release.above.failure <= 10**12


def tail(scale: float, z: int) -> float:
    """P(Z >= z)"""
    p = math.exp(-1 / scale)
    return p**z / (1 + p) if z >= 1 else 1.0 - p ** (1 - z) / (1 + p)


FAR = 900  # values beyond have probability below 1e-13
Law = np.ndarray[Any, np.dtype[np.float64]]  # by the bound and the answer


def law_of_shifted(release: BoundedRelease, common: int) -> dict[int, float]:
    """Law of W = LS + Y + T, with everything above the maximum in one outcome."""
    first = common + release.above.threshold
    scale = release.above.scale
    low, high = first - 200, release.shape.sensitivity_max
    law = {w: tail(scale, w - first) - tail(scale, w + 1 - first) for w in range(low, high)}
    law[low] += 1.0 - tail(scale, low - first)
    law[high] = tail(scale, high - first)
    return law


def law(release: BoundedRelease, exact: GraphCounts) -> Law:
    """Law of the bound and of the answer, before the answer is clamped to possible counts."""
    bounds = np.zeros(release.shape.sensitivity_max + 1)
    for w, chance in law_of_shifted(release, exact.common).items():
        bounds[max(w, 1)] += chance
    apart = np.abs(np.arange(-FAR, FAR + 1) - exact.triangles)
    falls = [math.exp(-1 / release.scale(max(bound, 1))) for bound in range(len(bounds))]
    answers = np.array([(1 - p) / (1 + p) * p**apart for p in falls])
    return np.asarray(bounds[:, None] * answers)


def hockey_stick(one: Law, other: Law, epsilon: float) -> float:
    return float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum())


# Neighbours as far apart as possible: the answers differ by the LS of both, or of one.
APART = [
    (GraphCounts(10, 6), GraphCounts(16, 6)),
    (GraphCounts(10, 6), GraphCounts(16, 7)),
    (GraphCounts(10, 7), GraphCounts(16, 6)),
    (GraphCounts(0, 1), GraphCounts(1, 1)),
    (GraphCounts(0, 0), GraphCounts(0, 1)),
    (GraphCounts(20, 28), GraphCounts(48, 28)),
]


@pytest.mark.parametrize("delta", ["0.1", "0.01", "0.0001"])
@pytest.mark.parametrize(("one", "other"), APART)
def test_the_law_of_bound_and_answer_is_within_the_promise(
    one: GraphCounts, other: GraphCounts, delta: str
) -> None:
    release = bounded(30, "2", delta)
    spent = release.loss.delta / ATTO
    for first, second in ((one, other), (other, one)):
        laws = law(release, first), law(release, second)
        assert math.isclose(laws[0].sum(), 1.0, abs_tol=1e-9)
        assert hockey_stick(*laws, release.loss.epsilon / PICO) <= spent + 1e-9


def test_a_shift_that_is_too_small_is_caught() -> None:
    """The saboteur's bound fails more often than is charged."""
    release = bounded(30, "2", "0.01")
    less = replace(release, above=replace(release.above, threshold=release.above.threshold - 4))
    one, other = APART[0]
    assert hockey_stick(law(less, one), law(less, other), 2.0) > release.loss.delta / ATTO


def parts(
    release: BoundedRelease, one: GraphCounts, other: GraphCounts
) -> tuple[dict[int, float], dict[int, float]]:
    """Parts of W with equal mass, as in the proof of `noisy_bound.py`; `one` has the smaller LS."""
    first, second = law_of_shifted(release, one.common), law_of_shifted(release, other.common)
    least = one.common
    kept = {w: chance for w, chance in first.items() if w >= least}
    cut = {w: chance for w, chance in second.items() if w >= least}
    more = math.fsum(cut.values()) - math.fsum(kept.values())
    high = [w for w in cut if w > least + release.above.threshold]
    if other.common > one.common and high:
        remains = 1.0 - more / math.fsum(cut[w] for w in high)
        cut |= {w: cut[w] * remains for w in high}
    return kept, cut


@pytest.mark.parametrize("delta", ["0.1", "0.01"])
@pytest.mark.parametrize(("one", "other"), APART[:2])
def test_apart_from_the_failure_the_curves_of_both_noises_bound_the_loss(
    one: GraphCounts, other: GraphCounts, delta: str
) -> None:
    """Each part holds everything except the failure. The parts are as close as charged, at every
    order.
    """
    release = bounded(60, "2", delta)
    kept, cut = parts(release, one, other)
    mass = 1.0 - release.above.failure / ATTO
    for part in (kept, cut):
        assert math.isclose(math.fsum(part.values()), mass, rel_tol=1e-9)
    assert min(kept) >= abs(one.triangles - other.triangles)
    assert above_the_curve(release, one, other) <= 1e-9


def above_the_curve(release: BoundedRelease, one: GraphCounts, other: GraphCounts) -> float:
    """Excess of the parts' divergence over the charge, at the worst order."""
    kept, cut = parts(release, one, other)
    mass = 1.0 - release.above.failure / ATTO
    worst = -math.inf
    for order, units in zip(ORDERS, release.loss.curve, strict=True):
        alpha = float(order)
        if alpha > 60:
            continue
        for p, q, f, g in (
            (kept, cut, one.triangles, other.triangles),
            (cut, kept, other.triangles, one.triangles),
        ):
            total = math.fsum(
                (p[w] / q[w]) ** (alpha - 1) * p[w] / mass * _moved(release, w, f - g, alpha)
                for w in p
            )
            worst = max(worst, math.log(total) / (alpha - 1) - units / PICO)
    return worst


@pytest.mark.parametrize(("one", "other"), APART[:2])
def test_noise_smaller_than_the_curve_says_is_caught(one: GraphCounts, other: GraphCounts) -> None:
    """The saboteurs reduce the noise of the answer or of the bound, for more loss than is charged.

    Most bounds are far above LS, so the actual loss is little more than the bound's own. Only a
    large reduction shows.
    """
    release = bounded(60, "2", "0.1", "0.9")
    assert above_the_curve(release, one, other) <= 1e-9
    quiet = replace(release, epsilon=40 * release.epsilon)
    assert above_the_curve(quiet, one, other) > 0.01
    if one.common != other.common:
        near = replace(release.above, scale=release.above.scale / 2)
        assert above_the_curve(replace(release, above=near), one, other) > 0.01


def _moved(release: BoundedRelease, bound: int, apart: int, alpha: float) -> float:
    """Sum of P(z)^alpha P(z + apart)^(1 - alpha), in closed form for |apart| <= bound."""
    p = math.exp(-1 / release.scale(bound))
    d = abs(apart)
    between = math.fsum(p ** (alpha * z + (1 - alpha) * (d - z)) for z in range(1, d))
    ends = (p ** ((1 - alpha) * d) + p ** (alpha * d)) / (1 - p) if d else (1 + p) / (1 - p)
    return (1 - p) / (1 + p) * (ends + between)


def test_answers_follow_the_law() -> None:
    """One bound at a time. False alarms as in `noise_law.py`; a scale 10 % off is detected."""
    release = bounded(40, "1", "1e-3")
    noise = SystemRandom()
    exact = GraphCounts(4000, 38)  # the bound is 38 except with small probability
    answers = [
        release.answer(exact, noise, query=None, card=None, confidence=0.95)  # type: ignore[arg-type]
        for _ in range(30_000)
    ]
    assert {answer["bound"] for answer in answers} <= set(range(1, 39))
    draws = [answer["value"] - 4000 for answer in answers if answer["bound"] == 38]
    assert len(draws) > 29_000
    assert chi_square(draws, release.scale(38)) > FALSE_ALARM
    assert chi_square(draws, 1.1 * release.scale(38)) < FALSE_ALARM
    inside = sum(
        answer["interval"]["low"] <= 4000 <= answer["interval"]["high"] for answer in answers
    )
    assert inside / len(answers) > 0.94


def test_bounds_follow_the_law() -> None:
    """The graph is so large that no bound is clamped; false alarms as in `noise_law.py`."""
    release = bounded(2000, "2", "1e-3", "0.1")
    assert release.above.scale == 5.0
    noise = SystemRandom()
    exact = GraphCounts(0, 15)
    answers = [
        release.answer(exact, noise, query=None, card=None, confidence=0.95)  # type: ignore[arg-type]
        for _ in range(30_000)
    ]
    assert all(answer["value"] >= 0 for answer in answers)
    draws = [answer["bound"] - 15 - release.above.threshold for answer in answers]
    assert chi_square(draws, 5.0) > FALSE_ALARM
    assert chi_square(draws, 5.5) < FALSE_ALARM
    assert chi_square(draws, 4.5) < FALSE_ALARM
