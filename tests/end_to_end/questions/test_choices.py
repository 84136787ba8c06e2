"""Choices over HTTP: every kind previewed, charged and answered; refusals; the curve they cost."""

import json
import math
from decimal import Decimal
from typing import Any

import pytest

from tests.mechanisms.noise.noise_law import lower_chance, upper_chance
from tests.server import REGIONS, Json, Person, World, ask, exact, made, new_key, some_rows

DELTA = "1e-6"
CURVES: dict[str, Json] = {
    "zcdp": {"currency": "zcdp", "epsilon": 3, "delta": DELTA},
    "renyi": {"currency": "renyi", "epsilon": 3, "delta": DELTA},
}
KINDS: dict[str, Json] = {
    "mode": {"kind": "mode", "column": "region"},
    "mode of a boolean": {"kind": "mode", "column": "smoker"},
    "top_k": {"kind": "top_k", "column": "region", "k": 3},
    "quantile": {"kind": "quantile", "column": "income", "q": "0.9"},
    "quantile of days": {"kind": "quantile", "column": "seen", "q": 0.25},
    "median": {"kind": "median", "column": "age"},
    "median on a grid": {
        "kind": "median",
        "column": "age",
        "candidates": {"low": 0, "high": 100, "count": 11},
    },
    "min": {"kind": "min", "column": "age"},
    "max": {"kind": "max", "column": "seen", "rank": 5},
    "price": {"kind": "price", "column": "income", "candidates": [10, 99.5, 5000, 100000]},
}
WHERE: Json = {"column": "age", "op": "<", "value": 30}


def chosen(dataset: str, query: Json, epsilon: object = 1, **more: Any) -> Json:
    return {"dataset": dataset, "query": query, "privacy": {"epsilon": epsilon}, **more}


@pytest.fixture(scope="module")
def asker(live_on_each: World) -> tuple[World, Person, str]:
    person = live_on_each.person()
    return live_on_each, person, live_on_each.open_dataset(person, epsilon=100_000, total=10**6)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_choice_costs_what_its_preview_says(
    asker: tuple[World, Person, str], name: str
) -> None:
    world, person, dataset = asker
    client = world.client(person)
    question = chosen(dataset, KINDS[name], "0.123456789012")
    before = world.spent(dataset, person.name)
    preview = made(client.post("/v1/queries/preview", json=question))
    assert preview["fits"]
    error = preview["expected_error"]
    ranked = preview["kind"] in ("quantile", "median", "min", "max")
    assert error["half_width"] > 0
    assert error["unit"] == ("ranks" if ranked else "score")
    assert (error["confidence"], error["promise"]) == (0.95, True)
    assert world.spent(dataset, person.name) == before
    kinds = [each["kind"] for each in preview["alternatives"]]
    by_value = ranked and KINDS[name]["column"] != "seen" and "candidates" not in KINDS[name]
    smooth = ["smooth_sensitivity"] if by_value else []
    assert kinds == ["permute_and_flip", "exponential", *["noisy_max"] * 3, *smooth]

    request_key = new_key()
    answer = made(ask(client, question, request_key))
    assert answer["interval"] is None
    assert exact(answer["charged"]) == exact(preview["price"]) == Decimal("0.123456789012")
    assert world.spent(dataset, person.name) - before == exact(preview["price"])
    assert answer["mechanism"] == preview["mechanism"]
    assert answer["mechanism"]["kind"] == "permute_and_flip"
    assert "McKenna and Sheldon" in answer["theorem"]
    assert ask(client, question, request_key).json() == answer
    charge = world.entries(dataset, "charge")[-1]
    assert answer["receipt"] == {"entry": charge["seq"], "hash": charge["hash"]}
    world.must_be_sound()


