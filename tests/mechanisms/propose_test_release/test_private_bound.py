"""A privately chosen bound: exact laws over all distances of neighbours, and its accuracy."""

import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product

import pytest

from app.accounting.units import ATTO, PICO
from app.mechanisms.privacy_target import PrivacyTarget
from app.mechanisms.propose_test_release import distance_test, private_bound
from app.mechanisms.propose_test_release.private_bound import PrivateBound
from app.mechanisms.sampling.system import SystemRandom
from tests.mechanisms.selection.selection_law import permute_and_flip_law

CAP = 4
Distances = tuple[int, ...]


def distances() -> list[Distances]:
    """Distances of three bounds, which never fall; the last bound is always safe."""
    found = [(*d, CAP) for d in product(range(CAP + 1), repeat=2)]
    return [d for d in found if all(a <= b for a, b in pairwise(d))]


def scores(d: Distances, target: int) -> list[int]:
    return [min(here - target, target - before) for before, here in pairwise((0, *d))]


def worst(rate: float, target: int) -> float:
    """Largest log-ratio over all changes of the distances by one person."""
    largest = 0.0
    for one, two in product(distances(), repeat=2):
        if all(abs(a - b) <= 1 for a, b in zip(one, two, strict=True)):
            laws = [permute_and_flip_law(scores(d, target), rate) for d in (one, two)]
            largest = max(largest, *(math.log(p / q) for p, q in zip(*laws, strict=True)))
    return largest


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("target", [1, 2, 4])
def test_no_neighbours_differ_by_more_than_the_charge(epsilon: float, target: int) -> None:
    assert worst(epsilon / private_bound.SCORE_RANGE, target) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_treating_the_scores_as_monotone_is_caught(epsilon: float) -> None:
    """The scores would be monotone for R = 1."""
    assert worst(epsilon, 2) > epsilon * 1.2


def test_the_choice_follows_its_scores_and_its_rate() -> None:
    """False alarm below 1e-6: the bound is Hoeffding's, for all outcomes together."""
    chosen = PrivateBound(2 * PICO, 3, target=2, slack=1)
    table = (1, 3, CAP)
    expected = permute_and_flip_law(scores(table, 2), float(Fraction(2, 2)))
    runs, noise = 20_000, SystemRandom()
    hits = [0, 0, 0]
    for _ in range(runs):
        hits[chosen.choose(table.__getitem__, noise)] += 1
    off = math.sqrt(math.log(2 * 3 / 1e-6) / (2 * runs))
    assert all(abs(hit / runs - p) <= off for hit, p in zip(hits, expected, strict=True))
    twice = permute_and_flip_law(scores(table, 2), 2.0)
    assert any(abs(hit / runs - p) > off for hit, p in zip(hits, twice, strict=True))


@pytest.mark.parametrize("epsilon", ["0.2", "1", "5"])
def test_with_the_stated_probability_the_chosen_bound_passes_and_is_not_too_large(
    epsilon: str,
) -> None:
    """Distances double with the bound, as for evenly spread values."""
    test = distance_test.prepare(PrivacyTarget(epsilon=Decimal(epsilon)), ATTO // 10**6)
    chosen = private_bound.prepare(int(float(epsilon) * PICO), 20, test)
    cap = chosen.cap(test)
    for first in (0.1, 1, 3):
        found = (*(min(cap, int(first * 2**j)) for j in range(19)), cap)
        law = permute_and_flip_law(scores(found, chosen.target), float(epsilon) / 2)
        least, most = chosen.target - chosen.slack, chosen.target + chosen.slack
        good = [here >= least and before <= most for before, here in pairwise((0, *found))]
        assert sum(p for p, ok in zip(law, good, strict=True) if ok) >= 0.95
        assert least >= test.likely_from(0.95)
    assert chosen.loss.epsilon == int(float(epsilon) * PICO)
    assert test.failure <= ATTO
