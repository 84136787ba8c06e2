"""The questions of the golden files: every kind, and every mechanism for it."""

from typing import Any

Json = dict[str, Any]

ADULT: Json = {"column": "age", "op": ">=", "value": 18}
BERN: Json = {"column": "city", "op": "==", "value": "Bern"}
PER_PERSON: Json = {"per_person": {"low": 0, "high": 1500.25}}
FEATURES = ["age", "city", "member"]
PREDICATES = [
    {"name": "adults of Bern", "where": {"all": [ADULT, BERN]}},
    {"name": "Bern", "where": BERN},
    {"name": "members", "where": {"column": "member", "op": "==", "value": True}},
]
RANGES = [
    {"name": f"{low} to {high}", "where": {"column": "age", "op": "between", "value": [low, high]}}
    for low, high in ((0, 20), (10, 40), (15, 75), (30, 50), (60, 99))
]
EVERY_FILTER: Json = {
    "all": [
        {"any": [ADULT, {"not": BERN}, {"column": "born", "op": "<", "value": "1999-12-31"}]},
        {"column": "income", "op": "!=", "value": 12.5},
        {"column": "income", "op": "<=", "value": 1999},
        {"column": "age", "op": "in", "value": [20, 21, 22, 35, 50, 70]},
        {"column": "age", "op": ">", "value": 19.5},
        {"column": "city", "op": "in", "value": ["Bern", "Zug", "Zürich"]},
        {"column": "city", "op": "!=", "value": "Zug"},
        {"column": "born", "op": "between", "value": ["1951-01-01", "2009-01-01"]},
        {"column": "note", "op": "in", "value": ["common", "rare"]},
        {"column": "note", "op": "is_null", "value": False},
        {"not": {"column": "member", "op": "is_null"}},
    ]
}

# More draws than the app makes one by one.
MANY_BINS: Json = {"kind": "histogram", "column": "income", "edges": [5 * i for i in range(401)]}


def blocks(statistic: Json, **more: Any) -> Json:
    if statistic["kind"] != "mode":
        more = {"low": 0, "high": 2000, **more}
    return {"kind": "sample_aggregate", "statistic": statistic, "blocks": 12, **more}


def of_income(kind: str, **more: Any) -> Json:
    return {"kind": kind, "column": "income", **more}


