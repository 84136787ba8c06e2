"""Answer as a weighted sum of independent noise draws: the quantities its interval depends on."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

Numbers = np.ndarray[Any, np.dtype[np.float64]]
ORDERS = (2, 4, 6, 8, 10)  # orders of the moments that bound a tail


@dataclass(frozen=True, slots=True)
class WeightedNoiseSum:
    """Sum of a_i Z_i.

    It holds the number of weights, their common size if they have one, and the sums of their
    powers."""

    count: int
    weight: float | None
    powers: tuple[float, ...]  # sum of |a_i|^order for each of ORDERS

    @property
    def squares(self) -> float:
        """Variance of the sum over that of one draw."""
        return self.powers[0]


@lru_cache(maxsize=1 << 14)
def equal_weights(count: int) -> WeightedNoiseSum:
    """Sum of `count` draws of weight 1."""
    return WeightedNoiseSum(count, 1.0, (float(count),) * len(ORDERS))


def combinations(weights: Numbers) -> tuple[WeightedNoiseSum, ...]:
    """One sum for each row of weights.

    Weights of nearly one size count as the largest of them: rounding in the last digits must not
    change the distribution."""
    sizes = np.abs(weights)
    sizes[sizes < 1e-12 * np.max(sizes, initial=0.0)] = 0.0
    sums = []
    for row in sizes:
        there = row[row > 0.0]
        if len(there) == 0:
            sums.append(WeightedNoiseSum(0, 0.0, (0.0,) * len(ORDERS)))
            continue
        largest = float(np.max(there))
        alike = bool(np.max(there) - np.min(there) <= 1e-12 * largest)
        powers = tuple(float(np.sum(there**order)) for order in ORDERS)
        sums.append(WeightedNoiseSum(len(there), largest if alike else None, powers))
    return tuple(sums)
