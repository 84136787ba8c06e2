"""The threshold of a stability-based histogram: no neighbours need more than is charged.

The tests compare the exact law for every pair of neighbouring tables of three keys. Other persons
have no row in a key, or about as many as the threshold. One person has up to three rows.
"""

import math
from decimal import Decimal
from functools import cache, partial

import pytest

from app.accounting.units import ATTO, PICO
from app.mechanisms.noise.tail_threshold import failure_units, least_threshold
from app.mechanisms.noise.tails import GaussianTail, LaplaceTail
from app.mechanisms.private_keys.stability_histogram import StabilityRelease
from tests.effort import thorough_after
from tests.mechanisms.private_keys.key_law import hockey_stick, laplace_law, neighbours
from tests.mechanisms.private_keys.key_releases import release_of

RELATIONS = pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
SLACK = Decimal("1e-30")  # for sums of fifty digits


@pytest.mark.parametrize(
    ("epsilon", "delta", "rows", "threshold"),
    [("1", "1e-6", 1, 15), ("1", "1e-6", 4, 60), ("0.5", "1e-5", 1, 24)],
)
def test_thresholds_are_the_golden_ones(
    epsilon: str, delta: str, rows: int, threshold: int
) -> None:
    """A person in several groups, once in each: the least T for which the tail fits delta."""
    release = release_of({"epsilon": epsilon, "delta": delta}, rows=rows)
    assert release.threshold == threshold
    assert release.scale == pytest.approx(rows / float(epsilon))


def partitions(rows: int, most: int | None = None) -> list[list[int]]:
    """All ways to divide this many rows among keys."""
    if rows == 0:
        return [[]]
    return [
        [first, *rest]
        for first in range(1, min(rows, most or rows) + 1)
        for rest in partitions(rows - first, first)
    ]


def failures(tail: LaplaceTail | GaussianTail, rows: int, threshold: int) -> dict[str, float]:
    """Probability that a key is released, for every division of one person's rows among own
    keys.
    """
    probabilities = {}
    for parts in partitions(rows):
        kept = math.prod(1.0 - float(tail.between(threshold - part)[0]) for part in parts)
        probabilities["+".join(map(str, parts))] = 1.0 - kept
    return probabilities


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0, 12.0])
@pytest.mark.parametrize("law", [LaplaceTail, GaussianTail])
def test_no_division_of_rows_releases_a_key_more_often_than_is_charged(
    law: type[LaplaceTail] | type[GaussianTail], epsilon: float, rows: int
) -> None:
    tail = law(rows / epsilon)
    threshold = least_threshold(tail, rows, ATTO // 1000)
    charged = failure_units(tail, rows, threshold) / ATTO
    probabilities = failures(tail, rows, threshold)
    worst = max(probabilities.values())
    assert worst <= charged * (1 + 1e-9) <= 1e-3 * (1 + 1e-9)
    assert worst == pytest.approx(charged, rel=1e-6, abs=2e-16)  # floats cancel
    assert (
        max(probabilities, key=probabilities.__getitem__) in (str(rows), "+".join("1" * rows))
        or worst < 1e-14
    )
    lower = threshold - 1
    assert lower <= rows or max(failures(tail, rows, lower).values()) > 1e-3


def test_each_of_both_divisions_of_rows_is_the_worst_case_somewhere() -> None:
    """One key with all twelve rows nearly reaches the threshold if the noise is small."""
    together, apart = LaplaceTail(3 / 12.0), LaplaceTail(3 / 0.2)
    for tail, worst in ((together, "3"), (apart, "1+1+1")):
        found = failures(tail, 3, least_threshold(tail, 3, ATTO // 1000))
        assert max(found, key=found.__getitem__) == worst


# The exact law, over all neighbours


@cache
def worst(
    relation: str, rows: int, epsilon: str, delta: str, lower: int = 0, narrower: float = 1.0
) -> tuple[Decimal, StabilityRelease]:
    """Largest delta that any neighbours need, and the release.

    `lower` and `narrower` plant a threshold too low and a noise too narrow.
    """
    release = release_of({"epsilon": epsilon, "delta": delta}, relation, rows)
    threshold, scale = release.threshold - lower, release.scale * narrower
    others = [0, 1, threshold - 1, threshold, threshold + 2]
    last = threshold + 2 + 2 * rows
    law = partial(laplace_law, threshold=threshold, scale=scale, last=last)
    promised = Decimal(release.loss.epsilon) / PICO
    by_counts = {
        (tuple(one.values()), tuple(two.values())): (one, two)
        for one, two in neighbours(relation, rows, others)
    }
    return max(hockey_stick(*pair, cache(law), promised) for pair in by_counts.values()), release


CASES = [("1", "0.05"), ("0.4", "0.1"), ("6", "0.001")]


@RELATIONS
@pytest.mark.parametrize("rows", thorough_after(1, [1, 2]))
@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_no_neighbours_need_more_than_was_charged_and_some_need_all_of_it(
    relation: str, rows: int, epsilon: str, delta: str
) -> None:
    needed, release = worst(relation, rows, epsilon, delta)
    charged = Decimal(release.loss.delta) / ATTO
    assert needed <= charged + SLACK
    assert needed > charged - Decimal(1) / ATTO
    assert charged <= Decimal(delta)
    assert release.loss.failure == release.loss.delta == release.failure


@RELATIONS
@pytest.mark.parametrize("rows", thorough_after(1, [1, 2]))
@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_a_threshold_one_too_low_is_caught(
    relation: str, rows: int, epsilon: str, delta: str
) -> None:
    """A release at `> T - 1` instead of `>= T`, or T instead of the library's T, has the same
    effect.
    """
    needed, _ = worst(relation, rows, epsilon, delta, lower=1)
    assert needed > Decimal(delta)


@RELATIONS
@pytest.mark.parametrize("rows", [1, 2])
def test_noise_for_a_smaller_sensitivity_is_caught(relation: str, rows: int) -> None:
    moves = rows * (2 if relation == "replace_one" else 1)
    smaller = max(moves - 1, 0.5) / moves
    needed, release = worst(relation, rows, "1", "0.05", narrower=smaller)
    assert needed > Decimal(release.loss.delta) / ATTO + Decimal("1e-6")


@RELATIONS
def test_three_rows_per_person_need_no_more_than_was_charged(relation: str) -> None:
    """Only tables in which the others have no or many rows, because there are many divisions."""
    release = release_of({"epsilon": "1", "delta": "0.05"}, relation, 3)
    threshold = release.threshold
    law = cache(partial(laplace_law, threshold=threshold, scale=release.scale, last=threshold + 9))
    promised, charged = Decimal(release.loss.epsilon) / PICO, Decimal(release.loss.delta) / ATTO
    needed = max(
        hockey_stick(one, two, law, promised)
        for one, two in neighbours(relation, 3, [0, threshold + 1], keys="ab")
    )
    assert needed <= charged + SLACK


def test_the_general_conversion_to_replace_one_would_charge_more() -> None:
    """The general rule would charge (2 e, (1 + exp(e)) d) for noise and threshold that are (e,
    d)-private under add_remove.

    The same noise and threshold cost (2 e, d).
    """
    half = release_of({"epsilon": "0.5", "delta": "1e-6"})
    both = release_of({"epsilon": "1", "delta": "1e-6"}, "replace_one")
    assert (half.scale, half.threshold) == (both.scale, both.threshold)
    assert half.loss.failure == both.loss.failure
