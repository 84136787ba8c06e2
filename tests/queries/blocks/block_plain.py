"""The statistics of a block in plain Python and fractions, and rows to test them on."""

import datetime
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from statistics import pvariance
from typing import Any

from tests.engines.sql.block_reference import Row

COLUMNS: list[dict[str, Any]] = [
    {"name": "x", "type": "integer", "low": 0, "high": 9},
    {"name": "y", "type": "number", "low": 0.5, "high": 8},
    {"name": "city", "type": "category", "values": ["Bern", "Chur", "Zürich"]},
    {"name": "member", "type": "boolean"},
    {"name": "born", "type": "date", "low": "1950-01-01", "high": "2010-12-31"},
]
Plain = Callable[[list[Row]], Fraction | None]


def there(rows: list[Row], *names: str) -> list[Row]:
    return [row for row in rows if all(row[name] is not None for name in names)]


def numbers(rows: list[Row], name: str) -> list[Fraction]:
    return sorted(Fraction(row[name]) for row in there(rows, name))


def at_rank(values: list[Fraction], q: Fraction) -> Fraction:
    return values[min(len(values), max(1, math.ceil(q * len(values)))) - 1]


def ranked(name: str, q: Fraction) -> Plain:
    def value(rows: list[Row]) -> Fraction | None:
        values = numbers(rows, name)
        return at_rank(values, q) if values else None

    return value


def spread(rows: list[Row]) -> Fraction | None:
    values = numbers(rows, "x")
    quarters = [at_rank(values, Fraction(i, 4)) for i in (1, 3)] if values else []
    return quarters[1] - quarters[0] if quarters else None


def mean(values: Sequence[Fraction]) -> Fraction | None:
    return sum(values, Fraction(0)) / len(values) if values else None


def trimmed(rows: list[Row]) -> Fraction | None:
    values = numbers(rows, "y")
    cut = len(values) * 3 // 10
    return mean(values[cut : len(values) - cut])


def variance(rows: list[Row]) -> Fraction | None:
    values = numbers(rows, "x")
    return pvariance(values) if values else None


def share(rows: list[Row], met: Callable[[Row], bool]) -> Fraction | None:
    return Fraction(sum(map(met, rows)), len(rows)) if rows else None


def over(rows: list[Row]) -> Fraction | None:
    both = there(rows, "x", "y")
    total = sum(numbers(both, "x"), Fraction(0))
    return total / sum(numbers(both, "y"), Fraction(0)) if both else None


def solved(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """Solve by row exchanges and fractions, which the tested code avoids."""
    rows = [[*line, last] for line, last in zip(matrix, right, strict=True)]
    for k in range(len(rows)):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [each / rows[k][k] for each in rows[k]]
        for i in range(len(rows)):
            if i != k:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[-1] for row in rows]


