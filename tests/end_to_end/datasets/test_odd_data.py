"""Degenerate data: every kind of question gets a normal answer, charged like any other.

The tables have no rows, one row, one repeated value or only missing values. The presence of an
answer must reveal nothing about the rows. So each table gets an answer with finite numbers at the
requested price. A kind is tested by being listed among QUERIES.
"""

import math
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from app.queries import QUERIES
from tests.server import COLUMNS, HEADER, REGIONS, Json, World, ask, exact, made, new_key

TABLES: dict[str, list[list[object]]] = {
    "no rows": [],
    "one row": [[3, 7.5, "north", "true", "2021-03-04", "a note"]],
    "a constant": [[3, 7.5, "north", "true", "2021-03-04", "a note"]] * 40,
    "all missing": [["", "", "", "", "", ""]] * 40,
    "all out of bounds": [[-5, 1e9, "nowhere", "perhaps", "1999-01-01", ""]] * 40,
}
MEMBERS: dict[str, Json] = {
    "count": {},
    "count_distinct": {},
    "reciprocal": {},
    **{kind: {"column": "income"} for kind in ("sum", "mean", "variance", "median", "iqr")},
    **{kind: {"column": "age"} for kind in ("min", "max", "price")},
    "aggregates": {"of": [{"kind": "count"}, {"kind": "mean", "column": "age"}]},
    "ratio": {"numerator": {"where": {"column": "age", "op": ">=", "value": 18}}},
    "histogram": {"column": "age", "edges": [0, 18, 65]},
    "workload": {
        "predicates": [
            {"name": "adult", "where": {"column": "age", "op": ">=", "value": 18}},
            {"name": "smoker", "where": {"column": "smoker", "op": "==", "value": True}},
        ]
    },
    "cdf": {"column": "income", "edges": [0, 100, 1000]},
    "linear_regression": {"outcome": "income", "features": ["age", "smoker"]},
    "logistic_regression": {"outcome": "smoker", "features": ["age"]},
    "randomized_column": {"column": "region"},
    "keys": {"column": "note"},
    "mode": {"column": "region"},
    "top_k": {"column": "region", "k": len(REGIONS)},
    "quantile": {"column": "income", "q": 0.99},
    "trimmed_mean": {"column": "income", "trim": 0.1},
    "triangles": {},
    "sample_aggregate": {
        "statistic": {"kind": "iqr", "column": "income"},
        "blocks": 7,
        "low": 0,
        "high": 1000,
        "aggregate": "mean",
    },
    "prediction_variance": {"features": ["age"], "point": {"age": 3}, "ridge": 1},
}
GRAPHS: dict[str, list[list[object]]] = {
    "no rows": [],
    "one row": [[0, 1]],
    "a constant": [[3, 3]] * 40,
    "all missing": [["", ""]] * 40,
    "all out of bounds": [[-1, 999]] * 40,
}
ENDS = [{"name": name, "type": "integer", "low": 0, "high": 9} for name in ("a", "b")]
EDGE = {"kind": "edge", "ends": ["a", "b"]}
NEED_DELTA = {"logistic_regression", "keys", "triangles"}
NEED_ROWS = {"randomized_column", "trimmed_mean"}  # kinds that need a public number of rows
Datasets = dict[tuple[str, str], str]


@pytest.fixture(scope="module")
def asker_and_datasets(live: World) -> Iterator[tuple[httpx.Client, Datasets]]:
    """A dataset of each table under both relations and of each graph, and an analyst with a budget.

    The budget has a delta.
    """
    person = live.person()
    datasets: Datasets = {}
    text = {"name": "note", "type": "text"}
    columns = [*COLUMNS, text]
    for name in TABLES:
        path = live.write_csv(TABLES[name], [*HEADER, "note"])
        datasets[name, "add_remove"] = live.dataset(path, columns=columns)
        rows = [[*row, "other rows"] for row in TABLES[name]]  # otherwise they would share a book
        path = live.write_csv(rows, [*HEADER, "note", "more"])
        known = {"neighbours": "replace_one", "rows": max(1, len(rows))}
        datasets[name, "replace_one"] = live.dataset(path, columns=columns, **known)
        path = live.write_csv(GRAPHS[name], ["a", "b"])
        datasets[name, "edges"] = live.dataset(path, person=EDGE, columns=ENDS)
    for dataset in datasets.values():
        for holder in ("*", person.name):
            budget = {"currency": "approximate", "epsilon": 1000, "delta": "0.01"}
            made(live.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=budget))
    yield live.client(person), datasets
    live.must_be_sound()


def test_every_kind_is_asked() -> None:
    assert set(MEMBERS) == set(QUERIES)
    assert set(TABLES) == set(GRAPHS)


def finite(value: Any) -> bool:
    """True if every number in an answer is finite."""
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list):
        return all(map(finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def relations(kind: str) -> list[str]:
    if kind == "triangles":
        return ["edges"]
    return ["replace_one"] if kind in NEED_ROWS else ["add_remove", "replace_one"]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    ("kind", "relation"), [(kind, each) for kind in QUERIES for each in relations(kind)]
)
def test_degenerate_data_get_a_normal_answer(
    asker_and_datasets: tuple[httpx.Client, Datasets], kind: str, relation: str, table: str
) -> None:
    client, datasets = asker_and_datasets
    privacy: Json = {"epsilon": "0.5"} | ({"delta": "1e-6"} if kind in NEED_DELTA else {})
    question = {
        "dataset": datasets[table, relation],
        "query": {"kind": kind, **MEMBERS[kind]},
        "privacy": privacy,
    }
    preview = made(client.post("/v1/queries/preview", json=question))
    answer = made(ask(client, question, new_key()))
    assert answer["status"] == "answered"
    assert answer["value"] is not None
    assert finite(answer["value"])
    assert finite(answer["interval"])
    assert exact(answer["charged"]) == exact(preview["price"]) > 0
