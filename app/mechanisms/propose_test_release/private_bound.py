"""Private choice of a bound, if the analyst proposes none: the smallest that is safe by far.

Candidates B_1 < ... < B_k are public: powers of two of the grid's step up to the width of the
bounds, or halves of the width. Distances d_j, of `local_statistic.py`, grow with B_j from d_0 = 0
to the cap, which is that of the last. With a public target t from 1 to the cap the score of B_j is

    min(d_j - t, t - d_(j-1)),

at least 0 where the distance first reaches t, and only there. One person changes every d_j by at
most 1, hence every score by at most 1 and two scores by at most R = 2 against each other. So the
choice by permute-and-flip at rate epsilon / 2 is epsilon-private (`permute_and_flip.py`), and the
bound may be released. The test and the noise that follow are those of a proposed bound. The losses
add up, and the test fails with f for any chosen bound (`distance_test.py`).

With probability 0.95 the chosen score is at least -(2 / epsilon) ln(20 k) = -s, so d_j >= t - s,
and no smaller bound has a distance above t + s. The target is s above the distance that passes the
test with probability 0.95.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from app.accounting.loss import Loss
from app.accounting.losses import pure_loss
from app.accounting.units import PICO
from app.mechanisms.propose_test_release.distance_test import DistanceTest
from app.mechanisms.release import RandomSource
from app.mechanisms.selection.samplers import permute_and_flip
from app.mechanisms.selection.selection_release import RATE_MAX, tail_bound

THEOREM = "McKenna and Sheldon 2020 (permute-and-flip, for the bound)"
SCORE_RANGE = 2
MISS = 0.05


@dataclass(frozen=True, slots=True)
class PrivateBound:
    """Private choice of one of `candidates` bounds, with its price."""

    epsilon: int  # units of epsilon for the choice
    candidates: int
    target: int
    slack: int

    @property
    def loss(self) -> Loss:
        return pure_loss(self.epsilon)

    def cap(self, test: DistanceTest) -> int:
        return max(self.target + self.slack, test.enough)

    def choose(self, distance: Callable[[int], int], noise: RandomSource) -> int:
        """Index of the chosen candidate; `distance` maps an index to its distance."""
        distances = [0, *map(distance, range(self.candidates))]
        target = self.target
        scores = [min(here - target, target - before) for before, here in pairwise(distances)]
        return permute_and_flip(scores, Fraction(self.epsilon, SCORE_RANGE * PICO), noise)


def prepare(epsilon: int, candidates: int, test: DistanceTest) -> PrivateBound:
    scale = SCORE_RANGE * PICO / epsilon
    if scale < 1 / RATE_MAX:
        raise ArithmeticError("the loss is so large that there would be no noise at all")
    slack = math.ceil(tail_bound(scale, candidates, MISS))
    return PrivateBound(epsilon, candidates, test.likely_from(1.0 - MISS) + slack, slack)
