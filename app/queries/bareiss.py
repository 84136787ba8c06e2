"""Elimination in whole numbers, without fractions: Bareiss 1968, every quotient of which is exact.

Of a matrix that is positive semidefinite a pivot is 0 only if the matrix is singular, so that rows
need not be exchanged.
"""


def eliminate(rows: list[list[int]], pivots: int) -> bool:
    """In place; False if a pivot is 0, with which it ends. After k pivots the number in row i and
    column j, both of them k or more, is the determinant of the first k rows and columns with that
    row and that column."""
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
