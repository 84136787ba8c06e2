"""Noise whose scale may depend on the data: what smooth sensitivity needs of it.

Theorem: Nissim, Raskhodnikova and Smith 2007: if S is beta-smooth, that is S(x) >= LS(x) and
S(x) <= exp(beta) S(y) for neighbours x and y, then f(x) + (S(x) / s) Z is private for a noise Z
that bears both a shift by s and a stretch by exp(beta). Each noise says which beta and s it bears
at which price (mechanism sheet, M11). S itself is never told, nor anything made of it.
"""

from fractions import Fraction
from typing import Any, Protocol

from app.accounting.loss import Loss
from app.mechanisms.release import Noise


class Admissible(Protocol):
    """A noise with its parameters fixed from public numbers alone."""

    @property
    def name(self) -> str: ...

    @property
    def beta(self) -> Fraction:
        """How smooth S must be; already less what rounding of S may cost."""
        ...

    @property
    def loss(self) -> Loss: ...

    @property
    def theorem(self) -> str: ...

    @property
    def half_width(self) -> float:
        """Of 95 % of the noise, in units of S: noises are compared by it."""
        ...

    def release(self, centre: Fraction, smooth: Fraction, exponent: int, noise: Noise) -> int:
        """centre + (smooth / s) Z, rounded to the nearest whole number of steps of 2^-exponent."""
        ...

    def describe(self) -> dict[str, Any]:
        """What the analyst is told of it: its name, parameters and beta; never S."""
        ...
