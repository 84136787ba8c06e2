"""One question of every kind about a table of made-up people, each on the rows of one filter."""

from typing import Any

Json = dict[str, Any]
Row = tuple[Any, ...]
IDS = 100_000
COLUMNS: list[Json] = [
    {"name": "id", "type": "integer", "low": 0, "high": IDS},
    {"name": "age", "type": "integer", "low": 0, "high": 120},
    {"name": "income", "type": "number", "low": 0, "high": 200_000},
    {"name": "region", "type": "category", "values": ["north", "south", "east", "west"]},
    {"name": "member", "type": "boolean"},
    {"name": "word", "type": "text", "length_max": 20},
]
HEADER = [column["name"] for column in COLUMNS]
EDGES: Json = {
    "person": {"kind": "edge", "ends": ["a", "b"]},
    "columns": [
        {"name": "a", "type": "integer", "low": 0, "high": 999},
        {"name": "b", "type": "integer", "low": 0, "high": 999},
    ],
}
# Kinds that need a public number of rows; they take no filter.
FIXED_ROWS = frozenset({"trimmed_mean"})
PURE: Json = {"privacy": {"epsilon": 0.001}}
RHO: Json = {"privacy": {"rho": "0.00000001"}}
DELTA: Json = {"privacy": {"epsilon": 0.5, "delta": 1e-10}}


def people(rows: int) -> list[Row]:
    """Made-up rows with ids from 1 on."""
    return [
        (
            1 + i,
            i * 7 % 100,
            i * 7919 % 200_000,
            COLUMNS[3]["values"][i % 4],
            i % 2 == 0,
            f"w{i % 9}",
        )
        for i in range(rows)
    ]


def predicates(number: int, parts: int, where: Json) -> list[Json]:
    """A list of predicates with several parts each, all on the rows of one filter."""
    return [
        {
            "name": f"p{i}",
            "where": {
                "any": [
                    {"all": [where, {"column": "age", "op": "==", "value": (i + part) % 120}]}
                    for part in range(parts)
                ]
            },
        }
        for i in range(number)
    ]


def questions(where: Json) -> dict[str, Json]:
    """Questions by kind, and by mechanism where the work differs; without the dataset."""
    income = {"column": "income", "where": where}
    features = ["age", "member"]
    plain: dict[str, Json] = {
        "count": {"kind": "count", "where": where},
        "count_distinct": {"kind": "count_distinct", "where": where},
        "sum": {"kind": "sum", **income},
        "mean": {"kind": "mean", **income},
        "variance": {"kind": "variance", **income},
        "aggregates": {
            "kind": "aggregates",
            "of": [{"kind": "count"}, {"kind": "mean", "column": "income"}],
            "where": where,
        },
        "ratio": {
            "kind": "ratio",
            "numerator": {"where": {"column": "member", "op": "==", "value": True}},
            "where": where,
        },
        "reciprocal": {"kind": "reciprocal", "where": where},
        "histogram": {"kind": "histogram", "column": "region", "where": where},
        "histogram of 1,000 bins": {
            "kind": "histogram",
            "column": "income",
            "edges": [i * 200 for i in range(1001)],
            "where": where,
        },
        "cdf": {
            "kind": "cdf",
            "column": "age",
            "edges": list(range(0, 121, 10)),
            "where": where,
        },
        "workload": {"kind": "workload", "predicates": predicates(12, 3, where)},
        "mode": {"kind": "mode", "column": "region", "where": where},
        "top_k": {"kind": "top_k", "column": "region", "k": 2, "where": where},
        "quantile": {"kind": "quantile", "q": 0.9, **income},
        "median": {"kind": "median", **income},
        "min": {"kind": "min", **income},
        "max": {"kind": "max", **income},
        "iqr": {"kind": "iqr", **income},
        "price": {"kind": "price", **income},
        "sample_aggregate": {
            "kind": "sample_aggregate",
            "statistic": {"kind": "median", "column": "income"},
            "blocks": 50,
            "low": 0,
            "high": 100_000,
            "where": where,
        },
        "prediction_variance": {
            "kind": "prediction_variance",
            "features": features,
            "point": {"age": 40, "member": True},
            "ridge": 1,
            "where": where,
        },
    }
    bodies: dict[str, Json] = {name: {"query": query, **PURE} for name, query in plain.items()}
    regression = {"outcome": "income", "features": features, "where": where}
    bodies["linear_regression"] = {"query": {"kind": "linear_regression", **regression}, **PURE}
    bodies["linear_regression by descent"] = {
        "query": {"kind": "linear_regression", **regression},
        "mechanism": {"kind": "noisy_gradient_descent"},
        **RHO,
    }
    bodies["logistic_regression"] = {
        "query": {
            "kind": "logistic_regression",
            "outcome": "member",
            "features": ["age", "income"],
            "where": where,
        },
        "mechanism": {"kind": "noisy_gradient_descent", "steps": 20},
        **RHO,
    }
    bodies["keys"] = {"query": {"kind": "keys", "column": "word", "where": where}, **DELTA}
    bodies["private histogram"] = {
        "query": {"kind": "histogram", "column": "word", "where": where},
        **DELTA,
    }
    smooth = {"mechanism": {"kind": "smooth_sensitivity"}, "privacy": {"epsilon": 0.5}}
    for kind in ("median", "max", "iqr"):
        bodies[f"smooth {kind}"] = {"query": plain[kind], **smooth}
    bodies["trimmed_mean"] = {
        "query": {"kind": "trimmed_mean", "trim": 0.1, "column": "income", "missing": 0},
        **smooth,
    }
    proposed = {"mechanism": {"kind": "propose_test_release"}, **DELTA}
    for kind in ("median", "mean"):
        bodies[f"proposed {kind}"] = {"query": plain[kind], **proposed}
    bodies["stable mode"] = {
        "query": plain["mode"],
        "mechanism": {"kind": "stable_value"},
        **DELTA,
    }
    return bodies


def large_workload(where: Json) -> Json:
    return {"query": {"kind": "workload", "predicates": predicates(500, 12, where)}, **PURE}
