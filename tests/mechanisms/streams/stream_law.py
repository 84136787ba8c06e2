"""The exact law of a sparse vector stream, by summing over the noise of its threshold.

The analyst is adaptive: the next ask may depend on every earlier answer. Nothing here draws.
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
    """A stream with these noise scales on a threshold, which stops after this many crossings."""

    threshold: int
    crossings: int
    threshold_scale: float
    count_scale: float

    def of(self, ask: Callable[[Answers], int | None]) -> dict[Answers, float]:
        """Probability of each sequence of answers.

        `ask` gives the next exact count after the answers so far, or None if the analyst stops.
        """
        reach = math.ceil(40 * self.threshold_scale) + 1
        noise = np.arange(-reach, reach + 1)
        bars = self.threshold + noise
        by_answers: dict[Answers, float] = {}

        def follow(answers: Answers, weights: Real) -> None:
            count = ask(answers) if sum(answers) < self.crossings else None
            if count is None:
                by_answers[answers] = math.fsum(weights)
                return
            follow((*answers, True), weights * at_least(self.count_scale, bars - count))
            below = at_least(self.count_scale, count - bars + 1)  # the other side, by symmetry
            follow((*answers, False), weights * below)

        follow((), chances(self.threshold_scale, noise))
        return by_answers


def loss(one: dict[Answers, float], other: dict[Answers, float]) -> float:
    """Largest ratio of the probabilities, in either direction, as a logarithm."""
    assert one.keys() == other.keys()
    return max(abs(math.log(one[answers] / other[answers])) for answers in one)
