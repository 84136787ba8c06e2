"""Noisy bound on local sensitivity, and noise scaled to that bound: both are released.

    B = LS + Y + T, at least 1 and at most n - 2       Y discrete Laplace of scale 1 / e1
    f + Z                                              Z discrete Laplace of scale B / e2

T >= 0 is the least integer with q = P(Y > T) at most what delta allows (`distance_test.py`). So B <
LS only with probability q.

Assumes: LS changes by at most 1 between neighbours, and they differ in f by at most both their LS
(`queries/shapes/graphs.py`).

Theorem (Karwa, Raskhodnikova, Smith and Yaroslavtsev 2011): (e1 + e2, q)-private. Except with
probability q the curves of randomised response at e1 and at e2 bound it together.

Proof: let P and Q be the answers of neighbours x and x', with LS(x) = L <= LS(x') = L + j, j 0 or
1; f differs by at most L. Let W be LS + Y + T of x or x', before it is clamped to limits that are
the same for both. Where W >= L, B is at least the difference of f, and given B the release of f is
e2-private. P has W < L with probability q, Q with q or p q, p = exp(-e1). This is the promise: P(S)
<= q + P(S, W >= L) <= q + exp(e1 + e2) Q(S), and likewise from Q to P.

For the curves, each of P and Q needs a part of mass 1 - q such that the parts are as far apart as
is charged. For P take W >= L. For j = 0 take the same for Q. For j = 1, Q has q (1 - p) more mass
there than needed. Remove it from where W > L + T, in proportion: Q has mass 1 / (1 + p) there, and
a fraction 1 - q (1 - p^2) >= p^2 of it remains. There Q was exp(e1) times P, so the remainder is
between exp(-e1) and exp(e1) times P; elsewhere it is exp(-e1) times P. So W is e1-private between
the parts, which have the same mass, and the release of f, given W, is e2-private. (To cut both at
their own LS would leave a value of W that only one of them has.)

Rounding: both scales up, T from probabilities rounded up, q up to a unit.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from app.accounting.loss import Loss
from app.accounting.losses import pure_loss
from app.accounting.units import ATTO, PICO, cost_units, limit_units
from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.expected_error import ExpectedError, unknown
from app.mechanisms.noise import laplace
from app.mechanisms.noise.additive import float_up
from app.mechanisms.privacy_target import CannotServe, PrivacyTarget
from app.mechanisms.propose_test_release import distance_test
from app.mechanisms.propose_test_release.distance_test import DistanceTest
from app.mechanisms.release import DataReader, RandomSource, SingleGroupRelease
from app.mechanisms.work import Work
from app.queries import Query
from app.queries.estimates import Estimate
from app.queries.shapes.graphs import GraphShape
from app.queries.tally import GraphCounts, Tally

KIND = "noisy_bound"
THEOREM = "Karwa, Raskhodnikova, Smith and Yaroslavtsev 2011 (noisy bound on local sensitivity)"
BOUND_SHARE = Fraction(1, 2)
DEPENDS = "the width depends on the bound, which is released with the answer"


@dataclass(frozen=True, slots=True)
class BoundedRelease(SingleGroupRelease):
    shape: GraphShape
    above: DistanceTest  # the noise on LS, and the shift T that puts the bound above LS
    epsilon: int  # units of epsilon for the answer
    loss: Loss

    @property
    def tally(self) -> Tally:
        return self.shape.tally

    @property
    def work(self) -> Work:
        return Work(seconds=self.shape.seconds, leaves=self.tally.leaves())

    @property
    def theorem(self) -> str:
        return THEOREM

    @property
    def standard_deviations(self) -> tuple[float, ...]:
        """Infinite: the noise depends on the data. (inf,) sorts before the tuple of smooth
        sensitivity, so the planner prefers this mechanism: its answer has an interval."""
        return (math.inf,)

    def read(self, data: DataReader) -> GraphCounts:
        return data.graph(self.shape.edges)

    def answer(
        self,
        exact: GraphCounts,
        noise: RandomSource,
        *,
        query: Query,
        card: Card,
        confidence: float,
    ) -> dict[str, Any]:
        noisy = exact.common + noise.discrete_laplace(self.above.scale, 1)[0] + self.above.threshold
        bound = min(max(noisy, 1), self.shape.sensitivity_max)
        scale = self.scale(bound)
        value = exact.triangles + noise.discrete_laplace(scale, 1)[0]
        width = laplace.width(scale, 1.0 - confidence)
        figure = Estimate(*map(self.shape.possible, (value, value - width, value + width)))
        return {
            "value": figure.value,
            "interval": figure.interval(confidence),
            "bound": bound,
        }

    def scale(self, bound: int) -> float:
        return float_up(bound / Fraction(self.epsilon, PICO))

    def describe(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "bound_scale": self.above.scale,
            "shift": self.above.threshold,
            "failure": self.above.failure / ATTO,
            "largest": self.shape.sensitivity_max,
            "scale_over_bound": self.scale(1),
        }

    def ledger_entry(self) -> dict[str, Any]:
        return {
            "mechanism": KIND,
            "bound_scale": self.above.scale.hex(),
            "shift": str(self.above.threshold),
            "scale_over_bound": self.scale(1).hex(),
        }

    def expected_error(self, confidence: float, rows: int | None = None) -> ExpectedError:
        """Half width per unit of the bound.

        If no two nodes share a neighbour, the half width is about this number times the shift.
        Otherwise it grows with the largest number of shared neighbours."""
        over_bound = laplace.width(self.scale(1 << 20), 1.0 - confidence) / 2**20
        return unknown(DEPENDS, half_width_over_bound=over_bound)


def prepare(shape: GraphShape, target: PrivacyTarget) -> BoundedRelease:
    if target.half_width is not None:
        raise CannotServe(f"no half width can be promised: {DEPENDS}")
    if target.delta is None:
        raise Invalid.field("/privacy/delta", "required: a bound that may fail costs a delta")
    share = target.bound_share or BOUND_SHARE
    if target.epsilon is not None:
        first, epsilon = _shared(cost_units(target.epsilon, PICO), share)
        bound_target = PrivacyTarget(epsilon=Decimal(first) / PICO)
    else:
        assert target.rho is not None
        first, rest = _shared(limit_units(target.rho, PICO), share)
        bound_target = PrivacyTarget(rho=Decimal(first) / PICO)
        epsilon = laplace.epsilon_within_rho(rest)
    above = distance_test.prepare(bound_target, cost_units(target.delta, ATTO))
    release = BoundedRelease(shape, above, epsilon, above.then(pure_loss(epsilon)))
    if release.scale(1) < laplace.SCALE_MIN:
        raise Invalid.field("/privacy/epsilon", "too large: there would be no noise at all")
    if release.scale(shape.sensitivity_max) > laplace.SCALE_MAX:
        raise Invalid.field("/privacy/epsilon", "too small: the noise would not fit 64 bits")
    return release


def _shared(units: int, share: Fraction) -> tuple[int, int]:
    first = math.floor(units * share)
    if not 0 < first < units:
        raise CannotServe("the loss is too small to be split")
    return first, units - first
