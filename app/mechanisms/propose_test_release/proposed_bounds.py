"""Proposed bounds on the statistic's grid: the analyst's bound, or public candidates."""

import math
from fractions import Fraction

from app.errors import Invalid
from app.mechanisms.propose_test_release.local_mean import MeanStatistic, TrimmedMeanStatistic
from app.mechanisms.propose_test_release.local_statistic import LocalStatistic, RankStatistic
from app.queries.shapes.ranks.shape import RankShape
from app.queries.shapes.single_mean import MeanShape

POINTER = "/mechanism/bound"
FINE_BITS = 20  # bits of a mean's bound in steps, so that rounding to steps is negligible
HALVINGS = 30  # halvings of a mean's width: a table of 2^30 rows has no smaller sensitivity


def proposed(
    shape: RankShape | MeanShape, bound: float | None
) -> tuple[LocalStatistic, tuple[int, ...]]:
    """The statistic, and its bounds in steps of its grid.

    There is one bound if the analyst proposes it. Otherwise they are public candidates in
    increasing order, and no change exceeds the last."""
    if isinstance(shape, RankShape) and shape.statistic != "mean_between":
        return RankStatistic(shape), _of_ranks(shape, bound)
    finer, bounds = _of_mean(shape, bound)
    if isinstance(shape, MeanShape):
        return MeanStatistic(shape, finer), bounds
    return TrimmedMeanStatistic(shape, finer), bounds


def _of_ranks(shape: RankShape, bound: float | None) -> tuple[int, ...]:
    width = max(1, shape.width)  # 0 if both column bounds fall on one step: then no value moves
    if bound is None:
        return (*(1 << power for power in range((width - 1).bit_length())), width)
    steps = math.floor(_steps(shape, bound))
    if steps < 1:
        step = float(1 / Fraction(2) ** shape.grid_exponent)
        raise Invalid.field(POINTER, f"must be at least {step:g}, one step of the column's grid")
    return (min(steps, width),)


def _of_mean(shape: RankShape | MeanShape, bound: float | None) -> tuple[int, tuple[int, ...]]:
    """Bits by which the mean's grid is finer than the column's, and the bounds."""
    width = max(1, shape.width)
    if bound is None:
        finer = max(0, HALVINGS + FINE_BITS // 2 - width.bit_length() + 1)
        return finer, tuple(width << finer >> j for j in range(HALVINGS, -1, -1))
    steps = _steps(shape, bound)
    finer = 0
    while steps * (1 << finer) < 1 << (FINE_BITS - 1):
        finer += 1
    return finer, (min(math.floor(steps * (1 << finer)), width << finer),)


def _steps(shape: RankShape | MeanShape, bound: float) -> Fraction:
    return Fraction(bound) * Fraction(2) ** shape.grid_exponent
