"""Sums of clipped gradients in whole numbers: one row moves a sum by at most NORM, exactly.

A row's gradient is its residual times its terms. It is clipped to norm C, counted in whole steps of
C / NORM, each number cut towards zero, and left out (as zero) if its norm is not at most NORM.

Theorem: whatever the floats before did, the vector that a row adds is whole and of norm at most
NORM. Its squares are added up in floats: if every number is at most NORM in size they are whole
numbers below 2^53, where floats are exact, in any order; if one is larger, or not a number, the sum
is not at most NORM^2 and the row is left out. Sums of up to 2^32 such vectors stay below 2^53, and
what follows is added up in Python's whole numbers.
Assumes: that a row adds the same vector whatever the other rows are, or one row's absence could
move all the others by a step. So nothing here depends on where in a batch a row stands: only
additions, products, quotients, roots and comparisons of single numbers, which IEEE 754 rounds in
one way, each term after the other in one order, and values looked up in a table. A matrix product,
or numpy's exp, may round the same row differently at another place.
Rounding: a hair is taken off first, so that no row which is clipped is ever left out by rounding;
cutting costs a coordinate at most one step in 2^20 of C.
"""

from typing import Any

import numpy as np

from app.queries.shapes.learning import GradientShape, Input, Weights
from app.queries.tally import Matrix

NORM = 1 << 20
CHUNK = 1 << 13  # rows at a time: their terms fit a cache
COLUMNS_MIN = 1 << 10
_HAIR = 1.0 - 2.0**-40
_LEAST = 1e-300

Numbers = np.ndarray[Any, np.dtype[np.float64]]

# 1 / (1 + exp(-z)) at 256 points for each unit of z; lines between them are within 2e-7 of it.
_EDGE, _PER_UNIT = 40, 256
_POINTS = np.arange(-_EDGE * _PER_UNIT, _EDGE * _PER_UNIT + 2) / _PER_UNIT
_CHANCES: Numbers = 1.0 / (1.0 + np.exp(-_POINTS))


def clipped_sum(
    shape: GradientShape, weights: Weights, batch: Matrix, clipping_norm: float
) -> list[int]:
    """The sum over the rows of a batch, in steps of clipping_norm / NORM."""
    total = [0] * len(shape.inputs)
    for start in range(0, max(len(batch), 1), CHUNK):  # no rows take as long as a few
        vectors = clipped(shape, weights, batch[start : start + CHUNK], clipping_norm)
        total = [have + int(new) for have, new in zip(total, vectors.sum(axis=1), strict=True)]
    return total


def clipped(shape: GradientShape, weights: Weights, rows: Matrix, clipping_norm: float) -> Numbers:
    """Whole numbers: a row for each term, a column for each row.

    Columns of zeros are added up to a power of two. They change no sum, and one row more or less
    takes the same time, but for where their number passes a power of two."""
    count, width = len(rows), max(COLUMNS_MIN, 1 << (len(rows) - 1).bit_length())
    terms = np.zeros((len(shape.inputs), width))
    for place, term in enumerate(shape.inputs):
        _fill(terms[place, :count], term, rows)
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
    """The vectors whose norm is at most NORM; zero instead of the others."""
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
    """1 / (1 + exp(-z)), by the table."""
    place = (np.clip(predicted, -_EDGE, _EDGE) + _EDGE) * _PER_UNIT
    below = np.floor(place)
    index = below.astype(np.int64)
    left = _CHANCES[index]
    return left + (place - below) * (_CHANCES[index + 1] - left)
