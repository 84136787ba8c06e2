"""Moments of a regression: the sums that are measured, and their sensitivity to one person.

A row is a vector z = (1, terms, outcome), every coordinate within [-1, 1]. A number is its bucket
between its bounds, and a column of two values is -1 or 1 (so that its square is known). A column of
more values is 0s and at most one 1. The measurement is the sum over the rows of z z^T. As this
matrix is symmetric, each number is measured once, in integer steps of 2^-k near z_i z_j:

- the number of rows n;
- the products of two coordinates, except two values of one category, which never occur together;
- the squares of buckets, as z_i^2 - 1/2.

The square of an indicator is itself, and that of 1 or -1 is 1. All receive noise of one scale.

Sensitivity to one row, in units of 2^k steps. Let G be the number of categories of more than two
values, N the number of coordinates outside them, and M the buckets among these. So a row has at
most N + G coordinates other than 0; let D = N + G.

A row that is added or removed moves D (D-1) / 2 products by 1, M squares by 1/2, and n by 1. The L1
norm of the move is D (D-1) / 2 + M/2 + 1, and the sum of its squares is D (D-1) / 2 + M/4 + 1.

A row that becomes another does not move n. (It may also enter or leave the selection, which moves
the moments as above; the code takes the larger bound.) Let a and b be the two rows, p_i = |a_i +
b_i| and q_i = |a_i - b_i|. Their sum p_i + q_i is twice the larger of |a_i| and |b_i|. Let P and Q
be the sums of p_i and of q_i over the N coordinates, so that P + Q <= 2N. The matrix a a^T - b b^T
is half of the sum of (a+b)(a-b)^T and its transpose. So the N (N-1) / 2 products move by at most
(PQ - sum p_i q_i) / 2 in total, and the squares by at most sum p_i q_i over the buckets.

- No such category: (PQ + sum p_i q_i) / 2, with PQ <= N^2 and p_i q_i <= 1: (N^2 + M) / 2. If all
  but the 1 are buckets, p_i + q_i <= 2 gives (2 (N+1) Q - Q^2 N/M) / 2, at most (N+1)^2 M / (2N).
- Otherwise let c >= 1 categories change, and let k = G - c. Products of a changed category with
  coordinate i move by |a_i| + |b_i| = max(p_i, q_i). Products of two categories move by at most 2
  if one of them changes. Products of an unchanged category with coordinate i move by q_i. A bucket
  gains p_i q_i / 2 <= min(p_i, q_i) by its square. It loses c min(p_i, q_i) against max(p_i, q_i) =
  2. So squares never increase the maximum. Also PQ/2 + kQ <= (N+k)^2 / 2. The sum is (N+k)^2 / 2 +
  2cN + G (G-1) - k (k-1). It is largest for k = 0: N^2/2 + 2GN + G (G-1). This is also more than
  (N+G)^2 / 2 + M/2, the sum for c = 0.
- Squares: let t be the sum over the buckets of (a_i^2 - b_i^2)^2. Products and squares of buckets
  together are at most (|a|^4 + |b|^4) / 2 - (a.b)^2 + t/2. As |a|^2 + |b|^2 <= 2D - t and both are
  at most D, this is at most D^2 - t (D - t/2 - 1/2). Since t <= M < D, it is at most D^2.

A person of m rows moves m times as much in both norms. A row in which a column is missing or which
does not meet the filter counts nowhere, so n is private under replace_one too.

Brute-force tests check these over all neighbours of small tables.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, comb

from app.data.card import Card
from app.queries.shapes.features import BucketTerm, Indicator, Intercept, Term
from app.queries.shapes.measures import AggregateTerms, Measure
from app.queries.tally import Aggregate, CentredBucket, CountRows, EqualsValue, Factor, Product

SPARE_BITS = 7  # so that steps are within a 64th of the moments they approximate
Polynomial = dict[tuple[Factor, ...], int]  # coefficients of products of the engine's numbers


@dataclass(frozen=True, slots=True)
class Coordinate:
    """One coordinate of a row, and the term it represents."""

    term: Term
    alone: bool = False  # true if the term's column has two values

    @property
    def reach(self) -> int:
        return self.term.reach

    @property
    def category(self) -> str | None:
        """The column of more than two values whose value this coordinate indicates, or None."""
        return self.term.column if isinstance(self.term, Indicator) and not self.alone else None

    def polynomial(self) -> Polynomial:
        match self.term:
            case Intercept():
                return {(): 1}
            case BucketTerm(column, low, grain, centre):
                return {(CentredBucket(column, low, grain, centre),): 1}
            case Indicator(column, value):
                mark: Factor = EqualsValue(column, value)
                return {(mark,): 2, (): -1} if self.alone else {(mark,): 1}


@dataclass(frozen=True, slots=True)
class MomentEntry:
    """A measured moment of coordinates i <= j; one step is worth 1 / steps."""

    i: int
    j: int
    steps: int


@dataclass(frozen=True, slots=True)
class Moments:
    """Coordinates of a regression: 1 first and the outcome last."""

    coordinates: tuple[Coordinate, ...]

    @property
    def exponent(self) -> int:
        """k: a moment is counted in steps of about 2^-k."""
        reach = max(one.reach for one in self.coordinates)
        return (reach * reach).bit_length() + SPARE_BITS

    def entries(self) -> Iterator[MomentEntry]:
        """All measured moments, n first."""
        unit = 1 << self.exponent
        for i, one in enumerate(self.coordinates):
            for j in range(i, len(self.coordinates)):
                other = self.coordinates[j]
                if i == j:
                    if isinstance(one.term, Intercept):
                        yield MomentEntry(i, j, unit)
                    elif isinstance(one.term, BucketTerm):
                        yield MomentEntry(i, j, unit // (2 * one.reach**2) * 2 * one.reach**2)
                elif one.category is None or one.category != other.category:
                    reach = one.reach * other.reach
                    yield MomentEntry(i, j, unit // reach * reach)

    def measured(self, card: Card) -> tuple[tuple[Aggregate, ...], Measure]:
        """Aggregates to request from the engine, and the one measure computed from them."""
        indices: dict[tuple[Factor, ...], int] = {(): 0}
        aggregates: list[Aggregate] = [CountRows()]
        vectors: list[AggregateTerms] = []
        for entry in self.entries():
            vector = []
            for factors, coefficient in self._polynomial(entry).items():
                if factors not in indices:
                    indices[factors] = len(aggregates)
                    aggregates.append(Product(factors))  # type: ignore[arg-type]
                vector.append((coefficient, indices[factors]))
            vectors.append(tuple(vector))
        sensitivity, square = self._moves(card)
        unit, m = 1 << self.exponent, card.person.rows_max
        measure = Measure(
            "moments",
            vectors[0],
            m * ceil(unit * sensitivity),
            Fraction(1),
            self.exponent,
            sensitivity_l2_squared=m**2 * ceil(unit**2 * square),
            more_vectors=tuple(vectors[1:]),
        )
        return tuple(aggregates), measure

    def _polynomial(self, entry: MomentEntry) -> Polynomial:
        """The moment in steps, as a polynomial of the engine's numbers."""
        one, other = self.coordinates[entry.i], self.coordinates[entry.j]
        scale = entry.steps // (one.reach * other.reach)
        polynomial: Polynomial = {}
        for first, a in one.polynomial().items():
            for second, b in other.polynomial().items():
                key = tuple(sorted((*first, *second), key=repr))
                polynomial[key] = polynomial.get(key, 0) + scale * a * b
        if entry.i == entry.j and entry.i > 0:
            polynomial[()] = polynomial.get((), 0) - entry.steps // 2
        return polynomial

    def _moves(self, card: Card) -> tuple[Fraction, Fraction]:
        """Sensitivity of the moments to one row: L1, and squared L2."""
        categories = {one.category for one in self.coordinates} - {None}
        g = len(categories)
        n = sum(one.category is None for one in self.coordinates)
        m = sum(isinstance(one.term, BucketTerm) for one in self.coordinates)
        d = n + g
        there = comb(d, 2) + Fraction(m, 2) + 1, comb(d, 2) + Fraction(m, 4) + 1
        if card.neighbours == "add_remove":
            return there
        if g:
            replaced = Fraction(n * n, 2) + 2 * g * n + g * (g - 1)
        elif n == m + 1:
            replaced = Fraction((n + 1) ** 2 * m, 2 * n)
        else:
            replaced = Fraction(n * n + m, 2)
        return max(there[0], replaced), max(there[1], Fraction(d * d))


def moments_of(terms: tuple[Term, ...], outcome: BucketTerm) -> Moments:
    """Moments of the terms and the outcome.

    1 is always measured: a fit without intercept goes through the origin of the columns' own
    units, which is not that of the coordinates."""
    features = [term for term in terms if not isinstance(term, Intercept)]
    columns = [term.column for term in features]
    return Moments(
        tuple(
            Coordinate(term, isinstance(term, Indicator) and columns.count(term.column) == 1)
            for term in (Intercept(), *features, outcome)
        )
    )
