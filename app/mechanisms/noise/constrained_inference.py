"""Constrained inference: make noisy counts consistent with facts that hold for every table.

This costs no privacy loss, because it is post-processing of noisy counts.

Least squares (Hay, Rastogi, Miklau and Suciu 2010) finds the cells that best fit a hierarchy's
noisy counts, so that parents are the sums of their children. For predicates it moves noisy counts
to the nearest counts that some table has. Projection onto a convex set that contains the truth
never increases the Euclidean distance to it. The non-negative counts also form a convex set, and so
do the increasing totals. These sets are not linear subspaces, so values they change are biased. The
interval of such a value is that of the linear estimate, clamped to the set and widened to contain
the value.
"""

import numpy as np

from app.queries.shapes.workload import OverlappingCounts, tree
from app.queries.weighted_noise import Numbers


def linear_estimate(linear: OverlappingCounts, noisy: list[int]) -> Numbers:
    """Least-squares answers; integers where they are sums of measured counts."""
    measured = np.array(noisy, dtype=np.float64)
    if linear.projection is not None:
        return np.asarray(linear.projection @ measured)
    if linear.strategy == "identity":
        return measured
    return linear.wanted_of(_cells(linear, measured))


def adjusted(linear: OverlappingCounts, noisy: list[int], estimate: Numbers) -> Numbers:
    """Answers after the constraints that the query requests."""
    values = estimate
    if linear.nonnegative:
        values = _nonnegative(linear, np.array(noisy, dtype=np.float64))
    if linear.increasing:
        values = running(values)
    return values


def running(values: Numbers) -> Numbers:
    """Nearest non-decreasing totals, clamped between 0 and the last of them (isotonic
    regression)."""
    from scipy.optimize import isotonic_regression

    fitted = np.asarray(isotonic_regression(values).x)
    return np.asarray(np.clip(fitted, 0.0, max(float(fitted[-1]), 0.0)))


def _cells(linear: OverlappingCounts, measured: Numbers) -> Numbers:
    from scipy.linalg import cho_factor, cho_solve

    if not linear.runs:
        return measured
    basis = tree(linear.cells, linear.runs).astype(np.float64)
    return np.asarray(cho_solve(cho_factor(basis.T @ basis), basis.T @ measured))


def _nonnegative(linear: OverlappingCounts, measured: Numbers) -> Numbers:
    from scipy.optimize import nnls

    if linear.runs:
        basis = tree(linear.cells, linear.runs)
    elif linear.strategy == "identity" and linear.wanted is not None:
        basis = linear.wanted
    else:  # the cells themselves are measured, or nothing is known about them
        return linear.wanted_of(np.maximum(measured, 0.0))
    return linear.wanted_of(np.asarray(nnls(basis.astype(np.float64), measured)[0]))
