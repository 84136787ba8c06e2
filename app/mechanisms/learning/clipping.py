"""Sums of clipped gradients as integers: one row changes a sum by at most NORM in L2, exactly.

A row's gradient is its residual times its terms. It is clipped to norm C and counted in whole steps
of C / NORM, each coordinate truncated towards zero. A row whose norm is still not at most NORM
counts as zero.

Theorem: the vector that a row adds is integral and of norm at most NORM, for any float errors in
earlier steps. Its squares are added in floats. If every coordinate is at most NORM in size, the
squares are integers below 2^53, where floats are exact in any order. If one coordinate is larger,
or NaN, the sum is not at most NORM^2 and the row counts as zero. Sums of up to 2^32 such vectors
stay below 2^53. Further sums use Python integers.
Assumes: a row adds the same vector for any other rows; otherwise removing one row could move all
others by a step. So no result here depends on the position of a row in a batch. The code uses only
additions, products, quotients, roots and comparisons of single numbers, which IEEE 754 rounds in
one way. Terms are added in one fixed order, and other values come from a lookup table. A matrix
product, or numpy's exp, may round the same row differently at another position.
Rounding: the factor _HAIR shrinks a clipped gradient first, so that rounding never turns a clipped
row into zero. Truncation costs a coordinate at most one step, 2^-20 of C.
"""

from typing import Any

import numpy as np

from app.queries.shapes.learning import Input, LearningShape, WeightVector
from app.queries.tally import Matrix

NORM = 1 << 20
CHUNK = 1 << 13  # rows per chunk, so that their terms fit a CPU cache
COLUMNS_MIN = 1 << 10
_HAIR = 1.0 - 2.0**-40
_LEAST = 1e-300

Numbers = np.ndarray[Any, np.dtype[np.float64]]

# 1 / (1 + exp(-z)) at 256 points per unit of z; linear interpolation is within 2e-7 of it.
_EDGE, _PER_UNIT = 40, 256
_POINTS = np.arange(-_EDGE * _PER_UNIT, _EDGE * _PER_UNIT + 2) / _PER_UNIT
_CHANCES: Numbers = 1.0 / (1.0 + np.exp(-_POINTS))


def clipped_sum(
    shape: LearningShape, weights: WeightVector, batch: Matrix, clipping_norm: float
) -> list[int]:
    """Sum of the clipped gradients of a batch, in steps of clipping_norm / NORM."""
    total = [0] * len(shape.inputs)
    for start in range(0, max(len(batch), 1), CHUNK):  # an empty batch takes as long as a small one
        vectors = clipped(shape, weights, batch[start : start + CHUNK], clipping_norm)
        total = [have + int(new) for have, new in zip(total, vectors.sum(axis=1), strict=True)]
    return total


def clipped(
    shape: LearningShape, weights: WeightVector, rows: Matrix, clipping_norm: float
) -> Numbers:
    """Clipped gradients as integers: one matrix row per term, one column per row of data.

    Zero columns pad the matrix to a power of two. They change no sum. One row more or less takes
    the same time, unless the count passes a power of two.
    """
    count, width = len(rows), max(COLUMNS_MIN, 1 << (len(rows) - 1).bit_length())
    terms = np.zeros((len(shape.inputs), width))
    for index, term in enumerate(shape.inputs):
        _fill(terms[index, :count], term, rows)
    predicted, squares = np.zeros(width), np.zeros(width)
    for weight, term_values in zip(weights.tolist(), terms, strict=True):
        predicted += weight * term_values
        squares += term_values * term_values
    outcome = np.zeros(width)
    _fill(outcome[:count], shape.outcome, rows)
    if shape.model == "logistic":
        predicted = _chance(predicted)
    residual = predicted - outcome
    size = np.maximum(np.abs(residual) * np.sqrt(squares), _LEAST)
    residual *= np.minimum(NORM / clipping_norm, NORM / size) * _HAIR
    return bounded(np.trunc(terms * residual))[:, :count]


def bounded(vectors: Numbers) -> Numbers:
    """Keep vectors whose norm is at most NORM; replace the others with zero."""
    inside = (vectors * vectors).sum(axis=0) <= float(NORM * NORM)
    return np.where(inside, vectors, 0.0)


def _fill(values: Numbers, term: Input, rows: Matrix) -> None:
    if term.column is None:
        values[:] = term.shift
    elif term.code is not None:
        values[:] = rows[:, term.column] == term.code
    else:
        np.multiply(rows[:, term.column], term.slope, out=values)
        values += term.shift


def _chance(predicted: Numbers) -> Numbers:
    """1 / (1 + exp(-z)), interpolated from the table."""
    position = (np.clip(predicted, -_EDGE, _EDGE) + _EDGE) * _PER_UNIT
    below = np.floor(position)
    cell = below.astype(np.int64)
    left = _CHANCES[cell]
    return left + (position - below) * (_CHANCES[cell + 1] - left)
