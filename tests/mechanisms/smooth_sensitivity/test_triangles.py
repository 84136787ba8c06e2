"""Triangles with smooth sensitivity: the law of the answers, the plans, and refusals."""

import math
from bisect import bisect_left
from itertools import pairwise
from typing import Any

import pytest

from app.accounting.units import PICO
from app.errors import Invalid
from app.mechanisms.propose_test_release.noisy_bound import BoundedRelease
from app.mechanisms.sampling.system import SystemRandom
from app.mechanisms.smooth_sensitivity.triangles import SmoothTriangles
from app.queries.tally import GraphCounts
from tests.mechanisms.noise.noise_law import FALSE_ALARM, chi_square_tail
from tests.mechanisms.smooth_sensitivity.triangle_plans import plan


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
