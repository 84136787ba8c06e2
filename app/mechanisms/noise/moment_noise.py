"""Noise of a moment matrix: a sum of fixed matrices B_k, each times one draw.

The measured moments determine the matrix M of the sums of z_i z_j (`queries/shapes/moments.py`).
Each has its own draw Z_k, so the released matrix is M + E with E = sum of Z_k B_k. Let h and x be
fixed vectors. Then h^T E x is a sum of independent draws with weights h^T B_k x. The amount by
which E can stretch vectors in the norm of a matrix P = T^T T depends on the sum of B_k P B_k and on
the largest |T B_k T^T|.
"""

from typing import Any

import numpy as np

from app.queries.shapes.features import BucketTerm
from app.queries.shapes.moments import Moments
from app.queries.weighted_noise import Numbers

_NOTHING = -1


class MomentNoise:
    """Map from the measured numbers, in their order, to the moment matrix."""

    def __init__(self, moments: Moments) -> None:
        coordinates = moments.coordinates
        size = len(coordinates)
        entries = list(moments.entries())
        self.row = entries[0].steps  # steps that one row counts for
        self._count = len(entries)
        self._index: np.ndarray[Any, np.dtype[np.int64]] = np.full((size, size), _NOTHING)
        # value of one step in each entry of the matrix
        self._worth: Numbers = np.zeros((size, size))
        for k, entry in enumerate(entries):
            for cell in ((entry.i, entry.j), (entry.j, entry.i)):
                self._index[cell], self._worth[cell] = k, 1.0 / entry.steps
        # n, the number of rows, determines part of each sum of squares: all of it for a coordinate
        # that is 1 or -1, and half of n for a bucket position, which is measured as z^2 - 1/2.
        self._rows = np.array(
            [0.5 if isinstance(coordinate.term, BucketTerm) else 0.0 for coordinate in coordinates]
        ) + np.array([float(coordinate.alone) for coordinate in coordinates])
        # The square of a category's indicator is the indicator itself, its product with 1.
        self._values = [
            j for j, coordinate in enumerate(coordinates) if coordinate.category is not None
        ]
        self.worth = float(self._worth.max())

    def matrix(self, noisy: list[int]) -> Numbers:
        """The noisy matrix M + E."""
        released = np.array([float(number) for number in noisy])
        noisy_matrix = np.where(self._index == _NOTHING, 0.0, self._worth * released[self._index])
        noisy_matrix += np.diag(self._rows * noisy_matrix[0, 0])
        for j in self._values:
            noisy_matrix[j, j] = noisy_matrix[0, j]
        return np.asarray(noisy_matrix)

    def weights(self, left: Numbers, right: Numbers) -> Numbers:
        """h^T B_k x, for each k."""
        products = np.outer(left, right)
        there = self._index != _NOTHING
        weights = np.bincount(
            self._index[there], (self._worth * products)[there], minlength=self._count
        )
        weights[0] += self._worth[0, 0] * float(self._rows @ np.diag(products))
        for j in self._values:
            weights[self._index[0, j]] += self._worth[0, j] * products[j, j]
        return np.asarray(weights)

    def spread(self, p: Numbers) -> Numbers:
        """The sum of B_k P B_k."""
        squares = self._worth**2
        square, alone = np.diag(squares).copy(), np.diag(p)
        np.fill_diagonal(squares, 0.0)
        total = squares * p + np.diag(squares @ alone + square * alone)
        both = np.eye(len(p))[0] + self._rows
        total += square[0] * (np.outer(both, both) * p)
        total[0, 0] -= square[0] * p[0, 0]  # the square of n was counted above already
        for j in self._values:
            worth = squares[0, j]
            total[j, j] += worth * (p[j, j] + 2.0 * p[0, j])
            total[0, j] += worth * p[j, j]
            total[j, 0] += worth * p[j, j]
        return np.asarray(total)

    def largest(self, p: Numbers) -> float:
        """The largest |T B_k T^T|, or more."""
        alone = np.maximum(np.diag(p), 0.0)
        roots = np.sqrt(alone)
        products = self._worth * (np.abs(p) + np.outer(roots, roots))
        for j in self._values:
            products[0, j] += self._worth[0, j] * alone[j]
        rows = self._worth[0, 0] * (float(self._rows @ alone) + alone[0])
        return max(float(products.max()), float(rows))

    def largest_at(self, p: Numbers, right: Numbers) -> float:
        """The largest |T B_k x|, or more."""
        roots, sizes = np.sqrt(np.maximum(np.diag(p), 0.0)), np.abs(right)
        products = self._worth * (np.outer(roots, sizes) + np.outer(sizes, roots))
        for j in self._values:
            products[0, j] += self._worth[0, j] * roots[j] * sizes[j]
        both = np.eye(len(p))[0] + self._rows
        return max(float(products.max()), float(self._worth[0, 0] * ((both * roots) @ sizes)))
