"""Contract of every listed mechanism: it costs the requested loss and reports its name."""

from typing import Any

import pytest

from app.accounting.units import PICO
from app.mechanisms import MECHANISMS
from app.planning.plan import make_plan
from app.planning.request import Question
from tests.engines.test_graph import edge_card
from tests.queries.cards import card

COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "type": "integer", "low": 0, "high": 100},
    {"name": "city", "type": "category", "values": ["Bern", "Chur", "Zug"]},
    {"name": "member", "type": "boolean"},
    {"name": "note", "type": "text"},
]
ADDED: dict[str, Any] = {"kind": "mean", "column": "age"}
CHOSEN: dict[str, Any] = {"kind": "mode", "column": "city"}
KEYED: dict[str, Any] = {"kind": "histogram", "column": "note"}
LEARNED: dict[str, Any] = {
    "kind": "logistic_regression",
    "outcome": "member",
    "features": ["age", "city"],
}
ASKED: dict[str, dict[str, Any]] = {
    "laplace": ADDED,
    "gaussian": ADDED,
    "permute_and_flip": CHOSEN,
    "exponential": CHOSEN,
    "noisy_max": CHOSEN,
    "randomized_response": {"kind": "randomized_column", "column": "city"},
    "noisy_gradient_descent": LEARNED,
    "stability_histogram": KEYED,
    "partition_selection": {"kind": "keys", "column": "note"},
    "smooth_sensitivity": {"kind": "median", "column": "age"},
    "propose_test_release": {"kind": "iqr", "column": "age"},
    "stable_value": CHOSEN,
    "noisy_bound": {"kind": "triangles"},
}
MORE: dict[str, dict[str, Any]] = {
    "noisy_max": {"noise": "laplace"},
    "propose_test_release": {"bound": 2.5},
}


def test_every_mechanism_is_tested() -> None:
    assert set(ASKED) == set(MECHANISMS)


@pytest.mark.parametrize("kind", ASKED)
def test_a_release_costs_the_requested_loss(kind: str) -> None:
    relation = "replace_one" if kind == "randomized_response" else "add_remove"
    question = Question.model_validate(
        {
            "dataset": "d",
            "query": ASKED[kind],
            "mechanism": {"kind": kind, **MORE.get(kind, {})},
            "privacy": {"epsilon": "0.333333333333", "delta": "1e-6"},
        }
    )
    declared = edge_card(100) if kind == "noisy_bound" else card(COLUMNS, neighbours=relation)
    prepared = make_plan(question, declared).release
    assert prepared.loss.epsilon == PICO // 3
    assert 0 <= prepared.loss.delta <= 10**12
    assert prepared.describe()["kind"] == prepared.ledger_entry()["mechanism"] == kind
    assert prepared.theorem
