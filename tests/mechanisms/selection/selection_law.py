"""The laws of choices, computed from scores and a rate; nothing here draws."""

import math
from collections.abc import Sequence
from itertools import count
from typing import Any

import mpmath

Law = list[float]


def exponential_law(scores: Sequence[int], rate: float) -> Law:
    best = max(scores)
    weights = [math.exp(-rate * (best - score)) for score in scores]
    return [weight / math.fsum(weights) for weight in weights]


def permute_and_flip_law(scores: Sequence[int], rate: float) -> Law:
    """P(i) = p_i times the integral over t from 0 to 1 of the product over others of 1 - t p_j."""
    best = max(scores)
    chances = [math.exp(-rate * (best - score)) for score in scores]
    return [
        chance * _integral(_product([(1.0, -other) for j, other in enumerate(chances) if j != i]))
        for i, chance in enumerate(chances)
    ]


def continuous_laplace_law(scores: Sequence[int], rate: float) -> Law:
    """Law of the largest after continuous Laplace noise, by quadrature."""

    def below(x: Any) -> Any:
        return mpmath.exp(x * rate) / 2 if x < 0 else 1 - mpmath.exp(-x * rate) / 2

    def density(i: int) -> Any:
        def at(x: Any) -> Any:
            others = (below(x - other) for j, other in enumerate(scores) if j != i)
            return rate / 2 * mpmath.exp(-rate * abs(x - scores[i])) * mpmath.fprod(others)

        return at

    points = sorted({*scores})
    ends = [-mpmath.inf, *points, mpmath.inf]
    return [float(mpmath.quad(density(i), ends)) for i in range(len(scores))]


def discrete_laplace_law(scores: Sequence[int], rate: float) -> Law:
    """Law of the largest after discrete Laplace noise.

    For each value it is the product over the others of P(below) + t P(equal). Among k other equal
    ones this one wins with probability 1 / (k + 1).
    """
    p = math.exp(-rate)

    def equal(z: int) -> float:
        return (1 - p) / (1 + p) * p ** abs(z)

    def below(z: int) -> float:  # P(Z < z)
        return p ** (1 - z) / (1 + p) if z <= 0 else 1 - p**z / (1 + p)

    reach = math.ceil(45 / rate)
    law = [0.0] * len(scores)
    for value in range(min(scores) - reach, max(scores) + reach + 1):
        for i, score in enumerate(scores):
            others = [
                (below(value - other), equal(value - other))
                for j, other in enumerate(scores)
                if j != i
            ]
            law[i] += equal(value - score) * _integral(_product(others))
    return law


def first_two_law(law_of: Any, scores: Sequence[int], rate: float) -> dict[tuple[int, int], float]:
    """One choice, and another among the rest."""
    first = law_of(scores, rate)
    joint: dict[tuple[int, int], float] = {}
    for i, chance in enumerate(first):
        rest = [place for place in range(len(scores)) if place != i]
        for place, then in zip(rest, law_of([scores[j] for j in rest], rate), strict=True):
            joint[i, place] = chance * then
    return joint


def chi_square(counts: Sequence[int], law: Sequence[float]) -> float:
    """P value of these counts of each outcome under the law."""
    size = sum(counts)
    assert min(law) * size >= 40, "expected counts are too small for the law of the statistic"
    statistic = math.fsum(
        (have - size * want) ** 2 / (size * want) for have, want in zip(counts, law, strict=True)
    )
    freedom = len(law) - 1
    return float(mpmath.gammainc(freedom / 2, statistic / 2, regularized=True))


def _product(factors: list[tuple[float, float]]) -> list[float]:
    """The coefficients of the product of a + b t."""
    coefficients = [1.0]
    for a, b in factors:
        grown = [0.0] * (len(coefficients) + 1)
        for power, coefficient in enumerate(coefficients):
            grown[power] += a * coefficient
            grown[power + 1] += b * coefficient
        coefficients = grown
    return coefficients


def _integral(coefficients: list[float]) -> float:
    return math.fsum(c / power for c, power in zip(coefficients, count(1)))
