"""The exact law of a sparse vector stream, by adding up over the noise on its threshold.

Of an adaptive analyst: what is asked next may depend on every answer before. Nothing here draws.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Whole = np.ndarray[Any, np.dtype[np.int64]]
Real = np.ndarray[Any, np.dtype[np.float64]]
Answers = tuple[bool, ...]


def chances(scale: float, z: Whole) -> Real:
    """P(Z = z)"""
    p = math.exp(-1.0 / scale)
    return np.asarray((1.0 - p) / (1.0 + p) * p ** np.abs(z))


def at_least(scale: float, k: Whole) -> Real:
    """P(Z >= k)"""
    p = math.exp(-1.0 / scale)
    tail = p ** np.where(k >= 1, k, 1 - k) / (1.0 + p)
    return np.where(k >= 1, tail, 1.0 - tail)


@dataclass(frozen=True)
class Law:
    """A stream whose noise has these scales, on a threshold; it stops after so many crossings."""

    threshold: int
    crossings: int
    threshold_scale: float
    count_scale: float

    def of(self, ask: Callable[[Answers], int | None]) -> dict[Answers, float]:
        """The chance of each sequence of answers; `ask` is the next exact count after the answers
        so far, or None where the analyst stops."""
        reach = math.ceil(40 * self.threshold_scale) + 1
        noise = np.arange(-reach, reach + 1)
        bars = self.threshold + noise
        found: dict[Answers, float] = {}

        def follow(answers: Answers, weights: Real) -> None:
            count = ask(answers) if sum(answers) < self.crossings else None
            if count is None:
                found[answers] = math.fsum(weights)
                return
            follow((*answers, True), weights * at_least(self.count_scale, bars - count))
            below = at_least(self.count_scale, count - bars + 1)  # of the other side, by symmetry
            follow((*answers, False), weights * below)

        follow((), chances(self.threshold_scale, noise))
        return found


def loss(one: dict[Answers, float], other: dict[Answers, float]) -> float:
    """The largest ratio of the chances, in either direction, as a logarithm."""
    assert one.keys() == other.keys()
    return max(abs(math.log(one[answers] / other[answers])) for answers in one)
