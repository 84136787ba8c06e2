"""Constrained inference: noisy counts made to agree with what is true of every table. Free.

Least squares (Hay, Rastogi, Miklau and Suciu 2010): cells that fit a hierarchy's noisy counts best,
so that parents are the sums of their children; or noisy counts of predicates moved to the nearest
that some table has. Projection on a convex set that holds the truth never increases the distance to
it (mechanism sheet, M19). Non-negative cells and increasing totals are such sets too; they are not
linear, so what they change has a bias, and its interval is that of the linear estimate, clamped to
the set and stretched to hold the value.
"""

import numpy as np

from app.queries.shapes.workload import OverlappingCounts, tree
from app.queries.weighted_noise import Numbers


def linear_estimate(linear: OverlappingCounts, noisy: list[int]) -> Numbers:
    """The answers by least squares; whole numbers where they are sums of what was measured."""
    measured = np.array(noisy, dtype=np.float64)
    if linear.projection is not None:
        return np.asarray(linear.projection @ measured)
    if linear.strategy == "identity":
        return measured
    return linear.wanted_of(_cells(linear, measured))


def adjusted(linear: OverlappingCounts, noisy: list[int], estimate: Numbers) -> Numbers:
    """The answers with the constraints that were asked for."""
    values = estimate
    if linear.nonnegative:
        values = _nonnegative(linear, np.array(noisy, dtype=np.float64))
    if linear.increasing:
        values = running(values)
    return values


def running(values: Numbers) -> Numbers:
    """The nearest totals that never fall, from 0 to the last of them (isotonic regression)."""
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
    else:  # cells are measured themselves, or nothing is known of them
        return linear.wanted_of(np.maximum(measured, 0.0))
    return linear.wanted_of(np.asarray(nnls(basis.astype(np.float64), measured)[0]))