def coarse(row: Row) -> Fraction:
    """y on the grid of a regression, which has at most 2^16 steps between the bounds."""
    exponent = 30  # for y: 8 is near 2^34 steps
    steps, low = math.floor(Fraction(row["y"]) * 2**exponent), 2**exponent // 2
    grain = 1 << ((8 * 2**exponent - low).bit_length() - 16)
    return Fraction(low + (steps - low) // grain * grain, 2**exponent)


def fitted(features: list[str], index: int, intercept: bool) -> Plain:
    """A coefficient of x on y and other features; the categories are Chur and Zürich."""

    def value(rows: list[Row]) -> Fraction | None:
        lines = []
        for row in there(rows, "x", *features):
            line = [Fraction(1)] * intercept
            for name in features:
                if name == "city":
                    line += [Fraction(row["city"] == each) for each in ("Chur", "Zürich")]
                else:
                    line.append(coarse(row) if name == "y" else Fraction(row[name]))
            lines.append((line, Fraction(row["x"])))
        size = range(len(lines[0][0])) if lines else range(0)
        matrix = [[sum((f[i] * f[j] for f, _ in lines), Fraction(0)) for j in size] for i in size]
        found = solved(matrix, [sum((f[i] * y for f, y in lines), Fraction(0)) for i in size])
        return found[index] if found else None

    return value


def regression(features: list[str], coefficient: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": "linear_regression",
        "outcome": "x",
        "features": features,
        "coefficient": coefficient,
        **more,
    }


MEMBERS = {"column": "member", "op": "==", "value": True}
# The statistic, its bounds, and the plain version.
ALL: dict[str, tuple[dict[str, Any], float, float, Plain]] = {
    "mean": ({"kind": "mean", "column": "y"}, 0, 9, lambda rows: mean(numbers(rows, "y"))),
    "sum": ({"kind": "sum", "column": "x"}, -1, 40, lambda rows: Fraction(sum(numbers(rows, "x")))),
    "count": ({"kind": "count"}, -2.5, 3, lambda rows: Fraction(len(rows))),
    "variance": ({"kind": "variance", "column": "x"}, 0, 30, variance),
    "median": ({"kind": "median", "column": "x"}, 0, 9, ranked("x", Fraction(1, 2))),
    "quantile": ({"kind": "quantile", "column": "y", "q": 0.9}, 0, 9, ranked("y", Fraction(9, 10))),
    "min": ({"kind": "min", "column": "x"}, 0, 9, ranked("x", Fraction(0))),
    "max": ({"kind": "max", "column": "x"}, 0, 9, ranked("x", Fraction(1))),
    "iqr": ({"kind": "iqr", "column": "x"}, 0, 9, spread),
    "trimmed_mean": ({"kind": "trimmed_mean", "column": "y", "trim": 0.3}, 0, 9, trimmed),
    "share": (
        {"kind": "ratio", "numerator": {"where": MEMBERS}},
        0,
        1,
        lambda rows: share(rows, lambda row: row["member"] is True),
    ),
    "ratio": (
        {"kind": "ratio", "numerator": {"column": "x"}, "denominator": {"column": "y"}},
        0,
        5,
        over,
    ),
    "cdf": (
        {"kind": "cdf", "column": "x", "edge": 4.5},
        0,
        1,
        lambda rows: share(there(rows, "x"), lambda row: row["x"] <= 4.5),
    ),
    "cdf of days": (
        {"kind": "cdf", "column": "born", "edge": "1999-12-31"},
        0,
        1,
        lambda rows: share(there(rows, "born"), lambda row: row["born"].year < 2000),
    ),
    "slope": (regression(["y"], "y"), -5, 5, fitted(["y"], 1, True)),
    "intercept": (regression(["y"], "(intercept)"), -20, 20, fitted(["y"], 0, True)),
    "through 0": (regression(["y"], "y", intercept=False), -5, 5, fitted(["y"], 0, False)),
    "flag": (regression(["member"], "member"), -9, 9, fitted(["member"], 1, True)),
    "category": (regression(["city"], "city=Zürich"), -9, 9, fitted(["city"], 2, True)),
    "two": (regression(["y", "member"], "y"), -9, 9, fitted(["y", "member"], 1, True)),
}
MODES = {"mode": {"kind": "mode", "column": "city"}, "of two": {"kind": "mode", "column": "member"}}
DAY = datetime.date
ROWS: list[Row] = [
    dict(zip(("x", "y", "city", "member", "born"), values, strict=True))
    for values in (
        (1, 7.25, "Bern", True, DAY(1999, 12, 31)),
        (9, 7.25, "Zürich", False, DAY(2000, 1, 1)),
        (1, 0.1 + 0.7, "Chur", False, DAY(1960, 2, 3)),
        (5, None, "Bern", None, None),
        (None, 2.0, None, True, DAY(2001, 5, 5)),
        (4, 4.5, "Chur", True, DAY(1980, 1, 1)),
    )
]
