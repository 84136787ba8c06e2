"""Smooth sensitivity of the number of triangles: noise scaled to the stability of the actual graph.

With LS and n of `queries/shapes/graphs.py`, an edge changes LS by at most 1, and LS <= n - 2. Let

    S(x) = max over k >= 0 of exp(-beta k) min(LS(x) + k, n - 2).

It is at least LS, and beta-smooth: for neighbours x, y and every k, LS(x) + k <= LS(y) + k + 1, so
the term of x at k is at most exp(beta) times that of y at k + 1. Consider the pair of nodes with
most common neighbours. If many nodes are neighbours of only one of the two, S equals the smooth
sensitivity of Nissim, Raskhodnikova and Smith 2007. In any graph it is at most 2 exp(beta) times
theirs: their terms are no less than those of LS + k / 2 for even k. Theirs also needs the other
neighbours of every pair of nodes, which takes too long for a large graph.

(L + k) exp(-beta k) rises to k = 1 / beta - L and falls from there. So the maximum is at one of the
two integers around it, or where the term stops at n - 2.

Rounding: as in `rank_bound.py`: up, by a relative amount less than SLACK, and for beta - SLACK.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

from app.data.card import Card
from app.mechanisms.privacy_target import CannotServe, PrivacyTarget
from app.mechanisms.release import DataReader, RandomSource
from app.mechanisms.smooth_sensitivity.calibrated_noise import DEPENDS
from app.mechanisms.smooth_sensitivity.rank_bound import SLACK
from app.mechanisms.smooth_sensitivity.rank_statistics import scaled_noise
from app.mechanisms.smooth_sensitivity.scaled_release import ScaledRelease
from app.mechanisms.work import Work
from app.queries import Query
from app.queries.estimates import Estimate
from app.queries.shapes.graphs import GraphShape
from app.queries.tally import GraphCounts, Tally

_FINE = Context(prec=60, Emax=10**9, Emin=-(10**9))


def prepare(shape: GraphShape, target: PrivacyTarget) -> "SmoothTriangles":
    if target.half_width is not None:
        raise CannotServe(f"no half width can be promised: {DEPENDS}")
    return SmoothTriangles(*scaled_noise(target, 1, alone=True), shape)


def smooth_common(common: int, largest: int, beta: Fraction) -> Fraction:
    """S, rounded up.

    Some two nodes have `common` neighbours in common, and could have `largest`."""
    rate = beta - SLACK
    peak = math.floor(1 / rate) - common
    near = {min(max(k, 0), largest - common) for k in (peak, peak + 1)}
    with localcontext(_FINE):
        falls = {k: (-k * Decimal(rate.numerator) / Decimal(rate.denominator)).exp() for k in near}
    return max((common + k) * Fraction(fall) for k, fall in falls.items()) * (1 + SLACK / 2)


@dataclass(frozen=True, slots=True)
class SmoothTriangles(ScaledRelease):
    shape: GraphShape

    @property
    def tally(self) -> Tally:
        return self.shape.tally

    @property
    def work(self) -> Work:
        return Work(seconds=self.shape.seconds, leaves=self.tally.leaves())

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
        smooth = smooth_common(exact.common, self.shape.sensitivity_max, self.noise.beta)
        noisy = self.noise.release(Fraction(exact.triangles), smooth, 0, noise)
        interval = None
        if self.disclosure is not None:
            # One more covers rounding.
            half = self.disclosure.half_width(smooth, self.noise, confidence, noise)
            reach = math.ceil(min(half, 1e300)) + 1
            ends = map(self.shape.possible, (noisy, noisy - reach, noisy + reach))
            interval = Estimate(*ends).interval(confidence)
        return {"value": self.shape.possible(noisy), "interval": interval}

    def describe(self) -> dict[str, Any]:
        return self.described(largest=self.shape.sensitivity_max)

    def ledger_entry(self) -> dict[str, Any]:
        return self.recorded(moves=1)
