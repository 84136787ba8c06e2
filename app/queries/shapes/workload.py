"""Many counts in one question: which disjoint cells there are, which sums of them get noise, and
how the answers are made of these.

x are the counts of the cells (a row is in one or in none), A x is measured with noise of one scale,
W x is wanted. A and W have entries 0 and 1, and the answers are W times the least-squares estimate
of x: what is linear is unbiased, and post-processing is free.

Sensitivity: one row changes A x by a column of A when it appears or vanishes, and by the difference
of two columns, or of one and nothing, when it is replaced. So with d = the largest number of
entries in a column (add_remove), or in which two columns or a column and nothing differ
(replace_one), m rows move A x by at most m d in L1 and m sqrt(d) in L2 (mechanism sheet, M3).

Strategies: `identity` measures the wanted counts themselves, `cells` the cells, `hierarchical` the
cells of an ordered column and ever longer runs of them, so that a range is a sum of few.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from app.data.card import Card
from app.queries.shapes.measures import Measure
from app.queries.shapes.overlap import Bits
from app.queries.tally import Exact
from app.queries.weighted_noise import Numbers, WeightedNoiseSum, combinations

COLUMNS_COMPARED_MAX = 4096  # more are not compared pair by pair: the two fullest bound them
LEAVES_MAX = 512  # of a hierarchy
LEAVES_MIN = 4  # of fewer a hierarchy is never the best
BRANCHINGS = (2, 4, 8, 16)


@dataclass(frozen=True, slots=True, eq=False)
class OverlappingCounts:
    """What is measured of a tally, and how answers are made of it.

    `runs` are the widths of a hierarchy's levels, the first one 1; with none the tally's numbers
    are what is measured. `wanted` has a row for each answer and a column for each cell; None where
    `identity` knows of no cells, or where the answers are running totals.
    """

    strategy: str
    labels: tuple[Any, ...]  # what each answer is of
    cells: int
    answers: tuple[WeightedNoiseSum, ...]  # of the noise of each answer
    runs: tuple[int, ...] = ()
    nonnegative: bool = False
    increasing: bool = False  # the answers are running totals, up to their labels
    wanted: Bits | None = None
    projection: Numbers | None = None  # of `identity`, where predicates depend on each other

    def measurements(self, exact: Exact) -> list[int]:
        """The whole numbers that get noise."""
        numbers = [number for vector in exact for number in vector]
        if not self.runs:
            return numbers
        totals = [0]
        for number in numbers:
            totals.append(totals[-1] + number)
        return [totals[stop] - totals[start] for start, stop in spans(self.cells, self.runs)]

    @property
    def measured(self) -> int:
        """How many numbers get noise."""
        return sum(1 for _ in spans(self.cells, self.runs)) if self.runs else self.cells

    def wanted_of(self, cells: Numbers) -> Numbers:
        """W x"""
        if self.increasing:
            return np.cumsum(cells)
        return cells if self.wanted is None else self.wanted @ cells

    @property
    def error(self) -> float:
        """The answers' variances together, over that of one draw."""
        return sum(answer.squares for answer in self.answers)


def spans(cells: int, runs: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """The runs of cells that a hierarchy measures, level by level."""
    for width in runs:
        for start in range(0, cells, width):
            yield start, min(start + width, cells)


def tree(cells: int, runs: tuple[int, ...]) -> Bits:
    listed = list(spans(cells, runs))
    matrix = np.zeros((len(listed), cells), dtype=bool)
    for row, (start, stop) in zip(matrix, listed, strict=True):
        row[start:stop] = True
    return matrix


def hierarchies(cells: int) -> Iterator[tuple[int, ...]]:
    """Levels by a few branchings, with and without the top that holds all cells."""
    for branching in BRANCHINGS:
        widths = [1]
        while widths[-1] < cells:
            widths.append(widths[-1] * branching)
        if len(widths) > 2:
            yield tuple(widths[:-1])
        if len(widths) > 1:
            yield tuple(widths)


def estimator(wanted: Bits, basis: Bits) -> Numbers:
    """W (A^T A)^-1 A^T, for an A whose columns do not depend on each other."""
    from scipy.linalg import cho_factor, cho_solve

    a = basis.astype(np.float64)
    factor = cho_factor(a.T @ a)
    return np.asarray(cho_solve(factor, wanted.T.astype(np.float64)).T @ a.T)


def best_trees(wanted: Bits, card: Card) -> list[tuple[int, tuple[int, Numbers, tuple[int, ...]]]]:
    """The hierarchies with the least error: under Laplace noise, whose variance goes with d^2, and
    under Gaussian noise, whose variance goes with d."""
    cells = wanted.shape[1]
    found = []
    for runs in hierarchies(cells):
        basis = tree(cells, runs)
        found.append((changed(basis, card), _error(wanted, basis), runs))
    best = [min(found, key=lambda each: each[0] ** power * each[1]) for power in (2, 1)]
    return [
        (d, (cells, estimator(wanted, tree(cells, runs)), runs))
        for d, _, runs in dict.fromkeys(best)
    ]


def _error(wanted: Bits, basis: Bits) -> float:
    """The trace of W (A^T A)^-1 W^T: the answers' variances together, over that of one draw."""
    from scipy.linalg import cholesky, solve_triangular

    a = basis.astype(np.float64)
    lower = cholesky(a.T @ a, lower=True)
    return float(np.sum(solve_triangular(lower, wanted.T.astype(np.float64), lower=True) ** 2))


def projector(wanted: Bits) -> Numbers | None:
    """W W^+: measured counts made consistent with each other; None if they are independent."""
    from scipy.linalg import eigh

    w = wanted.astype(np.float64)
    values, vectors = eigh(w @ w.T)
    kept = values > 1e-9 * max(float(values[-1]), 1.0)
    if kept.all():
        return None
    projection: Numbers = vectors[:, kept] @ vectors[:, kept].T
    projection[np.abs(projection) < 1e-12] = 0.0
    return projection


def disjoint(cells: int, card: Card) -> int:
    """d of cells that are measured themselves: a replaced row leaves one and enters another."""
    return 2 if card.neighbours == "replace_one" and cells > 1 else 1


def changed(basis: Bits, card: Card, *, nothing: bool = True) -> int:
    """d: in how many of the measured counts one row can be seen to change; `nothing` if a row may
    be in none of the cells, or not be there."""
    sizes = basis.sum(axis=0, dtype=np.int64)
    largest = int(sizes.max(initial=0))
    if card.neighbours == "add_remove":
        return max(largest, 1)
    if basis.shape[1] > COLUMNS_COMPARED_MAX:
        two = int(np.sort(sizes)[-2:].sum())
        return max(min(two, int(basis.shape[0])), 1)
    whole = basis.astype(np.float32)  # counts to 2^24 are exact
    apart = sizes[:, None] + sizes[None, :] - 2 * (whole.T @ whole).astype(np.int64)
    return max(int(apart.max(initial=0)), largest if nothing else 0, 1)


def linear_measure(card: Card, d: int, *, alone: bool) -> Measure:
    """All measured counts as one measure; `alone` if there is just one."""
    m = card.person.rows_max
    in_one = alone or m * d == 1
    return Measure(
        "counts",
        ((1, 0),),
        m * d,
        Fraction(1),
        0,
        sensitivity_l2_squared=m**2 * d,
        single_cell=in_one,
    )


def running_totals(cells: int) -> Bits:
    return np.tri(cells, dtype=bool)


def combined(weights: Numbers | Bits) -> tuple[WeightedNoiseSum, ...]:
    return combinations(np.array(weights, dtype=np.float64))