def test_large_budgets_find_the_right_outcomes(asker: tuple[World, Person, str]) -> None:
    """Ages 0 to 59, regions in turn and days on the 11th of nine months make 60 rows.

    At epsilon 200 a wrong choice has probability below exp(-20).
    """
    world, person, _ = asker
    rows = some_rows()
    rows += [[7, 100.0, "south", "true", "2021-05-11"]] * 20
    dataset = world.dataset(world.write_csv(rows))
    world.grant(dataset, "*", 10**6)
    world.grant(dataset, person.name, 10**6)
    client = world.client(person)

    def value(query: Json, **more: Any) -> Any:
        return made(ask(client, chosen(dataset, query, 200, **more), new_key()))["value"]

    assert value(KINDS["mode"]) == "south"
    assert value(KINDS["mode of a boolean"]) is True
    assert value({**KINDS["top_k"], "k": 1}) == ["south"]
    assert sorted(value({**KINDS["top_k"], "k": 4})) == sorted(REGIONS)
    assert value({**KINDS["quantile of days"], "q": 0.5}) == "2021-05-11"
    assert value(KINDS["median"]) in (19, 20)
    assert value({"kind": "min", "column": "age", "rank": 1}) == 0
    assert value({"kind": "max", "column": "age", "rank": 1}) == 59
    assert value({"kind": "max", "column": "age", "rank": 1, "where": WHERE}) == 29
    assert value({"kind": "price", "column": "age", "candidates": [5, 30, 59]}) == 30
    for mechanism in (
        {"kind": "exponential"},
        {"kind": "noisy_max", "noise": "laplace"},
        {"kind": "noisy_max", "noise": "gumbel"},
        {"kind": "noisy_max", "noise": "exponential"},
    ):
        assert value(KINDS["mode"], mechanism=mechanism) == "south"


@pytest.fixture(scope="module")
def little(asker: tuple[World, Person, str]) -> dict[str, str]:
    """Datasets with few rows or none."""
    world, person, _ = asker
    empty: list[list[object]] = [["", "", "", "", ""]] * 3
    tables = {"all missing": empty, "one row": [[5, 9.5, "east", "true", "2021-01-01"]]}
    datasets = {"nothing selected": world.dataset()}
    datasets |= {name: world.dataset(world.write_csv(rows)) for name, rows in tables.items()}
    for dataset in datasets.values():
        world.grant(dataset, "*", 10**6)
        world.grant(dataset, person.name, 10**6)
    return datasets


@pytest.mark.parametrize("name", KINDS)
def test_data_without_any_score_get_a_normal_charged_answer(
    asker: tuple[World, Person, str], little: dict[str, str], name: str
) -> None:
    world, person, _ = asker
    for what, dataset in little.items():
        query = KINDS[name]
        if what == "nothing selected":
            query = {**query, "where": {**WHERE, "value": -1}}
        before = world.spent(dataset, person.name)
        answer = made(ask(world.client(person), chosen(dataset, query), new_key()))
        assert answer["status"] == "answered"
        assert world.spent(dataset, person.name) - before == 1


@pytest.mark.parametrize("currency", CURVES)
def test_accounts_with_curves_use_the_exponential_mechanism_and_pay_its_curve(
    live: World, currency: str
) -> None:
    person, dataset = live.person(), live.dataset()
    for holder in ("*", person.name):
        made(live.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=CURVES[currency]))
    client = live.client(person)
    preview = made(client.post("/v1/queries/preview", json=chosen(dataset, KINDS["mode"], 0.1)))
    assert preview["mechanism"]["kind"] == "exponential"
    answered = 0
    while (
        ask(client, chosen(dataset, KINDS["mode"], 0.1, fresh=True), new_key()).status_code == 200
    ):
        answered += 1
        assert answered < 1000
    flips = made(
        client.post(
            "/v1/queries/preview",
            json=chosen(dataset, KINDS["mode"], 0.1, mechanism={"kind": "permute_and_flip"}),
        )
    )
    assert not flips["fits"]
    # Each choice costs rho = 0.01 / 8. A generic pure mechanism of the same epsilon costs nearly
    # 0.01 / 2. The plain sum of epsilons would stop at 30.
    assert answered > 140
    spent = live.budget(dataset, person.name)["spent"]
    if currency == "zcdp":
        assert spent["rho"] == pytest.approx(answered * 0.01 / 8, rel=1e-3)  # slightly less
    live.must_be_sound()


