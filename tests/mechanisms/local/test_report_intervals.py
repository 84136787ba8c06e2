"""Intervals and half-widths of reports: they cover the truth, at the least loss."""

import math
from decimal import Decimal

import numpy as np
import pytest

from app.accounting.units import PICO
from app.errors import Invalid
from app.mechanisms.local.randomized_response import (
    GridEstimate,
    UniformEstimate,
    chance_interval,
    prepare,
    reports_apart,
)
from app.mechanisms.local.report_tables import grid_table
from app.mechanisms.privacy_target import PrivacyTarget
from app.mechanisms.sampling.system import SystemRandom
from app.planning.plan import make_plan
from app.planning.request import Privacy, Question
from app.queries.randomized_column import RandomizedShape
from tests.mechanisms.local.local_laws import ONE, law_of, rows_card, uniform
from tests.mechanisms.noise.noise_law import binomial_tail
from tests.queries.cards import (
    promised_width,
    question,
)


@pytest.mark.parametrize("rows", [1, 2, 5, 12])
@pytest.mark.parametrize("alpha", [0.3, 0.05])
def test_intervals_cover_every_table_by_the_exact_law_of_reports(rows: int, alpha: float) -> None:
    for epsilon in (PICO // 5, ONE, 3 * PICO):
        estimate = UniformEstimate(uniform(3, epsilon))
        figures = [estimate.figures([y, rows - y, 0], alpha)[0] for y in range(rows + 1)]
        for count in range(rows + 1):
            chances = _reports_of(count, rows, estimate)
            covered = sum(
                chance
                for chance, figure in zip(chances, figures, strict=True)
                if figure.low - 1e-9 <= count <= figure.high + 1e-9
            )
            assert covered >= 1 - alpha


def _reports_of(count: int, rows: int, estimate: UniformEstimate) -> list[float]:
    """P(y) for y from 0 to rows: `count` coins of p and the others of q."""
    law = np.ones(1)
    for coin in [estimate.p] * count + [estimate.q] * (rows - count):
        law = np.convolve(law, [1 - coin, coin])
    return [float(chance) for chance in law]


def test_the_interval_of_a_probability_is_clopper_and_pearson_one_report_wider() -> None:
    low, high = chance_interval(np.array([0, 4, 10], dtype=np.int64), 10, 0.1)
    assert (low[0], high[2]) == (0.0, 1.0)
    assert binomial_tail(10, float(low[1]), 3) == pytest.approx(0.05)
    assert 1 - binomial_tail(10, float(high[1]), 6) == pytest.approx(0.05)


def test_grid_intervals_have_their_coverage() -> None:
    """By Hoeffding or Bernstein; for a small table over all reports."""
    estimate = GridEstimate(grid_table((1, 3), ONE))
    for counts in ([3, 0, 0], [1, 1, 1], [0, 3, 0]):
        covered = np.zeros(3)
        for seen, mass in law_of(counts, estimate.table).items():
            for i, figure in enumerate(estimate.figures(list(seen), 0.2)):
                covered[i] += float(mass) * (figure.low <= counts[i] <= figure.high)
        assert covered.min() >= 0.8


@pytest.mark.statistical
def test_large_tables_are_covered_as_often_as_stated() -> None:
    """2000 answers of 5000 rows at 80 %. If each misses with at most 0.2 (400 expected, deviation
    17.9), more than 500 misses have probability below 1e-6."""
    plan = make_plan(
        question({"kind": "randomized_column", "column": "member"}, confidence=0.8),
        rows_card(5000),
    )
    noise = SystemRandom()
    misses = 0
    for _ in range(2000):
        item = plan.answer(((1500, 3000, 500),), noise)["value"][1]
        misses += not item["interval"]["low"] <= 3000 <= item["interval"]["high"]
    assert misses <= 500


# Half-widths


def by_width(half_width: float, rows: int, column: str = "member") -> Question:
    asked = question({"kind": "randomized_column", "column": column})
    privacy = Privacy.model_validate({"half_width": half_width})
    return asked.model_copy(update={"privacy": privacy})


def test_a_half_width_is_charged_at_the_least_loss() -> None:
    losses = []
    for half_width in (600.0, 1000.0, 5000.0):
        plan = make_plan(by_width(half_width, 10**5), rows_card(10**5))
        promised = promised_width(plan.release, 0.95)
        assert half_width * 0.999 <= promised <= half_width
        losses.append(plan.loss.epsilon)
        for y in (0, 10, 50_000, 99_999):
            estimate = plan.release.estimate  # type: ignore[attr-defined]
            figure = estimate.figures([y, 10**5 - y, 0], 0.05)[0]
            reach = max(figure.high - figure.value, figure.value - figure.low)
            assert reach <= half_width
    assert losses == sorted(losses, reverse=True)
    with pytest.raises(Invalid, match="no randomised response"):
        make_plan(by_width(100.0, 10**5), rows_card(10**5))


def test_a_half_width_on_a_grid_is_charged_at_the_least_loss() -> None:
    losses = []
    for half_width in (1_500.0, 3_000.0, 9_000.0):
        parsed = question(
            {
                "kind": "randomized_column",
                "column": "city",
                "missing": "Bern",
                "grid": {"rows": 1, "columns": 3},
            }
        )
        privacy = Privacy.model_validate({"half_width": half_width})
        plan = make_plan(parsed.model_copy(update={"privacy": privacy}), rows_card(10**5))
        promised = promised_width(plan.release, 0.95)
        assert half_width * 0.99 <= promised <= half_width
        losses.append(plan.loss.epsilon)
    assert losses == sorted(losses, reverse=True)


def test_the_width_is_near_the_normal_one() -> None:
    """The normal width of the share is z / (2 sqrt(N) sinh(e/2)) for two outcomes. Ours covers
    every table and the tails of a binomial of the mean probability: z sqrt(N/4) / (2p - 1)."""
    release = prepare(
        RandomizedShape(
            make_plan(by_width(5000, 10**6), rows_card(10**6)).release.tally,
            (False, True),
            10**6,
            0,
            None,
        ),
        PrivacyTarget(epsilon=Decimal(1)),
    )
    ours = promised_width(release, 0.95) / 10**6
    normal = 1.959964 / (2 * math.sqrt(10**6) * math.sinh(0.5))
    assert normal <= ours <= normal * math.cosh(0.5) * 1.01
    assert reports_apart(10**6, 0.05) == pytest.approx(1.959964 * 500, rel=0.01)
