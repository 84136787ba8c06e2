"""Smooth sensitivity of the number of triangles: noise scaled to how much the graph at hand bears.

With LS and n of `queries/graph_shape.py`, an edge changes LS by 1 at most, and LS <= n - 2. Let

    S(x) = max over k >= 0 of exp(-beta k) min(LS(x) + k, n - 2).

It is at least LS, and beta-smooth: for neighbours x, y and every k, LS(x) + k <= LS(y) + k + 1, so
the term of x at k is at most exp(beta) times that of y at k + 1. This is the smooth sensitivity of
Nissim, Raskhodnikova and Smith 2007 where the pair of most common neighbours has many that only one
of the two has, and in any graph at most 2 exp(beta) times it: their terms are no less than those
of LS + k / 2 for even k. Theirs asks what else each pair of nodes is joined to, which of a large
graph takes too long.

(L + k) exp(-beta k) rises to k = 1 / beta - L and falls from there, so that S is found at one of
the two whole numbers there, or where it stops at n - 2.
Rounding: as in `smooth_bound.py`: up, by less than SLACK of itself, and for beta - SLACK.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

from app.accounting.loss import Loss
from app.datasets import Card
from app.mechanisms.admissible import DEPENDS, Admissible
from app.mechanisms.asked import Asked, CannotServe
from app.mechanisms.release import Data, Noise
from app.mechanisms.scale_disclosure import Disclosure
from app.mechanisms.smooth_bound import SLACK
from app.mechanisms.smooth_sensitivity import KIND, scaled_noise
from app.queries import Query
from app.queries.figures import Figure
from app.queries.graph_shape import GraphShape
from app.queries.statistics import GraphCounts, Tally

_FINE = Context(prec=60, Emax=10**9, Emin=-(10**9))


def prepare(shape: GraphShape, asked: Asked) -> "SmoothTriangles":
    if asked.half_width is not None:
        raise CannotServe(f"no half width can be promised: {DEPENDS}")
    return SmoothTriangles(shape, *scaled_noise(asked, 1, alone=True))


def smooth_common(common: int, largest: int, beta: Fraction) -> Fraction:
    """S of a graph in which two nodes have so many neighbours in common, and could have `largest`;
    rounded up."""
    rate = beta - SLACK
    peak = math.floor(1 / rate) - common
    near = {min(max(k, 0), largest - common) for k in (peak, peak + 1)}
    with localcontext(_FINE):
        falls = {k: (-k * Decimal(rate.numerator) / Decimal(rate.denominator)).exp() for k in near}
    return max((common + k) * Fraction(fall) for k, fall in falls.items()) * (1 + SLACK / 2)


@dataclass(frozen=True, slots=True)
class SmoothTriangles:
    shape: GraphShape
    noise: Admissible
    disclosure: Disclosure | None

    @property
    def tally(self) -> Tally:
        return self.shape.tally

    @property
    def quick(self) -> bool:
        return False

    @property
    def loss(self) -> Loss:
        told = self.disclosure
        return self.noise.loss if told is None else self.noise.loss + told.loss

    @property
    def theorem(self) -> str:
        return self.noise.theorem

    @property
    def spread(self) -> tuple[float, ...]:
        """Not known: it is compared with nothing else."""
        return math.inf, self.noise.even

    @property
    def steps(self) -> int | None:
        return None

    @property
    def effort(self) -> int:
        return self.shape.effort

    @property
    def groups(self) -> int | None:
        return 1

    def read(self, data: Data) -> GraphCounts:
        return data.graph(self.shape.edges)

    def answer(
        self, exact: GraphCounts, noise: Noise, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        smooth = smooth_common(exact.common, self.shape.sensitivity_max, self.noise.beta)
        noisy = self.noise.release(Fraction(exact.triangles), smooth, 0, noise)
        interval = None
        if self.disclosure is not None:
            # One more, for what was rounded.
            half = self.disclosure.half_width(smooth, self.noise, confidence, noise)
            reach = math.ceil(min(half, 1e300)) + 1
            ends = map(self.shape.possible, (noisy, noisy - reach, noisy + reach))
            interval = Figure(*ends).interval(confidence)
        return {"value": self.shape.possible(noisy), "interval": interval}

    def describe(self) -> dict[str, Any]:
        told = {} if self.disclosure is None else self.disclosure.describe()
        largest = self.shape.sensitivity_max
        return {"kind": KIND, **self.noise.describe(), **told, "largest": largest}

    def record(self) -> dict[str, Any]:
        """For the ledger: from these any accountant can recompute the price."""
        told = {} if self.disclosure is None else self.disclosure.record()
        return {"mechanism": KIND, **self.noise.record(), "moves": 1, **told}

    def expected_error(self, confidence: float) -> dict[str, Any]:
        return self.noise.expected_error(confidence)
