"""Noisy integers, and the figures an analyst reads: value and interval.

An interval is computed from released numbers and the public noise distribution alone. It covers the
noise, not sampling error, clamping, or rows whose value is missing.
"""

from fractions import Fraction
from typing import Any, NamedTuple


class NoisySteps(NamedTuple):
    """A released integer number of steps, and bounds that hold the exact one with `confidence`."""

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
    """Convert steps to a JSON number: an integer where the grid is integral."""
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
