"""Every kind of question, as a method of a table. The answer of each is described in `docs/`."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar

from bursar.ask.amounts import Amount, wire_amount
from bursar.ask.filters import Condition, Scalar, wire_value
from bursar.errors import BadQuestion

Q = TypeVar("Q")
Candidates = Sequence[Scalar] | range


def grid(low: Scalar, high: Scalar, count: int) -> dict[str, Any]:
    """`count` candidates, evenly spaced from low to high."""
    return {"low": wire_value(low), "high": wire_value(high), "count": count}


def intervals(edges: Iterable[Scalar]) -> dict[str, Any]:
    """The intervals between edges, as candidates of a quantile."""
    return {"edges": _values(edges)}


def _values(values: Iterable[Scalar]) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise BadQuestion(
            f"A list of values is needed, not {values!r:.60}.", hint="For example: [0, 18, 65, 120]"
        )
    return [wire_value(value) for value in values]


def _candidates(candidates: Candidates | Mapping[str, Any] | None) -> Any:
    if candidates is None or isinstance(candidates, Mapping):
        return candidates
    return _values(candidates)


def _bounds(per_person: tuple[float, float] | None) -> dict[str, float] | None:
    if per_person is None:
        return None
    low, high = per_person
    return {"low": low, "high": high}


def part(*, where: Condition | None = None, column: str | None = None) -> dict[str, Any]:
    """A part of a ratio: the rows that meet a filter, or the sum of a column."""
    body: dict[str, Any] = {}
    if where is not None:
        body["where"] = where.body
    if column is not None:
        body["column"] = column
    return body


class Kinds(ABC, Generic[Q]):
    """The questions that can be asked about the rows of a table."""

    @abstractmethod
    def _make(self, kind: str, fields: dict[str, Any]) -> Q:
        """A question of this kind about these rows. Fields that are None are left out."""

    # Counts and sums

    def count(self) -> Q:
        """Number of rows."""
        return self._make("count", {})

    def count_distinct(self, column: str | None = None, *, groups_max: int | None = None) -> Q:
        """Number of persons."""
        return self._make("count_distinct", {"column": column, "groups_max": groups_max})

    def sum(
        self,
        column: str,
        *,
        per_person: tuple[float, float] | None = None,
        groups_max: int | None = None,
    ) -> Q:
        """Sum of a column. `per_person` bounds each person's total instead of each value."""
        bounds = _bounds(per_person)
        fields = {"column": column, "per_person": bounds, "groups_max": groups_max}
        return self._make("sum", fields)

    def mean(
        self,
        column: str,
        *,
        per_person: tuple[float, float] | None = None,
        groups_max: int | None = None,
    ) -> Q:
        """Mean of a column, or of each person's total with `per_person`."""
        bounds = _bounds(per_person)
        fields = {"column": column, "per_person": bounds, "groups_max": groups_max}
        return self._make("mean", fields)

    def variance(self, column: str) -> Q:
        """Variance of a column."""
        return self._make("variance", {"column": column})

    def ratio(
        self,
        numerator: Condition | str,
        denominator: Condition | str | None = None,
    ) -> Q:
        """A quotient of counts (conditions) or sums (column names)."""
        below = None if denominator is None else _part(denominator)
        return self._make("ratio", {"numerator": _part(numerator), "denominator": below})

    def reciprocal(self) -> Q:
        """One divided by the number of rows."""
        return self._make("reciprocal", {})

    def aggregates(self, *of: str | tuple[str, str]) -> Q:
        """Several numbers about the same rows: `aggregates("count", ("mean", "income"))`."""
        return self._make("aggregates", {"of": [_aggregate(one) for one in of]})

    # Histograms and workloads

    def histogram(self, column: str, edges: Iterable[Scalar] | None = None) -> Q:
        """Number of rows for each category, or between edges."""
        bins = None if edges is None else _values(edges)
        return self._make("histogram", {"column": column, "edges": bins})

    def cdf(
        self,
        column: str,
        edges: Iterable[Scalar],
        *,
        strategy: Literal["cells", "hierarchical"] | None = None,
    ) -> Q:
        """Number of rows up to each edge; the numbers never fall."""
        fields = {"column": column, "edges": _values(edges), "strategy": strategy}
        return self._make("cdf", fields)

    def workload(
        self,
        predicates: Mapping[str, Condition],
        *,
        strategy: Literal["identity", "cells", "hierarchical"] | None = None,
        consistent: bool = True,
        nonnegative: bool = False,
    ) -> Q:
        """Many counts for one charge, each with a name."""
        listed = [{"name": name, "where": where.body} for name, where in predicates.items()]
        fields: dict[str, Any] = {"predicates": listed, "strategy": strategy}
        return self._make(
            "workload", {**fields, "consistent": consistent, "nonnegative": nonnegative}
        )

    # Choices and ranks

    def mode(self, column: str) -> Q:
        """The most frequent value."""
        return self._make("mode", {"column": column})

    def top_k(self, column: str, k: int) -> Q:
        """The `k` most frequent values."""
        return self._make("top_k", {"column": column, "k": k})

    def price(self, column: str, *, candidates: Candidates | Mapping[str, Any] | None = None) -> Q:
        """The price of a digital good that earns most."""
        return self._make("price", {"column": column, "candidates": _candidates(candidates)})

    def quantile(
        self,
        column: str,
        q: Amount,
        *,
        candidates: Candidates | Mapping[str, Any] | None = None,
        missing: float | None = None,
    ) -> Q:
        """The value below which the share `q` of the rows lies."""
        listed = _candidates(candidates)
        fields = {"column": column, "q": wire_amount(q), "candidates": listed, "missing": missing}
        return self._make("quantile", fields)

    def median(
        self,
        column: str,
        *,
        candidates: Candidates | Mapping[str, Any] | None = None,
        missing: float | None = None,
    ) -> Q:
        """The middle value."""
        listed = _candidates(candidates)
        return self._make("median", {"column": column, "candidates": listed, "missing": missing})

    def min(
        self,
        column: str,
        *,
        rank: int | None = None,
        candidates: Candidates | Mapping[str, Any] | None = None,
        missing: float | None = None,
    ) -> Q:
        """The smallest value, or the one with a rank."""
        fields = {"column": column, "rank": rank, "candidates": _candidates(candidates)}
        return self._make("min", {**fields, "missing": missing})

    def max(
        self,
        column: str,
        *,
        rank: int | None = None,
        candidates: Candidates | Mapping[str, Any] | None = None,
        missing: float | None = None,
    ) -> Q:
        """The largest value, or the one with a rank from above."""
        fields = {"column": column, "rank": rank, "candidates": _candidates(candidates)}
        return self._make("max", {**fields, "missing": missing})

    def iqr(self, column: str, *, missing: float | None = None) -> Q:
        """Distance between the quartiles."""
        return self._make("iqr", {"column": column, "missing": missing})

    def trimmed_mean(self, column: str, trim: Amount, *, missing: float | None = None) -> Q:
        """Mean without the share `trim` at either end."""
        fields = {"column": column, "trim": wire_amount(trim), "missing": missing}
        return self._make("trimmed_mean", fields)

    # Regression

    def linear_regression(
        self, outcome: str, features: Sequence[str], *, intercept: bool = True, ridge: float = 0.0
    ) -> Q:
        """Coefficients of a linear model."""
        fields = {"outcome": outcome, "features": _texts("features", features)}
        return self._make("linear_regression", {**fields, "intercept": intercept, "ridge": ridge})

    def logistic_regression(
        self, outcome: str, features: Sequence[str], *, intercept: bool = True
    ) -> Q:
        """Coefficients of a logistic model of a boolean outcome."""
        fields = {
            "outcome": outcome,
            "features": _texts("features", features),
            "intercept": intercept,
        }
        return self._make("logistic_regression", fields)

    def prediction_variance(
        self,
        features: Sequence[str],
        point: Mapping[str, Scalar],
        *,
        ridge: float | None = None,
        intercept: bool = True,
    ) -> Q:
        """How much a linear model's prediction at a point depends on the rows."""
        if not isinstance(point, Mapping):
            raise BadQuestion(
                "point has a value for each feature.", hint='{"age": 40, "hours": 20}'
            )
        values = {name: wire_value(value) for name, value in point.items()}
        fields = {"features": _texts("features", features), "point": values, "ridge": ridge}
        return self._make("prediction_variance", {**fields, "intercept": intercept})

    # Other

    def sample_aggregate(
        self,
        statistic: Mapping[str, Any],
        blocks: int,
        *,
        low: float | None = None,
        high: float | None = None,
        aggregate: Literal["median", "mean", "votes"] = "median",
    ) -> Q:
        """An exact statistic of each of many random blocks, combined privately."""
        fields = {"statistic": dict(statistic), "blocks": blocks, "low": low, "high": high}
        return self._make("sample_aggregate", {**fields, "aggregate": aggregate})

    def keys(self, column: str) -> Q:
        """The texts of a column that many persons have."""
        return self._make("keys", {"column": column})

    def triangles(self) -> Q:
        """Number of triangles of a graph."""
        return self._make("triangles", {})

    def randomized_column(
        self,
        column: str,
        *,
        missing: str | bool | None = None,
        grid: tuple[int, int] | None = None,
    ) -> Q:
        """Every row answers by randomised response; the estimate of each value's count."""
        shape = None if grid is None else {"rows": grid[0], "columns": grid[1]}
        return self._make(
            "randomized_column", {"column": column, "missing": missing, "grid": shape}
        )


def _part(side: Condition | str) -> dict[str, Any]:
    if isinstance(side, str):
        return part(column=side)
    if isinstance(side, Condition):
        return part(where=side)
    raise BadQuestion("A part of a ratio is a condition, or the name of a column.")


def _texts(name: str, texts: Sequence[str]) -> list[str]:
    """The names of columns. One text would be read as a list of letters."""
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise BadQuestion(f"{name} is a list of columns.", hint=f'{name}=["age", "hours"]')
    return list(texts)


def _aggregate(one: str | tuple[str, str]) -> dict[str, str]:
    if one == "count":
        return {"kind": "count"}
    if isinstance(one, tuple) and len(one) == 2:
        return {"kind": one[0], "column": one[1]}
    raise BadQuestion(
        "aggregates takes 'count' and pairs such as ('mean', 'income').",
        hint="aggregates('count', ('mean', 'income'), ('variance', 'age'))",
    )
