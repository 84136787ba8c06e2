"""Noise calibrated for smooth sensitivity: its scale may depend on the data.

Theorem: Nissim, Raskhodnikova and Smith 2007. Let S be beta-smooth: S(x) >= LS(x), and S(x) <=
exp(beta) S(y) for neighbours x and y. Then f(x) + (S(x) / s) Z is private for a noise Z that
tolerates both a shift by s and a stretch by exp(beta). To see this, subtract f(x) from the outputs
for x and for y, and divide both by S(x) / s. For x this is Z. For y it is theta + exp(lambda) Z
with |lambda| <= beta and |theta| <= s min(1, exp(lambda)). Each noise states which beta and s it
tolerates at which price. S and values derived from it are never released.

Parameters that the analyst leaves open, beta included, are chosen from public numbers alone. The
choice minimises the noise for evenly spread values, at a distance g from each other. There S is the
largest over k of (k + 1) g exp(-beta k), which is `even_spread` times g.

Finite precision: the answer is f(x) + (S / s) Z rounded to a public grid, exactly as if Z were a
real number (`partial_sample.py`). This is post-processing of the release in the theorem. s is
rounded down, and S is rounded up without losing its smoothness (`rank_bound.py`). The proof assumes
that Python's decimal exp, ln and sqrt are correctly rounded, as documented.
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
from app.mechanisms.expected_error import ExpectedError, unknown
from app.mechanisms.release import RandomSource
from app.mechanisms.sampling.partial_sample import Ends, PartialSample, rounded
from app.mechanisms.smooth_sensitivity.rank_bound import BETA_MAX, BETA_MIN

POINTER = "/mechanism"
EPSILON_MAX = 100  # above there would be almost no noise
Numbers = np.ndarray[Any, np.dtype[np.float64]]
FINE = Context(prec=80, Emax=10**9, Emin=-(10**9))
DEPENDS = (
    "the noise is scaled to the smooth sensitivity, which depends on the rows and is not released"
)
# candidates for beta, as fractions of its limit
_GRID = 2.0 ** (-np.arange(1, 89, dtype=np.float64) / 8.0)
BELOW = 1 - Fraction(1, 10**20)  # a limit computed with 80 digits has a far smaller relative error


class Drawn(NamedTuple):
    """A noise draw: its sign, and its size as a function of numbers that are drawn bit by bit."""

    negative: bool
    size: Callable[[int], Ends]
    numbers: tuple[PartialSample, ...]


@dataclass(frozen=True, slots=True)
class NoiseBudget:
    """Available loss, in one of three currencies; None where a currency is not available."""

    pure: int | None  # units of epsilon
    promise: tuple[int, int] | None  # units of epsilon and of delta
    rho: Fraction | None
    moves: int = 1  # moves per person, for even_spread


@dataclass(frozen=True, slots=True)
class CalibratedNoise:
    """A noise distribution with parameters fixed from public numbers alone."""

    name: str
    parameters: dict[str, Any]
    beta: Fraction  # required smoothness of S
    divisor: Fraction  # s: the noise is S / s times Z
    loss: Loss
    theorem: str
    draw: Callable[[RandomSource], Drawn]
    # of |Z|, for display: |Z| exceeds it with probability 1 - confidence
    quantile: Callable[[float], float]
    even: float  # bound that holds 95 % of the noise, for evenly spread values

    def half_width(self, confidence: float) -> float:
        """Half width in units of S."""
        return self.quantile(confidence) / float(self.divisor)

    def release(
        self, centre: Fraction, smooth: Fraction, exponent: int, noise: RandomSource
    ) -> int:
        """Release centre + (smooth / s) Z, rounded to the nearest integer number of steps of
        2^-exponent."""
        drawn = self.draw(noise)
        scale = smooth / self.divisor
        return rounded(centre, scale, exponent, drawn.negative, drawn.size, drawn.numbers)

    def describe(self) -> dict[str, Any]:
        """Description for the analyst; never S."""
        return {
            "noise": self.name,
            **self.parameters,
            "beta": float(self.beta),
            "scale_of_smooth_sensitivity": float(1 / self.divisor),
        }

    def ledger_entry(self) -> dict[str, Any]:
        """Description for the ledger, with exact fractions."""
        return {
            "noise": self.name,
            **{name: str(value) for name, value in self.parameters.items()},
            "beta": str(self.beta),
            "divisor": str(self.divisor),
        }

    def expected_error(self, confidence: float) -> ExpectedError:
        return unknown(DEPENDS, smooth_sensitivities=self.half_width(confidence))


def even_spread(beta: float, moves: int = 1) -> float:
    """S for values at a distance of 1 from each other, and persons of `moves` moves."""
    rate = beta / moves
    one = math.exp(rate - 1.0) / rate if rate < 1.0 else 1.0
    if moves == 1:
        return one
    return one * math.expm1(beta) / math.expm1(rate)


def least(beta: Numbers, width: Numbers, moves: int) -> tuple[Fraction, int]:
    """The beta with the least noise for evenly spread values, and its row.

    Betas and half widths (in units of S) have one row for each choice of the parameters. An
    infinite or NaN width marks a beta that is too large. Raises ArithmeticError if all are."""
    noise = np.nan_to_num(width * _even_spreads(beta, moves), nan=np.inf)
    index = int(np.argmin(noise))
    if not math.isfinite(noise.flat[index]):
        raise ArithmeticError("every beta is too large for this loss")
    return Fraction(float(beta.flat[index])), index // beta.shape[1]


def _even_spreads(beta: Numbers, moves: int) -> Numbers:
    """`even_spread` for many betas."""
    rate = beta / moves
    one = np.where(rate < 1.0, np.exp(np.minimum(rate, 1.0) - 1.0) / rate, 1.0)
    return one if moves == 1 else one * np.expm1(beta) / np.expm1(rate)


def betas(requested: float | None, limits: Numbers) -> Numbers:
    """Candidate betas, a row below each limit: the requested beta, or a grid."""
    if requested is not None:
        return np.full((len(limits), 1), requested)
    return np.minimum(limits, BETA_MAX)[:, None] * _GRID


def check_beta(beta: float | None, limit: float) -> None:
    if beta is not None and not (BETA_MIN <= beta < limit and beta <= BETA_MAX):
        most = min(limit, BETA_MAX)
        rule = f"must be at least {BETA_MIN:g} and less than {most:.6g} at this loss"
        raise Invalid.field(f"{POINTER}/beta", rule)


def fine(value: Fraction | int) -> Decimal:
    """The fraction to 80 digits."""
    with localcontext(FINE):
        return Decimal(value.numerator) / Decimal(value.denominator)


def floor(value: Decimal) -> Fraction:
    """A fraction surely below a value computed to 80 digits."""
    return Fraction(value) * BELOW
