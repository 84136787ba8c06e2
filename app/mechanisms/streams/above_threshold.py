"""Sparse vector on integers: report which of many counts reach a threshold, until c have.

A stream draws r once from discrete Laplace noise of scale b = D / e1. For each count q it draws v
of scale s; the answer is whether q + v >= T + r. After c answers "above" the stream releases
nothing more. It never releases r or q + v.

Theorem: Lyu, Su and Li 2017, Theorem 2 and, for counts that all move one way, Theorem 3, here for
integers: the stream of all answers is (e1 + e2)-private with s = 2 c D / e2. If neighbours move no
two counts in opposite directions, s = c D / e2 is enough. The analyst may pick each count after the
answers before.

Proof. Let neighbours x, y move each count by at most D, an integer, and fix the counts in the
queries and the answers. Their probability is the sum over r of P(r), times P(v < T + r - q) for
each answer "below" and P(v >= T + r - q) for each "above". There are at most c answers "above".
Shifts are integers, so they stay among the values of the noise. For d >= 0, P(r) <= exp(d / b) P(r
+ d) and P(v >= k) <= exp(d / s) P(v >= k + d).

In general: pair r for x with r + D for y. P(r) grows by at most exp(D / b) = exp(e1). A count of y
is at most D above that of x, so "below" is no less likely for y at r + D than for x at r. It is at
most D below that of x, so the threshold for "above" is at most 2 D further away: exp(2 D / s) =
exp(e2 / c) each.

Where all counts of y are at least those of x (and at most D above): pair r with r + D again;
"below" as before, and the threshold for "above" is at most D further away: exp(D / s) = exp(e2 /
c).

Where all counts of y are at most those of x: pair r with r itself. "below" is no less likely for y,
and the threshold for "above" is at most D further away.

So the product of all factors is at most exp(e1 + e2). An answer is "above" if q + v >= T + r, ties
included; the proof does not depend on that choice.

Assumes: D bounds the change of every count in a query (`queries/shapes/measures.py`): m rows of a
person. Under add_remove a person's rows are added or removed, and no count of rows falls when rows
are added: the second case. Under replace_one some may leave as others come: the first. Several
streams at once, and queries between: the answers of a pure mechanism can be simulated from one draw
of randomised response, for any queries in between (Vadhan and Wang 2021). So an open stream is to
every currency one release of its epsilon.
Rounding: e1 + e2 is the charged integer; both scales round up to the next float.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from app.accounting.loss import Loss
from app.accounting.losses import pure_loss
from app.accounting.units import PICO, cost_units
from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.noise.additive import float_up
from app.mechanisms.noise.laplace import SCALE_MAX, SCALE_MIN, width
from app.mechanisms.release import RandomSource
from app.queries.shapes.measures import sensitivity_l1

KIND = "above_threshold"
THEOREM = (
    "Lyu, Su and Li 2017, Theorems 2 and 3 (sparse vector, on whole numbers); "
    "Vadhan and Wang 2021 (streams side by side)"
)


@dataclass(frozen=True, slots=True)
class AboveThreshold:
    """Public parameters of a stream: threshold, limits, and the scales of its noise."""

    threshold: int
    crossings: int
    asks_max: int
    sensitivity: int
    threshold_scale: float
    count_scale: float

    def draw_threshold(self, noise: RandomSource) -> int:
        """Draw the noise on the threshold, the only secret of a stream."""
        return noise.discrete_laplace(self.threshold_scale, 1)[0]

    def is_above(self, count: int, threshold_noise: int, noise: RandomSource) -> bool:
        drawn = noise.discrete_laplace(self.count_scale, 1)[0]
        return count + drawn >= self.threshold + threshold_noise

    def within(self, confidence: float) -> int:
        """Distance from the threshold beyond which all answers are right, with this probability.

        By the union bound, each of asks_max + 1 draws is within its width."""
        alpha = 1.0 - confidence
        return width(self.threshold_scale, alpha / 2) + width(
            self.count_scale, alpha / (2 * self.asks_max)
        )

    def describe(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "sensitivity": self.sensitivity,
            "threshold_scale": self.threshold_scale,
            "count_scale": self.count_scale,
        }


def prepare(
    card: Card, *, threshold: int, crossings: int, asks_max: int, epsilon: Decimal
) -> tuple[AboveThreshold, Loss]:
    """Prepare the stream that costs this epsilon."""
    units = cost_units(epsilon, PICO)
    one_way = card.neighbours == "add_remove"
    sensitivity = sensitivity_l1(card, low=1, high=1, grouped=False)
    for_threshold, for_counts = split(Fraction(units, PICO), crossings, one_way=one_way)
    threshold_scale = float_up(sensitivity / for_threshold)
    count_scale = float_up(steps_moved(crossings, one_way=one_way) * sensitivity / for_counts)
    if min(threshold_scale, count_scale) < SCALE_MIN:
        raise Invalid.field("/privacy/epsilon", "too large: there would be no noise at all")
    if max(threshold_scale, count_scale) > SCALE_MAX:
        raise Invalid.field("/privacy/epsilon", "too small: the noise would not fit 64 bits")
    scales = threshold_scale, count_scale
    return AboveThreshold(threshold, crossings, asks_max, sensitivity, *scales), pure_loss(units)


def steps_moved(crossings: int, *, one_way: bool) -> int:
    """Number of sensitivities by which all answers "above" move together."""
    return crossings if one_way else 2 * crossings


def split(epsilon: Fraction, crossings: int, *, one_way: bool) -> tuple[Fraction, Fraction]:
    """Split epsilon in the ratio 1 : n^(2/3), n = steps_moved.

    This minimises the variance of the noise in one comparison. Any split is private; the two
    parts are exact and add up to epsilon."""
    ratio = math.cbrt(steps_moved(crossings, one_way=one_way)) ** 2
    for_threshold = epsilon * Fraction(1.0 / (1.0 + ratio))
    return for_threshold, epsilon - for_threshold