def test_a_rho_converts_to_the_largest_epsilon_of_the_exponential_mechanism(
    live: World,
) -> None:
    person, dataset = live.person(), live.dataset()
    for holder in ("*", person.name):
        made(live.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=CURVES["zcdp"]))
    question = {**chosen(dataset, KINDS["median"]), "privacy": {"rho": "0.02"}}
    answer = made(ask(live.client(person), question, new_key()))
    assert answer["mechanism"]["kind"] == "exponential"
    assert math.sqrt(8 * 0.02) <= answer["charged"]["epsilon"] <= 1.01 * math.sqrt(8 * 0.02)
    spent = live.budget(dataset, person.name)["spent"]
    assert spent["rho"] == pytest.approx(0.02, rel=1e-9)


def test_a_half_width_is_priced_by_the_bound(asker: tuple[World, Person, str]) -> None:
    world, person, dataset = asker
    client = world.client(person)
    for name in ("mode", "median", "top_k", "price"):
        wish = {"half_width": 40.0 if name != "price" else 1e7, "confidence": 0.9}
        question = {**chosen(dataset, KINDS[name]), "privacy": wish, "confidence": 0.9}
        preview = made(client.post("/v1/queries/preview", json=question))
        bound = preview["expected_error"]["half_width"]
        assert bound == pytest.approx(wish["half_width"], rel=1e-6)
        assert bound <= wish["half_width"]
        answer = made(ask(client, question, new_key()))
        assert exact(answer["charged"]) == exact(preview["price"])


PLANTED = "planted-value-7c1f"
REFUSED: list[tuple[Json, str]] = [
    ({"kind": "mode", "column": "age"}, "/query/column"),
    ({"kind": "mode", "column": PLANTED}, "/query/column"),
    ({"kind": "mode"}, "/query/column"),
    ({"kind": "mode", "column": "region", "group_by": ["smoker"]}, "/query/group_by"),
    ({"kind": "top_k", "column": "region", "k": 5}, "/query/k"),
    ({"kind": "top_k", "column": "region", "k": 0}, "/query/k"),
    ({"kind": "top_k", "column": "region"}, "/query/k"),
    ({"kind": "top_k", "column": "smoker", "k": 1}, "/query/column"),
    ({"kind": "quantile", "column": "age"}, "/query/q"),
    *(
        ({"kind": "quantile", "column": "age", "q": q}, "/query/q")
        for q in (0, 1, -0.1, 1.1, PLANTED, None, True, "1e-30", 0.12345678901)
    ),
    ({"kind": "quantile", "column": "region", "q": 0.5}, "/query/column"),
    ({"kind": "median", "column": "age", "candidates": []}, "/query/candidates"),
    ({"kind": "median", "column": "age", "candidates": PLANTED}, "/query/candidates"),
    ({"kind": "median", "column": "age", "candidates": [1, 1]}, "/query/candidates"),
    ({"kind": "median", "column": "age", "candidates": [2, 1]}, "/query/candidates"),
    ({"kind": "median", "column": "age", "candidates": [-1, 1]}, "/query/candidates/0"),
    ({"kind": "median", "column": "age", "candidates": [1, 121]}, "/query/candidates/1"),
    ({"kind": "median", "column": "age", "candidates": [1, PLANTED]}, "/query/candidates/1"),
    ({"kind": "median", "column": "age", "candidates": [1, None]}, "/query/candidates/1"),
    ({"kind": "median", "column": "age", "candidates": [1, 2.5]}, "/query/candidates/1"),
    ({"kind": "median", "column": "seen", "candidates": ["2021-1-1"]}, "/query/candidates/0"),
    (
        {"kind": "median", "column": "age", "candidates": {"low": 0, "high": 9}},
        "/query/candidates/count",
    ),
    (
        {"kind": "median", "column": "age", "candidates": {"low": 0, "high": 9, "count": 11}},
        "/query/candidates/count",
    ),
    (
        {
            "kind": "median",
            "column": "income",
            "candidates": {"low": 0, "high": 9, "count": 1_000_001},
        },
        "/query/candidates/count",
    ),
    (
        {"kind": "median", "column": "age", "candidates": {"low": 9, "high": 0, "count": 2}},
        "/query/candidates/high",
    ),
    ({"kind": "min", "column": "age", "rank": 0}, "/query/rank"),
    ({"kind": "max", "column": "smoker"}, "/query/column"),
    ({"kind": "price", "column": "seen"}, "/query/column"),
    ({"kind": "price", "column": "income", "candidates": [200001]}, "/query/candidates"),
]


