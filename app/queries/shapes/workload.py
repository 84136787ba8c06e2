"""Many counts in one query: the disjoint cells, the sums of cells that receive noise, and the
answers.

x are the counts of the cells (a row is in one or in none), A x is measured with noise of one scale,
W x is requested. A and W have entries 0 and 1, and the answers are W times the least-squares
estimate of x: linear estimates are unbiased, and post-processing is free.

Sensitivity: an added or removed row changes A x by a column of A. A replaced row changes it by the
difference of two columns, or of one and zero. Let d be the largest number of entries in a column
(add_remove), or in which two columns or a column and zero differ (replace_one). Such a change has
L1 norm at most d and L2 norm at most sqrt(d), since its entries are -1, 0 and 1. Then m rows move A
x by at most m d in L1 and m sqrt(d) in L2, by the triangle inequality.

Strategies: `identity` measures the requested counts themselves, `cells` the cells. `hierarchical`
measures the cells of an ordered column and runs of increasing length, so that a range is a sum of
few.
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

# more columns are not compared pair by pair: the two fullest bound them
COLUMNS_COMPARED_MAX = 4096
LEAVES_MAX = 512  # limit on the cells of a hierarchy
LEAVES_MIN = 4  # with fewer cells a hierarchy is never the best
BRANCHINGS = (2, 4, 8, 16)


@dataclass(frozen=True, slots=True, eq=False)
class OverlappingCounts:
    """The measured counts of a tally, and the computation of answers from them.

    `runs` are the widths of a hierarchy's levels, the first one 1; without runs the tally's
    numbers are measured. `wanted` has a row for each answer and a column for each cell. It is
    None where `identity` has no known cells, or where the answers are running totals."""

    strategy: str
    labels: tuple[Any, ...]  # label of each answer
    cells: int
    answers: tuple[WeightedNoiseSum, ...]  # noise of each answer
    runs: tuple[int, ...] = ()
    nonnegative: bool = False
    increasing: bool = False  # true if the answers are running totals, up to their labels
    wanted: Bits | None = None
    projection: Numbers | None = None  # for `identity`, where predicates depend on each other

    def measurements(self, exact: Exact) -> list[int]:
        """The integers that receive noise."""
        numbers = [number for vector in exact for number in vector]
        if not self.runs:
            return numbers
        totals = [0]
        for number in numbers:
            totals.append(totals[-1] + number)
        return [totals[stop] - totals[start] for start, stop in spans(self.cells, self.runs)]

    @property
    def measured(self) -> int:
        """Number of measurements that receive noise."""
        return sum(1 for _ in spans(self.cells, self.runs)) if self.runs else self.cells

    def wanted_of(self, cells: Numbers) -> Numbers:
        """Answers W x from the cells x."""
        if self.increasing:
            return np.cumsum(cells)
        return cells if self.wanted is None else self.wanted @ cells

    @property
    def error(self) -> float:
        """Sum of the answers' variances, over that of one draw."""
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
    """Levels for a few branchings, with and without the top that holds all cells."""
    for branching in BRANCHINGS:
        widths = [1]
        while widths[-1] < cells:
            widths.append(widths[-1] * branching)
        if len(widths) > 2:
            yield tuple(widths[:-1])
        if len(widths) > 1:
            yield tuple(widths)


def estimator(requested: Bits, basis: Bits) -> Numbers:
    """W (A^T A)^-1 A^T, for an A with independent columns."""
    from scipy.linalg import cho_factor, cho_solve

    a = basis.astype(np.float64)
    factor = cho_factor(a.T @ a)
    return np.asarray(cho_solve(factor, requested.T.astype(np.float64)).T @ a.T)


def best_trees(
    requested: Bits, card: Card
) -> list[tuple[int, tuple[int, Numbers, tuple[int, ...]]]]:
    """The hierarchies with the least error, under Laplace and under Gaussian noise.

    The variance grows with d^2 under Laplace noise, and with d under Gaussian noise."""
    cells = requested.shape[1]
    candidates = []
    for runs in hierarchies(cells):
        basis = tree(cells, runs)
        candidates.append((changed(basis, card), _error(requested, basis), runs))
    best = [min(candidates, key=lambda tree_: tree_[0] ** power * tree_[1]) for power in (2, 1)]
    return [
        (d, (cells, estimator(requested, tree(cells, runs)), runs))
        for d, _, runs in dict.fromkeys(best)
    ]


def _error(requested: Bits, basis: Bits) -> float:
    """The trace of W (A^T A)^-1 W^T: the sum of the answers' variances, over that of one draw."""
    from scipy.linalg import cholesky, solve_triangular

    a = basis.astype(np.float64)
    lower = cholesky(a.T @ a, lower=True)
    return float(np.sum(solve_triangular(lower, requested.T.astype(np.float64), lower=True) ** 2))


def projector(requested: Bits) -> Numbers | None:
    """W W^+, which makes measured counts consistent; None if they are independent."""
    from scipy.linalg import eigh

    w = requested.astype(np.float64)
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
    """d: the number of measured counts that one row can change.

    `nothing` is true if a row may be in none of the cells, or absent."""
    sizes = basis.sum(axis=0, dtype=np.int64)
    largest = int(sizes.max(initial=0))
    if card.neighbours == "add_remove":
        return max(largest, 1)
    if basis.shape[1] > COLUMNS_COMPARED_MAX:
        two = int(np.sort(sizes)[-2:].sum())
        return max(min(two, int(basis.shape[0])), 1)
    whole = basis.astype(np.float32)  # counts up to 2^24 are exact
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
