"""Tables of report probabilities as integers over 2^64, and exact sampling from them.

A word from the system's generator is one of 2^64 equally likely numbers. So a table whose rows add
up to 2^64 is sampled without any rounding. Rounding happens in the table, and the loss is that of
the table. For every report, the largest probability over the least is at most e^epsilon. This is
compared in integers with a lower bound of e^epsilon.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Context, Decimal
from typing import Any, Protocol

import numpy as np

from app.accounting.units import PICO
from app.queries.weighted_noise import Numbers

WHOLE = 1 << 64
_CHUNK = 1 << 20
OutcomeIndices = np.ndarray[Any, np.dtype[np.int64]]
Words = np.ndarray[Any, np.dtype[np.uint64]]


class RandomWords(Protocol):
    def words(self, size: int) -> Sequence[int]: ...


def odds(epsilon: int) -> Decimal:
    """Lower bound of e^epsilon."""
    context = Context(prec=60, rounding=ROUND_DOWN)
    return context.multiply(
        context.exp(context.divide(Decimal(epsilon), Decimal(PICO))), 1 - Decimal("1e-50")
    )


def drawn(counts: list[int], table: "ReportTable", source: RandomWords) -> list[int]:
    """Draw one independent report per row, and count the reports."""
    ends = np.cumsum(np.array(counts, dtype=np.int64))
    total = int(ends[-1])
    reports = np.zeros(len(counts), dtype=np.int64)
    for start in range(0, total, _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, total))
        values = np.searchsorted(ends, rows, side="right")
        words = np.asarray(source.words(len(rows)), dtype=np.uint64)
        reports += np.bincount(table.reports(values, words), minlength=len(counts))
    return [int(count) for count in reports]


class ReportTable(Protocol):
    def reports(self, values: OutcomeIndices, words: Words) -> OutcomeIndices:
        """The report of each row, from its value and its random word."""
        ...


@dataclass(frozen=True, slots=True)
class UniformTable:
    """Table with the true outcome at probability keep / 2^64 and every other at other / 2^64."""

    outcomes: int
    other: int

    @property
    def keep(self) -> int:
        return WHOLE - (self.outcomes - 1) * self.other

    def reports(self, values: OutcomeIndices, words: Words) -> OutcomeIndices:
        """Map each word to a report.

        Words below (outcomes - 1) * other select another outcome, in the order without the true
        one. All other words keep the true outcome.
        """
        others = (words // np.uint64(self.other)).astype(np.int64)
        moved = words < np.uint64((self.outcomes - 1) * self.other)
        return np.where(moved, others + (others >= values), values)


def uniform_table(outcomes: int, epsilon: int) -> UniformTable | None:
    """Table with other = 2^64 / (e^epsilon + outcomes - 1), rounded up, so that keep / other <=
    e^epsilon.

    None where rounding loses more than a thousandth of the difference between the two.
    """
    exact = odds(epsilon)
    context = Context(prec=60)
    other = int(context.divide(Decimal(WHOLE), context.add(exact, outcomes - 1))) + 1
    table = UniformTable(outcomes, other)
    if Decimal(table.keep) > context.multiply(exact, other):
        raise ArithmeticError("the table costs more than epsilon")
    ratio_excess = context.subtract(exact, 1)
    if table.keep - other < context.multiply(ratio_excess, other) * Decimal("0.999"):
        return None
    return table


@dataclass(frozen=True, slots=True, eq=False)
class GridTable:
    """Table with its own report distribution per value: rows of integers that add up to 2^64."""

    rate: float
    chances: tuple[tuple[int, ...], ...]

    def reports(self, values: OutcomeIndices, words: Words) -> OutcomeIndices:
        reports = np.empty(len(values), dtype=np.int64)
        for value in np.unique(values):
            here = values == value
            ends = np.cumsum(np.array(self.chances[value][:-1], dtype=np.uint64), dtype=np.uint64)
            reports[here] = np.searchsorted(ends, words[here], side="right")
        return reports

    @property
    def matrix(self) -> Numbers:
        """Probabilities. Row: value, column: report."""
        return np.array([[chance / WHOLE for chance in row] for row in self.chances])


def grid_table(grid: tuple[int, int], epsilon: int) -> GridTable:
    """Table with P(report | value) in proportion to exp(-rate * distance).

    Distances are steps along rows and columns. The rate is nearly the largest whose loss is within
    epsilon.
    """
    distances = distances_on(grid)
    low, high = 0.0, 2.0 * epsilon / PICO
    for _ in range(60):
        middle = (low + high) / 2.0
        if _loss(distances, middle) <= epsilon / PICO:
            low = middle
        else:
            high = middle
    rate = low
    bound = odds(epsilon)
    for _ in range(100):
        rate *= 1.0 - 1e-7
        table = GridTable(rate, _rounded(distances, rate))
        columns = list(zip(*table.chances, strict=True))
        if all(min(c) > 0 and Decimal(max(c)) <= bound * min(c) for c in columns):
            return table
    raise ArithmeticError("no table has a loss within epsilon")


def distances_on(grid: tuple[int, int]) -> Numbers:
    rows, columns = grid
    across, along = np.divmod(np.arange(rows * columns), columns)
    apart = np.abs(across[:, None] - across[None, :]) + np.abs(along[:, None] - along[None, :])
    return np.asarray(apart, dtype=np.float64)


def chances_at(distances: Numbers, rate: float) -> Numbers:
    weights = np.exp(-rate * distances)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _loss(distances: Numbers, rate: float) -> float:
    logs = -rate * distances
    logs = logs - np.log(np.exp(logs).sum(axis=1, keepdims=True))
    return float(np.max(logs.max(axis=0) - logs.min(axis=0)))


def _rounded(distances: Numbers, rate: float) -> tuple[tuple[int, ...], ...]:
    """Round probabilities down to multiples of 2^-64; the remainder goes to the true outcome."""
    rows = []
    for value, chances in enumerate(chances_at(distances, rate)):
        row = [int(chance * WHOLE) for chance in map(float, chances)]
        row[value] += WHOLE - sum(row)
        rows.append(tuple(row))
    return tuple(rows)
