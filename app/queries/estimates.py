"""Noisy whole numbers, and the figures an analyst reads: value and interval.

An interval here is made of released numbers and the public law of the noise alone; it covers the
noise, not sampling error, clamping, or rows whose value is missing.
"""

from fractions import Fraction
from typing import Any, NamedTuple


class NoisySteps(NamedTuple):
    """A released whole number of steps, and bounds that hold the exact one with `confidence`."""

    steps: int
    low: int
    high: int


class Estimate(NamedTuple):
    """One number of an answer with the interval of its noise."""

    value: int | float
    low: int | float
    high: int | float

    def interval(self, confidence: float) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "confidence": confidence, "covers": "noise"}


def number(steps: int, grid_exponent: int) -> int | float:
    """So many steps as a JSON number: whole where the grid is whole."""
    if grid_exponent == 0:
        return steps
    return float(Fraction(steps) / Fraction(2) ** grid_exponent)


def figure(noisy: NoisySteps, grid_exponent: int) -> Estimate:
    if grid_exponent == 0:
        return Estimate(*noisy)
    return Estimate(
        value=number(noisy.steps, grid_exponent),
        low=number(noisy.low, grid_exponent),
        high=number(noisy.high, grid_exponent),
    )
