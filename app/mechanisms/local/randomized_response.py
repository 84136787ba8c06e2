"""Randomised response: every row sends a random report, and counts are estimated from the reports.

Theorem: Warner (1965); for K outcomes Kairouz, Oh and Viswanath (2016). A row reports its value
with probability p = e^epsilon / (e^epsilon + K - 1), and each other outcome with q = 1 / (e^epsilon
+ K - 1). This is epsilon-private, and counting reports of independent rows is post-processing. On a
grid P(report | value) falls with the distance (McSherry and Talwar 2007), at the largest rate that
the loss allows.
Assumes: one row is replaced, and the number of rows is public (`queries/randomized_column.py`).
Rounding: table probabilities round down (`report_tables.py`), so the loss never exceeds the charge.

Uniform estimate: c_j = (y_j - N q) / (p - q). Its variance is [c_j p (1 - p) + (N - c_j) q (1 - q)]
/ (p - q)^2 for the fixed table: no sampling error.

Interval: y_j is a sum of independent coins, c_j of them with chance p and the others with q. From
one beyond the mean on, its tails are within those of a binomial with the mean chance (Hoeffding
1956, Theorem 5). So the interval of Clopper and Pearson (1934) for one report more and one less
covers that chance, and it is linear in c_j.

Grid estimate: the solution of P^T c = y, refused where P is nearly singular. A row adds g(report),
so the interval is the smaller of Hoeffding's (1963) and Bernstein's.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from typing_extensions import override

from app.accounting.loss import Loss
from app.accounting.losses import pure_loss, randomized_response_loss
from app.accounting.units import PICO, cost_units, limit_units
from app.caches import owned_cache
from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.expected_error import ExpectedError
from app.mechanisms.local.report_tables import (
    WHOLE,
    GridTable,
    OutcomeIndices,
    UniformTable,
    drawn,
    grid_table,
    uniform_table,
)
from app.mechanisms.noise.laplace import epsilon_within_rho
from app.mechanisms.privacy_target import CannotServe, PrivacyTarget
from app.mechanisms.release import OneTally, RandomSource
from app.mechanisms.work import Work
from app.queries import Query
from app.queries.estimates import Estimate
from app.queries.randomized_column import RandomizedShape
from app.queries.tally import Exact, Tally
from app.queries.weighted_noise import Numbers

KIND = "randomized_response"
REPORT_NANOSECONDS = 200.0  # time to draw the report of one row
THEOREM = "Warner 1965; Kairouz, Oh and Viswanath 2016 (randomised response)"
EPSILON_MAX = 20 * PICO  # above, almost every row reports its true value
CONDITION_MAX = 1e8


def prepare(shape: RandomizedShape, target: PrivacyTarget) -> "RandomizedRelease":
    if target.epsilon is not None:
        epsilon = cost_units(target.epsilon, PICO)
    elif target.rho is not None:
        epsilon = epsilon_within_rho(limit_units(target.rho, PICO))
    else:
        assert target.half_width is not None
        epsilon = _epsilon_for(shape, target.half_width, target.confidence)
    if epsilon > EPSILON_MAX:
        raise Invalid.field("/privacy", "too large: almost every row would report its true value")
    estimate: UniformEstimate | GridEstimate
    if shape.grid is not None:
        estimate = GridEstimate(_solvable(grid_table(shape.grid, epsilon)))
        loss = pure_loss(epsilon)
    else:
        table = uniform_table(len(shape.outcomes), epsilon)
        if table is None:
            raise Invalid.field("/privacy", "too small: 64-bit tables cannot represent the loss")
        estimate = UniformEstimate(table)
        loss = randomized_response_loss(epsilon, len(shape.outcomes))
    return RandomizedRelease(shape, estimate, loss)


def _solvable(table: GridTable) -> GridTable:
    if not np.linalg.cond(table.matrix) <= CONDITION_MAX:
        raise Invalid.field("/privacy", "too small: the estimate has no stable solution")
    return table


def _epsilon_for(shape: RandomizedShape, half_width: float, confidence: float) -> int:
    """Least epsilon for a half width D / (p - q), D known; p - q is (e - 1) / (e + K - 1)."""
    if shape.grid is not None:
        return _epsilon_on_grid(shape, shape.grid, half_width, confidence)
    apart = reports_apart(shape.rows, 1.0 - confidence) * (1.0 + 1e-6) / half_width
    if apart >= 1.0:
        raise CannotServe("no randomised response reaches this half width")
    odds = (1.0 + (len(shape.outcomes) - 1) * apart) / (1.0 - apart)
    return max(1, math.ceil(math.log(odds) * PICO))


def _epsilon_on_grid(
    shape: RandomizedShape, grid: tuple[int, int], half_width: float, confidence: float
) -> int:
    """Least epsilon, to a thousandth, whose widest interval is within the half width.

    A table that cannot be solved for counts as too wide.
    """

    def too_wide(epsilon: int) -> bool:
        table = grid_table(grid, epsilon)
        if not np.linalg.cond(table.matrix) <= CONDITION_MAX:
            return True
        return GridEstimate(table).half_width(shape.rows, 1.0 - confidence) > half_width

    low, high = EPSILON_MAX // 10**6, EPSILON_MAX
    if too_wide(high):
        raise CannotServe("no randomised response reaches this half width")
    while high - low > high // 1000:
        middle = math.isqrt(low * high)
        low, high = (middle, high) if too_wide(middle) else (low, middle)
    return high


@dataclass(frozen=True, slots=True)
class RandomizedRelease(OneTally):
    """Counted reports of all rows, and the counts estimated from them."""

    shape: RandomizedShape
    estimate: "UniformEstimate | GridEstimate"
    loss: Loss
    theorem: str = THEOREM

    @property
    @override
    def tally(self) -> Tally:
        return self.shape.tally

    @property
    @override
    def work(self) -> Work:
        work = Work.of(self.tally)
        return replace(work, row_nanoseconds=REPORT_NANOSECONDS)

    @property
    def standard_deviations(self) -> tuple[float, ...]:
        return (self.estimate.deviation_max(self.shape.rows),)

    def answer(
        self, exact: Exact, noise: RandomSource, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        reports = drawn(self.shape.counts(exact), self.estimate.table, noise)
        figures = self.estimate.figures(reports, 1.0 - confidence)
        deviations = self.estimate.deviations(reports)
        items = [
            {
                "outcome": outcome,
                "value": figure.value,
                "interval": figure.interval(confidence),
                "reported": reported,
                "standard_error": deviation,
            }
            for outcome, figure, reported, deviation in zip(
                self.shape.outcomes, figures, reports, deviations, strict=True
            )
        ]
        return {"value": items, "interval": None}

    def describe(self) -> dict[str, Any]:
        return {"kind": KIND, "outcomes": len(self.shape.outcomes), **self.estimate.describe()}

    def ledger_entry(self) -> dict[str, Any]:
        entry = self.estimate.ledger_entry()
        return {"mechanism": KIND, "outcomes": len(self.shape.outcomes), **entry}

    def expected_error(self, confidence: float, rows: int | None = None) -> ExpectedError:
        half = self.estimate.half_width(self.shape.rows, 1.0 - confidence)
        return ExpectedError(half)


@dataclass(frozen=True, slots=True)
class UniformEstimate:
    table: UniformTable

    @property
    def p(self) -> float:
        return self.table.keep / WHOLE

    @property
    def q(self) -> float:
        return self.table.other / WHOLE

    @property
    def apart(self) -> float:
        return (self.table.keep - self.table.other) / WHOLE

    def figures(self, reports: list[int], alpha: float) -> list[Estimate]:
        rows = sum(reports)
        low, high = chance_interval(np.array(reports, dtype=np.int64), rows, alpha)
        values = [self._count(Fraction(each), rows) for each in reports]
        return [
            Estimate(value, min(a, value), max(b, value))
            for value, a, b in zip(
                values,
                (rows * (low - self.q) / self.apart).tolist(),
                (rows * (high - self.q) / self.apart).tolist(),
                strict=True,
            )
        ]

    def _count(self, reported: Fraction, rows: int) -> float:
        apart = self.table.keep - self.table.other
        return float((reported * WHOLE - rows * self.table.other) / apart)

    def deviations(self, reports: list[int]) -> list[float]:
        """Standard errors, with the estimate clamped to [0, rows] in place of the true count."""
        rows = sum(reports)
        counts = (min(max(self._count(Fraction(y), rows), 0.0), rows) for y in reports)
        return [math.sqrt(self.variance(count, rows)) for count in counts]

    def variance(self, count: float, rows: int) -> float:
        p, q = self.p, self.q
        return (count * p * (1 - p) + (rows - count) * q * (1 - q)) / self.apart**2

    def deviation_max(self, rows: int) -> float:
        return math.sqrt(max(self.variance(0, rows), self.variance(rows, rows)))

    def half_width(self, rows: int, alpha: float) -> float:
        """Half width of the widest interval that any reports can have."""
        return reports_apart(rows, alpha) / self.apart

    def describe(self) -> dict[str, Any]:
        return {"keep": self.p, "other": self.q}

    def ledger_entry(self) -> dict[str, Any]:
        return {"keep": str(self.table.keep), "other": str(self.table.other)}


@dataclass(frozen=True, slots=True)
class GridEstimate:
    table: GridTable

    def figures(self, reports: list[int], alpha: float) -> list[Estimate]:
        matrix, rows = self.table.matrix, sum(reports)
        values = np.linalg.solve(matrix.T, np.array(reports, dtype=np.float64))
        return [
            Estimate(value, value - half, value + half)
            for value, half in zip(values.tolist(), self._halves(rows, alpha).tolist(), strict=True)
        ]

    def _halves(self, rows: int, alpha: float) -> Numbers:
        """Half widths for sums of N independent g(report), from their range and their largest
        variance.
        """
        log = math.log(2.0 / alpha)
        weights = self._weights()
        ranges = weights.max(axis=1) - weights.min(axis=1)
        by_range = ranges * math.sqrt(rows * log / 2.0)
        third = ranges * log / 3.0
        by_variance = third + np.sqrt(third**2 + 2.0 * rows * log * self._variances().max(axis=1))
        return np.asarray(np.minimum(by_range, by_variance) * (1.0 + 1e-6))

    def _weights(self) -> Numbers:
        """(P^T)^-1: row j holds the weight of each report in the estimate of j."""
        matrix = self.table.matrix
        return np.asarray(np.linalg.solve(matrix.T, np.eye(len(matrix))))

    def _variances(self) -> Numbers:
        """Variance that one row of a value (column) adds to an estimate (row)."""
        matrix, weights = self.table.matrix, self._weights()
        return np.asarray(weights**2 @ matrix.T - (weights @ matrix.T) ** 2)

    def deviations(self, reports: list[int]) -> list[float]:
        counts = np.linalg.solve(self.table.matrix.T, np.array(reports, dtype=np.float64))
        counts = np.clip(counts, 0.0, None)
        return [float(each) for each in np.sqrt(np.maximum(self._variances() @ counts, 0.0))]

    def deviation_max(self, rows: int) -> float:
        return math.sqrt(rows * float(self._variances().max()))

    def half_width(self, rows: int, alpha: float) -> float:
        return float(self._halves(rows, alpha).max())

    def describe(self) -> dict[str, Any]:
        return {"rate": self.table.rate}

    def ledger_entry(self) -> dict[str, Any]:
        return {"rate": self.table.rate.hex()}


def chance_interval(reports: OutcomeIndices, rows: int, alpha: float) -> tuple[Numbers, Numbers]:
    """Bounds on the mean chance of a report, for each number of reports.

    They use one report less and one more than observed.
    """
    from scipy.special import betaincinv

    less, more = np.maximum(reports - 1, 0), np.minimum(reports + 1, rows)
    low = np.zeros(len(reports))
    high = np.ones(len(reports))
    some, some_left = less > 0, more < rows
    low[some] = betaincinv(less[some], rows - less[some] + 1, alpha / 2.0)
    high[some_left] = betaincinv(more[some_left] + 1, rows - more[some_left], 1.0 - alpha / 2.0)
    return low, high


@owned_cache(maxsize=256)
def reports_apart(rows: int, alpha: float) -> float:
    """Largest distance between a bound and its number of reports, over all possible numbers.

    All numbers are tried up to 4096 rows. Beyond that 2049 numbers are tried, and a factor of 1.001
    covers the rest.
    """
    if rows <= 4096:
        reports, spare = np.arange(rows + 1, dtype=np.int64), 1.0
    else:
        reports, spare = np.unique(np.linspace(0, rows, 2049).astype(np.int64)), 1.001
    low, high = chance_interval(reports, rows, alpha)
    chances = reports / rows
    return float(np.max(np.maximum(high - chances, chances - low))) * rows * spare