@pytest.mark.parametrize(("query", "pointer"), REFUSED, ids=lambda case: json.dumps(case)[:70])
def test_an_invalid_choice_is_refused_by_its_field_and_costs_nothing(
    asker: tuple[World, Person, str], query: Json, pointer: str
) -> None:
    world, person, dataset = asker
    client = world.client(person)
    before = world.spent(dataset, person.name)
    for path in ("/v1/queries", "/v1/queries/preview"):
        reply = client.post(path, json=chosen(dataset, query))
        assert (reply.status_code, reply.json()["type"]) == (422, "/problems/invalid")
        assert pointer in [each["pointer"] for each in reply.json()["errors"]], reply.text
        assert PLANTED not in reply.text
    assert world.spent(dataset, person.name) == before


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"mechanism": {"kind": "laplace"}}, "/mechanism/kind"),
        ({"mechanism": {"kind": "gaussian"}}, "/mechanism/kind"),
        ({"mechanism": {"kind": "noisy_max"}}, "/mechanism"),
        ({"mechanism": {"kind": "noisy_max", "noise": PLANTED}}, "/mechanism/noise"),
        ({"mechanism": {"kind": "exponential", "noise": "gumbel"}}, "/mechanism"),
        ({"query": {"kind": "count"}, "mechanism": {"kind": "exponential"}}, "/mechanism/kind"),
        ({"privacy": {"epsilon": 5000}}, "/privacy/epsilon"),
        ({"privacy": {"half_width": 1e-9}}, "/privacy"),
    ],
)
def test_an_unsuitable_mechanism_or_loss_is_named(
    asker: tuple[World, Person, str], changes: Json, pointer: str
) -> None:
    world, person, dataset = asker
    reply = ask(world.client(person), {**chosen(dataset, KINDS["mode"]), **changes}, new_key())
    assert reply.status_code == 422
    assert pointer in [each["pointer"] for each in reply.json()["errors"]], reply.text


def test_choices_within_one_cell_cost_that_cell_alone(live: World) -> None:
    person, dataset = live.person(), live.dataset(cells={"column": "region"})
    live.grant(dataset, "*", 10)
    live.grant(dataset, person.name, 1)
    for region in REGIONS:
        where = {"column": "region", "op": "==", "value": region}
        question = chosen(dataset, {**KINDS["median"], "where": where}, 1)
        answer = made(ask(live.client(person), question, new_key()))
        assert answer["charged"]["cells"] == [region]
    assert live.spent(dataset, person.name) == 1
    assert ask(live.client(person), chosen(dataset, KINDS["median"], 0.1)).status_code == 402


@pytest.mark.statistical
def test_an_audit_over_http_proves_no_more_loss_than_was_charged(live: World) -> None:
    """Two tables of one row, true or false, get 250 answers each at epsilon = 1.

    Clopper and Pearson bound each of the two probabilities, wrong with probability 5e-7.
    """
    person = live.person()
    client = live.client(person)
    hits = []
    for says in ("true", "false"):
        rows = [
            [live.server.process.pid % 100, live.server.process.pid, "east", says, "2021-01-01"]
        ]
        dataset = live.dataset(live.write_csv(rows), neighbours="replace_one", rows=1)
        live.grant(dataset, "*", 10**6)
        live.grant(dataset, person.name, 10**6)
        question = chosen(dataset, {"kind": "mode", "column": "smoker"}, 1, fresh=True)
        answers = [made(ask(client, question, new_key()))["value"] for _ in range(250)]
        hits.append(sum(value is True for value in answers))
        assert live.spent(dataset, person.name) == 250
    low, high = lower_chance(250, hits[0], 5e-7), upper_chance(250, hits[1], 5e-7)
    assert math.log(low / high) <= 1.0
    # The audit has enough power: the mechanism should give 0.70 for one table and 0.30 for the
    # other.
    assert hits[0] > hits[1]
