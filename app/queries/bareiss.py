"""Gaussian elimination in integers, without fractions (Bareiss 1968): every quotient is exact.

A positive semidefinite matrix has a zero pivot only if it is singular, so rows need no exchange.
"""


def eliminate(rows: list[list[int]], pivots: int) -> bool:
    """Eliminate in place; stop and return False if a pivot is 0.

    After k pivots consider the entry in row i and column j, both at least k. It is the
    determinant of the first k rows and columns with that row and column added."""
    before = 1
    for k in range(pivots):
        pivot = rows[k][k]
        if pivot == 0:
            return False
        for row in rows[k + 1 :]:
            first = row[k]
            for j in range(k + 1, len(row)):
                row[j] = (row[j] * pivot - first * rows[k][j]) // before
        before = pivot
    return True
