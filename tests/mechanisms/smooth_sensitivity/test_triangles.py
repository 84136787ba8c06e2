"""Triangles: the exact law of the answers, and of the noisy bound."""

import math
from bisect import bisect_left
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from app.accounting.curves.orders import ORDERS
from app.accounting.units import ATTO, PICO
from app.errors import Invalid
from app.mechanisms.propose_test_release.noisy_bound import BoundedRelease
from app.mechanisms.sampling.system import SystemRandom
from app.mechanisms.smooth_sensitivity.triangles import SmoothTriangles
from app.planning.plan import Plan, make_plan
from app.planning.request import Question
from app.queries.tally import GraphCounts
from tests.engines.test_graph import edge_card
from tests.mechanisms.noise.noise_law import FALSE_ALARM, chi_square, chi_square_tail


def plan(nodes: int, privacy: dict[str, Any], mechanism: dict[str, Any] | None = None) -> Plan:
    asked = {"dataset": "d", "query": {"kind": "triangles"}, "privacy": privacy}
    if mechanism is not None:
        asked["mechanism"] = mechanism
    return make_plan(Question.model_validate(asked), edge_card(nodes))


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
    """Parts of W with equal mass, as in the proof; `one` has the smaller LS."""
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


def two_degrees(z: float) -> float:
    """P(Z <= z) of Student's t."""
    return 0.5 + z / (2.0 * math.sqrt(2.0 + z * z))


def p_value_of_two_degrees(draws: list[int], scale: float) -> float:
    """P value of chi-square over bins of about probability 1/21 each, exact for integers."""
    wanted = [(2 * u - 1) / math.sqrt(2 * u * (1 - u)) for u in (i / 21 for i in range(1, 21))]
    ends = [math.floor(scale * z) for z in wanted]
    below = [0.0, *(two_degrees((end + 0.5) / scale) for end in ends), 1.0]
    counts = [0] * 21
    for draw in draws:
        counts[bisect_left(ends, draw)] += 1
    expected = [len(draws) * (b - a) for a, b in pairwise(below)]
    statistic = sum((c - e) ** 2 / e for c, e in zip(counts, expected, strict=True))
    return chi_square_tail(statistic, 20)


def test_smooth_answers_follow_the_charged_law() -> None:
    """20,000 answers about a graph in which two nodes share 50 neighbours: false alarms 1e-6.

    A scale 10 % off escapes with probability below 1e-4.
    """
    made = plan(400, {"epsilon": "1"}, {"kind": "smooth_sensitivity", "noise": "student_t"})
    release = made.release
    assert isinstance(release, SmoothTriangles)
    assert release.describe()["degrees"] == 2
    beta = release.noise.beta
    middle = math.comb(400, 3) // 2
    noise = SystemRandom()
    draws = [made.answer(GraphCounts(middle, 50), noise)["value"] - middle for _ in range(20_000)]
    # The largest s for this beta (`pure_noise.py`); and S = 50, as 50 is above 1 / beta.
    phi = (2 - float(beta)) / 3
    root = 4 * math.exp(beta) * (math.cosh(phi) - math.cosh(beta))
    scale = 50 / min(2 * math.sqrt(2) * math.sinh(1 / 3), math.sqrt(root))
    assert p_value_of_two_degrees(draws, scale) > FALSE_ALARM
    assert p_value_of_two_degrees(draws, 1.1 * scale) < FALSE_ALARM
    assert p_value_of_two_degrees(draws, 0.9 * scale) < FALSE_ALARM


def test_a_slot_is_longer_for_larger_public_graph_sizes() -> None:
    """It depends on the public number of nodes. The time to count depends on the edges."""
    for mechanism in ({"kind": "noisy_bound"}, {"kind": "smooth_sensitivity"}):
        privacy = {"epsilon": "1", "delta": "1e-6"} if mechanism["kind"] == "noisy_bound" else None
        seconds = [
            plan(nodes, privacy or {"epsilon": "1"}, mechanism).release.work.seconds
            for nodes in (10, 1000, 20_000, 10**6)
        ]
        assert seconds == [0.1, 0.1, 2.0, 10.0]


def test_a_rho_is_shared_too_and_the_bound_comes_first() -> None:
    made = plan(100, {"rho": "0.5", "delta": "1e-6"}).release
    assert isinstance(made, BoundedRelease)
    assert made.loss.rho <= PICO // 2
    assert isinstance(plan(100, {"epsilon": "1"}).release, SmoothTriangles)
    assert isinstance(plan(100, {"epsilon": "1", "delta": "1e-6"}).release, BoundedRelease)


@pytest.mark.parametrize(
    ("privacy", "mechanism", "at"),
    [
        ({"epsilon": "1"}, {"kind": "noisy_bound"}, "/privacy/delta"),
        ({"half_width": 5.0, "delta": "1e-6"}, {"kind": "noisy_bound"}, "/privacy"),
        ({"half_width": 5.0}, None, "/privacy"),
        ({"epsilon": "1e-12", "delta": "1e-6"}, {"kind": "noisy_bound"}, "/privacy"),
        ({"epsilon": "9000", "delta": "1e-6"}, {"kind": "noisy_bound"}, "/privacy/epsilon"),
        ({"epsilon": "1"}, {"kind": "laplace"}, "/mechanism/kind"),
        ({"epsilon": "1"}, {"kind": "propose_test_release"}, "/mechanism/kind"),
    ],
)
def test_an_unsupported_question_is_refused_by_name(
    privacy: dict[str, Any], mechanism: dict[str, Any] | None, at: str
) -> None:
    with pytest.raises(Invalid) as refused:
        plan(100, privacy, mechanism)
    assert refused.value.fields[0].pointer.startswith(at)


def test_smooth_answers_are_integers_within_the_possible_range() -> None:
    made = plan(20, {"epsilon": "0.5"}, {"kind": "smooth_sensitivity", "noise": "student_t"})
    values = [made.answer(GraphCounts(3, 2), SystemRandom())["value"] for _ in range(300)]
    assert all(type(value) is int and 0 <= value <= math.comb(20, 3) for value in values)
    paid = plan(20, {"epsilon": "1"}, {"kind": "smooth_sensitivity", "interval_epsilon": "0.5"})
    assert paid.loss.epsilon == PICO
    answers = [made.answer(GraphCounts(30, 2), SystemRandom()) for made in [paid] * 300]
    held = sum(a["interval"]["low"] <= 30 <= a["interval"]["high"] for a in answers)
    assert held >= 270  # at 95 %, fewer have a probability below 2e-4
