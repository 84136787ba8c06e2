"""The noisy test of a distance, and what passes it: the part that may withhold.

A table x has a distance d(x), a whole number that one person changes by at most 1, and something
told only if d + Z > T, with Z discrete Laplace noise of scale 1 / epsilon. *Safe* neighbours x, x'
have what is told of them private by itself, with a curve or as (e, d2); all others have
d(x) = d(x') = 0. Let f = P(Z > T).

Theorem (Dwork and Lei 2009; Smith and Thakurta 2013, here with whole numbers): the release is
(epsilon + e, max(d2, f))-private, and except with probability f the curve of the test, that of
randomised response at epsilon, and the curve of what is told bound it together.
Proof: safe neighbours get the test, which is epsilon-private, and then what is told, or nothing:
both compose, and f is not needed. Of the others both withhold with the same probability 1 - f, so
P = (1 - f) W + f P', Q = (1 - f) W + f Q' with W the withheld answer: P(S) <= Q(S) + f, and given
that neither passes they are equal.

f = exp(-epsilon (T + 1)) / (1 + exp(-epsilon)), and T >= 0 is the least for which it is at most
what delta allows. (The lecture's T of ln(1 / delta) / epsilon for continuous noise gives delta / 2;
a T that told at d + Z >= T would fail more often.)
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
FAR = 20  # scales above the threshold a test fails with probability below 2e-9
_DISTANCE = Measure("distance", ((1, 0),), 1, Fraction(1), 0, single_cell=True)
_SHAPE = SumShape(Tally(None, (), (CountRows(),)), (_DISTANCE,))


@dataclass(frozen=True, slots=True)
class DistanceTest:
    scale: float  # of the noise on the distance
    threshold: int  # T
    failure: int  # f, in units
    loss: Loss  # of the noise alone

    def passed(self, distance: int, noise: RandomSource) -> bool:
        return distance + noise.discrete_laplace(self.scale, 1)[0] > self.threshold

    def likely_from(self, probability: float) -> int:
        """A distance from which on it is passed with this probability: P(Z <= -w - 1) is at most
        what is left, for a w from `laplace.width`, whose tails are both."""
        return self.threshold + 1 + laplace.width(self.scale, 2.0 * (1.0 - probability))

    @property
    def enough(self) -> int:
        """From here on a larger distance changes next to nothing: a public cap."""
        return self.threshold + 1 + int(FAR * self.scale)

    @property
    def alone(self) -> Loss:
        """The loss if what is told of safe neighbours is the same."""
        return self.loss.replace(delta=self.failure, failure=self.failure)

    def then(self, told: Loss) -> Loss:
        """The loss of the test and of what is told if it is passed."""
        both = (self.loss + told).replace(failure=self.failure)
        if both.epsilon >= INFINITE:
            return both
        return both.replace(delta=max(told.delta, self.failure))


def prepare(asked: PrivacyTarget, delta: int) -> DistanceTest:
    """Of a loss for the noise, and units of delta for its failure."""
    noisy = laplace.prepare(_SHAPE, asked)
    tail = LaplaceTail(noisy.parts[0].scale)
    with localcontext(CONTEXT):
        allowed = Decimal(delta) / ATTO
    passes = tail.reach(allowed)
    return DistanceTest(tail.scale, passes - 1, units_above(tail, passes), noisy.loss)
