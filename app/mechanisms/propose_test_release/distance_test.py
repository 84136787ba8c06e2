"""Noisy test of a distance, and the release that follows if it passes.

A table x has a distance d(x), an integer that one person changes by at most 1. A value is released
only if d + Z > T, with Z discrete Laplace noise of scale 1 / epsilon. For *safe* neighbours x, x'
the released value is private by itself, with a curve or as (e, d2); all others have d(x) = d(x') =
0. Let f = P(Z > T).

Theorem (Dwork and Lei 2009; Smith and Thakurta 2013, here with integers): the release is (epsilon +
e, max(d2, f))-private. Except with probability f, it is bounded by the curve of the test, that of
randomised response at epsilon, plus the curve of the released value.

Proof: safe neighbours get the test, which is epsilon-private, and then the value or nothing. Both
compose, and f is not needed. All other neighbours withhold with the same probability 1 - f. So P =
(1 - f) W + f P', Q = (1 - f) W + f Q' with W the withheld answer: P(S) <= Q(S) + f, and given that
neither passes they are equal.

f = exp(-epsilon (T + 1)) / (1 + exp(-epsilon)), and T >= 0 is the least for which it is at most
what delta allows. (The usual T of ln(1 / delta) / epsilon for continuous noise gives delta / 2;
a test that passes at d + Z >= T would fail more often.)

Rounding: the scale rounds up; T comes from probabilities rounded up, f is rounded up to a unit.
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from app.accounting.loss import Loss
from app.accounting.precise import CONTEXT, INFINITE
from app.accounting.units import ATTO
from app.mechanisms.noise import laplace
from app.mechanisms.noise.tail_threshold import units_above
from app.mechanisms.noise.tails import LaplaceTail
from app.mechanisms.privacy_target import PrivacyTarget
from app.mechanisms.release import RandomSource
from app.queries.shapes.measures import Measure
from app.queries.shapes.sums import SumShape
from app.queries.tally import CountRows, Tally

THEOREM = "Dwork and Lei 2009 (propose-test-release)"
FAR = 20  # this many scales above the threshold, a test fails with probability below 2e-9
_DISTANCE = Measure("distance", ((1, 0),), 1, Fraction(1), 0, single_cell=True)
_SHAPE = SumShape(Tally(None, (), (CountRows(),)), (_DISTANCE,))


@dataclass(frozen=True, slots=True)
class DistanceTest:
    scale: float  # noise scale on the distance
    threshold: int  # T: the test passes above it
    failure: int  # f, in units of probability
    loss: Loss  # loss of the noise on the distance alone

    def passed(self, distance: int, noise: RandomSource) -> bool:
        return distance + noise.discrete_laplace(self.scale, 1)[0] > self.threshold

    def likely_from(self, probability: float) -> int:
        """Least distance that passes with this probability.

        P(Z <= -w - 1) is at most the remaining probability, for a w from `laplace.width`, which
        counts both tails."""
        return self.threshold + 1 + laplace.width(self.scale, 2.0 * (1.0 - probability))

    @property
    def enough(self) -> int:
        """Public cap: beyond it a larger distance has almost no effect on the test."""
        return self.threshold + 1 + int(FAR * self.scale)

    @property
    def alone(self) -> Loss:
        """The loss if safe neighbours have equal released values."""
        return self.loss.replace(delta=self.failure, failure=self.failure)

    def then(self, released: Loss) -> Loss:
        """The loss of the test and of the value that is released if it passes."""
        both = (self.loss + released).replace(failure=self.failure)
        if both.epsilon >= INFINITE:
            return both
        return both.replace(delta=max(released.delta, self.failure))


def prepare(target: PrivacyTarget, delta: int) -> DistanceTest:
    """Test for a privacy target of its noise, with `delta` units for its failure."""
    noisy = laplace.prepare(_SHAPE, target)
    tail = LaplaceTail(noisy.parts[0].scale)
    with localcontext(CONTEXT):
        allowed = Decimal(delta) / ATTO
    passes = tail.reach(allowed)
    return DistanceTest(tail.scale, passes - 1, units_above(tail, passes), noisy.loss)
