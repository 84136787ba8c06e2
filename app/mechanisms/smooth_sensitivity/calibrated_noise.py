"""Noise whose scale may depend on the data: what smooth sensitivity needs of it.

Theorem: Nissim, Raskhodnikova and Smith 2007: if S is beta-smooth, that is S(x) >= LS(x) and
S(x) <= exp(beta) S(y) for neighbours x and y, then f(x) + (S(x) / s) Z is private for a noise Z
that bears both a shift by s and a stretch by exp(beta): in units of S(x) / s neighbours are Z and
theta + exp(lambda) Z with |lambda| <= beta and |theta| <= s min(1, exp(lambda)). Each noise says
which beta and s it bears at which price. S itself is never told, nor anything made of it.

What is free of beta and parameters is chosen by public numbers alone: so that the noise is least
where values are spread evenly, at a distance g of each other. There S is the largest over k of
(k + 1) g exp(-beta k), which is `even_spread` times g.

Finite precision: the answer is f(x) + (S / s) Z rounded to a public grid, exactly as if Z were a
real number (`partial_sample.py`): post-processing of the release that the theorem is about. s is
rounded down, and S is rounded up without losing its smoothness (`rank_bound.py`). Proven up to
this, that Python's decimal exp, ln and sqrt are correctly rounded, as it promises.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from app.accounting.loss import Loss
from app.errors import Invalid
from app.mechanisms.release import RandomSource
from app.mechanisms.sampling.partial_sample import Ends, PartialSample, rounded
from app.mechanisms.smooth_sensitivity.rank_bound import BETA_MAX, BETA_MIN

POINTER = "/mechanism"
EPSILON_MAX = 100  # above there would be hardly any noise
Numbers = np.ndarray[Any, np.dtype[np.float64]]
FINE = Context(prec=80, Emax=10**9, Emin=-(10**9))
DEPENDS = "the noise is scaled to the smooth sensitivity, which depends on the rows and is not told"
_GRID = 2.0 ** (-np.arange(1, 89, dtype=np.float64) / 8.0)  # of beta, below its limit
BELOW = 1 - Fraction(1, 10**20)  # a limit computed with 80 digits is off by far less of itself


class Drawn(NamedTuple):
    """A noise: its sign, and its size as a function of numbers that are drawn bit by bit."""

    negative: bool
    size: Callable[[int], Ends]
    numbers: tuple[PartialSample, ...]


@dataclass(frozen=True, slots=True)
class NoiseBudget:
    """What may be spent, in one of three ways; those that are not open are None."""

    pure: int | None  # units of epsilon
    promise: tuple[int, int] | None  # units of epsilon and of delta
    rho: Fraction | None
    moves: int = 1  # of one person, which is what even_spread depends on


@dataclass(frozen=True, slots=True)
class CalibratedNoise:
    """A noise with its parameters fixed from public numbers alone."""

    name: str
    parameters: dict[str, Any]
    beta: Fraction  # how smooth S must be
    divisor: Fraction  # s
    loss: Loss
    theorem: str
    draw: Callable[[RandomSource], Drawn]
    quantile: Callable[[float], float]  # of |Z|, for people: |Z| is above it with 1 - confidence
    even: float  # the noise that 95 % is within, where values are spread evenly

    def half_width(self, confidence: float) -> float:
        """In units of S."""
        return self.quantile(confidence) / float(self.divisor)

    def release(
        self, centre: Fraction, smooth: Fraction, exponent: int, noise: RandomSource
    ) -> int:
        """centre + (smooth / s) Z, rounded to the nearest whole number of steps of 2^-exponent."""
        drawn = self.draw(noise)
        scale = smooth / self.divisor
        return rounded(centre, scale, exponent, drawn.negative, drawn.size, drawn.numbers)

    def describe(self) -> dict[str, Any]:
        """What the analyst is told of it; never S."""
        return {
            "noise": self.name,
            **self.parameters,
            "beta": float(self.beta),
            "scale_of_smooth_sensitivity": float(1 / self.divisor),
        }

    def ledger_entry(self) -> dict[str, Any]:
        """For the ledger, exactly."""
        return {
            "noise": self.name,
            **{name: str(value) for name, value in self.parameters.items()},
            "beta": str(self.beta),
            "divisor": str(self.divisor),
        }

    def expected_error(self, confidence: float) -> dict[str, Any]:
        return {
            "half_width": None,
            "confidence": confidence,
            "covers": "noise",
            "smooth_sensitivities": self.half_width(confidence),
            "reason": f"it depends on the data: {DEPENDS}",
        }


def even_spread(beta: float, moves: int = 1) -> float:
    """S for values at a distance of 1 from each other, and persons of so many moves."""
    rate = beta / moves
    one = math.exp(rate - 1.0) / rate if rate < 1.0 else 1.0
    if moves == 1:
        return one
    return one * math.expm1(beta) / math.expm1(rate)


def least(beta: Numbers, width: Numbers, moves: int) -> tuple[Fraction, int]:
    """Of betas and half widths in units of S, a row of each for each choice of the parameters: the
    beta with the least noise where values are spread evenly, and its row. A width that is infinite
    or not a number is not borne. Raises ArithmeticError where none is."""
    noise = np.nan_to_num(width * _even_spreads(beta, moves), nan=np.inf)
    place = int(np.argmin(noise))
    if not math.isfinite(noise.flat[place]):
        raise ArithmeticError("no beta is borne at this price")
    return Fraction(float(beta.flat[place])), place // beta.shape[1]


def _even_spreads(beta: Numbers, moves: int) -> Numbers:
    """`even_spread` of many."""
    rate = beta / moves
    one = np.where(rate < 1.0, np.exp(np.minimum(rate, 1.0) - 1.0) / rate, 1.0)
    return one if moves == 1 else one * np.expm1(beta) / np.expm1(rate)


def betas(wished: float | None, limits: Numbers) -> Numbers:
    """Those to look at, a row below each limit: the one that was asked for, or a grid."""
    if wished is not None:
        return np.full((len(limits), 1), wished)
    return np.minimum(limits, BETA_MAX)[:, None] * _GRID


def must_bear(beta: float | None, limit: float) -> None:
    if beta is not None and not (BETA_MIN <= beta < limit and beta <= BETA_MAX):
        most = min(limit, BETA_MAX)
        rule = f"at least {BETA_MIN:g} and less than {most:.6g} at this loss"
        raise Invalid.field(f"{POINTER}/beta", rule)


def fine(value: Fraction | int) -> Decimal:
    """The fraction to 80 digits."""
    with localcontext(FINE):
        return Decimal(value.numerator) / Decimal(value.denominator)


def floor(value: Decimal) -> Fraction:
    """Below what was computed to 80 digits."""
    return Fraction(value) * BELOW
