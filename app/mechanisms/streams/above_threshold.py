"""Sparse vector on whole numbers: tells which of many counts reach a threshold, until c have.

Once a number r of discrete Laplace noise of scale b = D / e1 is drawn, and for each count q a
number v of scale s; the answer is whether q + v >= T + r. After c answers "above" nothing more is
told, and neither r nor q + v ever is.

Theorem: Lyu, Su and Li 2017, Theorem 2 and, for counts that all move one way, Theorem 3, here for
whole numbers: the stream of all answers is (e1 + e2)-private for an analyst who picks each count
after the answers before, with s = 2 c D / e2, and with s = c D / e2 where neighbours move no two
counts in opposite directions.

Proof. Let neighbours x, y move each count by at most D, a whole number, and fix the counts asked
and the answers; their chance is the sum over r of P(r), times P(v < T + r - q) for each answer
"below" and P(v >= T + r - q) for each "above", of which there are at most c. Shifts are by whole
numbers, so that they stay among the values of the noise, and P(r) <= exp(d / b) P(r + d),
P(v >= k) <= exp(d / s) P(v >= k + d) for d >= 0.
  In general: pair r for x with r + D for y. P(r) grows by at most exp(D / b) = exp(e1). A count of
y is at most D above that of x, so "below" is no less likely for y at r + D than for x at r; and at
least D below, so the bar of "above" is at most 2 D further away: exp(2 D / s) = exp(e2 / c) each.
  Where all counts of y are at least those of x (and at most D above): pair r with r + D again;
"below" as before, and the bar of "above" is at most D further away: exp(D / s) = exp(e2 / c).
  Where all counts of y are at most those of x: pair r with r itself. "below" is no less likely for
y, and the bar of "above" is at most D further away.
So with all of them the chance is at most exp(e1 + e2) times as large.
The ends agree: an answer is "above" if q + v >= T + r, ties too, and nothing here turns on that.

Assumes: D bounds the change of every count that may be asked (`queries/shapes/measures.py`): m rows
of a person. Under add_remove a person's rows come or go, and no count of rows falls when rows come:
the second kind. Under replace_one some may leave as others come: the first. Several streams at
once, and questions between: the answers of a pure mechanism are made from one draw of randomised
response, whatever is asked meanwhile (Vadhan and Wang 2021), so an opened stream is to every
currency one release of its epsilon.
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
    """All public: what a stream compares with, for how long, and the scales of its noise."""

    threshold: int
    crossings: int
    asks_max: int
    sensitivity: int
    threshold_scale: float
    count_scale: float

    def draw_threshold(self, noise: RandomSource) -> int:
        """The one secret of a stream: what is added to its threshold."""
        return noise.discrete_laplace(self.threshold_scale, 1)[0]

    def is_above(self, count: int, threshold_noise: int, noise: RandomSource) -> bool:
        drawn = noise.discrete_laplace(self.count_scale, 1)[0]
        return count + drawn >= self.threshold + threshold_noise

    def within(self, confidence: float) -> int:
        """With this probability every answer is right of a count that is further than this from
        the threshold: each of asks_max + 1 draws is in its width, by the union bound."""
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
    """The stream that costs this epsilon."""
    units = cost_units(epsilon, PICO)
    one_way = card.neighbours == "add_remove"
    sensitivity = sensitivity_l1(card, low=1, high=1, grouped=False)
    for_threshold, for_counts = split(Fraction(units, PICO), crossings, one_way=one_way)
    threshold_scale = float_up(sensitivity / for_threshold)
    count_scale = float_up(steps_moved(crossings, one_way=one_way) * sensitivity / for_counts)
    if min(threshold_scale, count_scale) < SCALE_MIN:
        raise Invalid.field("/privacy/epsilon", "so large that there would be no noise at all")
    if max(threshold_scale, count_scale) > SCALE_MAX:
        raise Invalid.field("/privacy/epsilon", "so small that the noise would not fit 64 bits")
    scales = threshold_scale, count_scale
    return AboveThreshold(threshold, crossings, asks_max, sensitivity, *scales), pure_loss(units)


def steps_moved(crossings: int, *, one_way: bool) -> int:
    """By how many sensitivities all answers "above" move together."""
    return crossings if one_way else 2 * crossings


def split(epsilon: Fraction, crossings: int, *, one_way: bool) -> tuple[Fraction, Fraction]:
    """Of the whole as 1 : n^(2/3), n = steps_moved: then the variance of the noise in one
    comparison is least. Any split is private; the two are exact and sum up to epsilon."""
    ratio = math.cbrt(steps_moved(crossings, one_way=one_way)) ** 2
    for_threshold = epsilon * Fraction(1.0 / (1.0 + ratio))
    return for_threshold, epsilon - for_threshold
