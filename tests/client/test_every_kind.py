"""Every kind, asked through the client, is the question that the same body asks over HTTP."""

from collections.abc import Iterator
from typing import Any

import pytest

import bursar
from bursar import Dataset, Question, col, mechanisms
from tests.end_to_end.time.questions import COLUMNS, EDGES, HEADER, people
from tests.server import Person, World, card, made, new_key

ROWS = 200
FEATURES = ["age", "member"]
PURE: dict[str, Any] = {"epsilon": 1}
WITH_DELTA: dict[str, Any] = {"epsilon": 1, "delta": 1e-6}
WITH_RHO: dict[str, Any] = {
    "rho": 1e-3,
    "mechanism": mechanisms.noisy_gradient_descent(steps=3),
}


def questions(table: Dataset, fixed: Dataset, graph: Dataset) -> dict[str, tuple[Question, Any]]:
    adults = table.where(col.age >= 18)
    blocks = adults.sample_aggregate({"kind": "mean", "column": "income"}, 20, low=0, high=200_000)
    return {
        "aggregates": (adults.aggregates("count", ("mean", "income")).by("region"), PURE),
        "cdf": (adults.cdf("age", range(0, 121, 40)), PURE),
        "count": (adults.count().by("region", col.age.edges([18, 65, 120])), PURE),
        "count_distinct": (adults.count_distinct(), PURE),
        "histogram": (adults.histogram("income", [0, 1000, 200_000]), PURE),
        "iqr": (adults.iqr("income"), PURE),
        "keys": (adults.keys("word"), WITH_DELTA),
        "linear_regression": (adults.linear_regression("income", FEATURES), PURE),
        "logistic_regression": (adults.logistic_regression("member", ["age"]), WITH_RHO),
        "max": (adults.max("age", rank=5), PURE),
        "mean": (adults.mean("income").by("member"), PURE),
        "median": (adults.median("income", candidates=bursar.grid(0, 200_000, 51)), PURE),
        "min": (adults.min("age"), PURE),
        "mode": (adults.mode("region"), PURE),
        "prediction_variance": (
            adults.prediction_variance(FEATURES, {"age": 40, "member": True}, ridge=1),
            PURE,
        ),
        "price": (adults.price("income"), PURE),
        "quantile": (adults.quantile("income", "0.9"), PURE),
        "randomized_column": (fixed.randomized_column("region"), PURE),
        "ratio": (adults.ratio(col.member == True), PURE),  # noqa: E712
        "reciprocal": (adults.reciprocal(), PURE),
        "sample_aggregate": (blocks, PURE),
        "sum": (adults.sum("income"), PURE),
        "top_k": (adults.top_k("region", 2), PURE),
        "triangles": (graph.triangles(), PURE),
        "trimmed_mean": (fixed.trimmed_mean("income", 0.1), PURE),
        "variance": (adults.variance("income"), PURE),
        "workload": (adults.workload({"old": col.age > 64, "all": col.age >= 0}), PURE),
    }


Served = tuple[World, Person]


@pytest.fixture(scope="module")
def served(peopled: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    world: World = peopled("sqlite", tmp_path_factory.mktemp("client") / "ledger")
    analyst = world.person()

    def register(name: str, path: str, **public: Any) -> None:
        body = {**card(path), "columns": COLUMNS, "name": name, **public}
        made(world.admin.post("/v1/datasets", json=body))
        for holder in ("*", analyst.name):
            budget = {"currency": "renyi", "epsilon": 100_000, "delta": 0.01}
            made(world.admin.put(f"/v1/datasets/{name}/budgets/{holder}", json=budget))

    register("table", world.write_csv(people(ROWS), HEADER))
    rows = people(ROWS - 1)
    register("fixed", world.write_csv(rows, HEADER), neighbours="replace_one", rows=ROWS - 1)
    edges = [(i, j) for i in range(12) for j in range(i) if (i + j) % 3]
    register("graph", world.write_csv(edges, ["a", "b"]), **EDGES)
    yield world, analyst
    world.ledger.stop()


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[bursar.Client]:
    world, analyst = served
    with bursar.connect(world.server.url, analyst.key, state=None) as connected:
        yield connected


def test_every_kind_through_the_client_is_the_same_question_over_http(
    served: Served, client: bursar.Client, openapi: dict[str, Any]
) -> None:
    world, analyst = served
    http = world.client(analyst)
    asked = questions(client["table"], client["fixed"], client["graph"])
    schemas = openapi["components"]["schemas"]
    known = schemas["Question"]["properties"]["query"]["discriminator"]["mapping"]
    assert set(asked) == set(known)
    for kind, (question, price) in asked.items():
        key = new_key()
        answer = question.ask(key=key, **price)
        reply = http.post(
            "/v1/queries",
            json=question.at(**price).body(),
            headers={"Idempotency-Key": key, "Prefer": "wait=20"},
        )
        assert reply.status_code == 200, kind
        assert reply.headers["idempotent-replayed"] == "true", kind
        assert reply.json() == answer.members, kind
        assert len(answer.to_pandas()) == len(answer.rows()) > 0, kind


def test_every_kind_can_be_previewed_and_rehearsed_through_the_client(
    client: bursar.Client,
) -> None:
    for kind, (question, price) in questions(
        client["table"], client["fixed"], client["graph"]
    ).items():
        preview = question.preview(**price, rows=100)
        assert preview.fits, kind
        assert preview.expected_error.text, kind
        assert question.rehearse(**price, rows=100).made_up, kind


def test_a_preview_names_the_noise_of_mechanisms_of_one_kind(client: bursar.Client) -> None:
    shown = str(client["table"].mode("region").preview(epsilon=0.1))
    for name in ("noisy_max (gumbel)", "noisy_max (laplace)", "permute_and_flip "):
        assert name in shown, shown