SUMS: dict[str, Json] = {
    "count": {"kind": "count"},
    "count of every filter": {"kind": "count", "where": EVERY_FILTER},
    "count by city and member": {"kind": "count", "group_by": ["city", "member"]},
    "count by few edges": {
        "kind": "count",
        "group_by": [{"column": "income", "edges": [0, 10.5, 300, 2000]}],
        "where": ADULT,
    },
    "count by days": {
        "kind": "count",
        "group_by": [{"column": "born", "edges": ["1950-01-01", "1980-06-01", "2010-12-31"]}],
    },
    "histogram of even bins": {
        "kind": "histogram",
        "column": "age",
        "edges": list(range(0, 101, 4)),
    },
    "histogram of nearly even bins": {
        "kind": "histogram",
        "column": "income",
        "edges": [i * 0.1 for i in range(31)],
    },
    "histogram of many bins": {
        "kind": "histogram",
        "column": "income",
        "edges": [i * i / 4 for i in range(80)],
    },
    "histogram by city": {"kind": "histogram", "column": "city"},
    "sum": of_income("sum"),
    "sum by member": of_income("sum", group_by=["member"], where=ADULT),
    "mean": of_income("mean"),
    "mean by city": of_income("mean", group_by=["city"]),
    "variance": of_income("variance", where=ADULT),
    "ratio": {"kind": "ratio", "numerator": {"where": BERN}},
    "ratio by member": {"kind": "ratio", "numerator": {"where": BERN}, "group_by": ["member"]},
    "ratio of sums": {
        "kind": "ratio",
        "numerator": {"column": "income"},
        "denominator": {"column": "spent"},
    },
    "reciprocal": {"kind": "reciprocal", "where": BERN},
    "aggregates": {
        "kind": "aggregates",
        "of": [{"kind": "count"}, of_income("mean"), of_income("sum"), of_income("variance")],
        "group_by": ["city"],
    },
    "workload": {"kind": "workload", "predicates": PREDICATES},
    "workload of cells": {"kind": "workload", "predicates": PREDICATES, "strategy": "cells"},
    "workload of ranges": {
        "kind": "workload",
        "predicates": RANGES,
        "strategy": "hierarchical",
        "nonnegative": True,
    },
    "cdf": {"kind": "cdf", "column": "age", "edges": [0, 18, 30, 45, 65, 100]},
    "linear regression": {"kind": "linear_regression", "outcome": "income", "features": FEATURES},
    "prediction variance": {
        "kind": "prediction_variance",
        "features": ["age", "member"],
        "point": {"age": 40, "member": True},
        "ridge": 1,
    },
    "mean of blocks": blocks(of_income("median"), aggregate="mean"),
    "persons": {"kind": "count_distinct", "where": ADULT},
    "persons by city": {"kind": "count_distinct", "group_by": ["city"], "groups_max": 2},
    "sum per person": of_income("sum", **PER_PERSON),
    "sum per person by city": of_income("sum", **PER_PERSON, group_by=["city"], groups_max=1),
    "mean per person": of_income("mean", **PER_PERSON),
}
CHOICES: dict[str, Json] = {
    "mode": {"kind": "mode", "column": "city", "where": ADULT},
    "mode of member": {"kind": "mode", "column": "member"},
    "top 2": {"kind": "top_k", "column": "city", "k": 2},
    "median": {"kind": "median", "column": "age"},
    "quantile of grid": of_income(
        "quantile", q=0.9, candidates={"low": 0, "high": 2000, "count": 201}
    ),
    "quantile of intervals": of_income("quantile", q=0.25, candidates={"edges": [0, 9, 90, 2000]}),
    "min": {"kind": "min", "column": "age", "candidates": [0, 10, 20, 30, 40]},
    "max of days": {"kind": "max", "column": "born", "rank": 5},
    "price": of_income("price", candidates=[10, 20, 50, 99.5, 1000]),
    "median of blocks": blocks(of_income("mean")),
    "votes of blocks": blocks({"kind": "mode", "column": "city"}, aggregate="votes"),
}
RANKS: dict[str, Json] = {
    "median": {"kind": "median", "column": "age"},
    "quantile with missing": of_income("quantile", q=0.9, missing=0),
    "min": {"kind": "min", "column": "age", "rank": 2},
    "iqr": of_income("iqr", where=ADULT),
    "trimmed mean": of_income("trimmed_mean", trim=0.1, missing=0),
}
KEYS: dict[str, Json] = {
    "histogram of texts": {"kind": "histogram", "column": "note", "where": ADULT},
    "count by private keys": {
        "kind": "count",
        "group_by": [{"column": "note", "keys": "private"}, "member"],
    },
}
LEARNED: dict[str, Json] = {
    "logistic regression": {
        "kind": "logistic_regression",
        "outcome": "member",
        "features": ["age", "city"],
        "where": ADULT,
    },
    "linear regression": {"kind": "linear_regression", "outcome": "income", "features": ["age"]},
}
REPORTED: dict[str, Json] = {
    "reports of member": {"kind": "randomized_column", "column": "member", "missing": False},
    "reports of city": {"kind": "randomized_column", "column": "city"},
    "reports on a grid": {
        "kind": "randomized_column",
        "column": "city",
        "missing": "Bern",
        "grid": {"rows": 2, "columns": 2},
    },
}
GRAPHS: dict[str, Json] = {
    "triangles": {"kind": "triangles"},
    "heavy triangles": {
        "kind": "triangles",
        "where": {"column": "weight", "op": ">=", "value": 2},
    },
}
BLOCKS: dict[str, Json] = {
    f"blocks of {kind}": blocks(of_income(kind))
    for kind in ("sum", "variance", "min", "max", "iqr")
} | {
    "blocks of count": blocks({"kind": "count"}, where=ADULT),
    "blocks of quantile": blocks(of_income("quantile", q=0.9)),
    "blocks of trimmed mean": blocks(of_income("trimmed_mean", trim=0.1)),
    "blocks of ratio": blocks({"kind": "ratio", "numerator": {"where": BERN}}, high=1),
    "blocks of cdf": blocks({"kind": "cdf", "column": "born", "edge": "1980-06-30"}, high=1),
    "blocks of regression": blocks(
        {
            "kind": "linear_regression",
            "outcome": "income",
            "features": ["age", "member"],
            "coefficient": "age",
        },
        low=-50,
    ),
}
DERIVED: dict[str, Json] = {
    "mean of a quotient": {"kind": "mean", "column": "decade"},
    "sum of a difference": {"kind": "sum", "column": "balance", "group_by": ["area"]},
    "count by a case": {"kind": "count", "group_by": ["elder"]},
}
