"""Sample and aggregate over HTTP: previewed, charged, answered near the truth; refused by name."""

from decimal import Decimal

import pytest

from tests.server import Json, Person, World, ask, exact, made, new_key

OF: Json = {
    "kind": "sample_aggregate",
    "statistic": {"kind": "median", "column": "age"},
    "blocks": 40,
    "low": 0,
    "high": 120,
}


@pytest.fixture(scope="module")
def asker(live_on_each: World) -> tuple[World, Person, str]:
    world = live_on_each
    person = world.person()
    rows = [[50 + i % 11, 1000 + i, "north", "true", "2021-01-01"] for i in range(2000)]
    dataset = world.dataset(world.write_csv(rows))
    for holder in ("*", person.name):
        world.grant(dataset, holder, 100_000)
    return world, person, dataset


@pytest.mark.parametrize(
    ("changes", "mechanism", "truth"),
    [
        ({}, "permute_and_flip", 55),
        ({"aggregate": "mean"}, "laplace", 55),
        ({"aggregate": "mean", "statistic": {"kind": "mean", "column": "age"}}, "laplace", 55),
        ({"statistic": {"kind": "max", "column": "age"}}, "permute_and_flip", 60),
        ({"statistic": {"kind": "iqr", "column": "age"}}, "permute_and_flip", 6),
        ({"statistic": {"kind": "variance", "column": "age"}}, "permute_and_flip", 10),
    ],
)
def test_every_statistic_costs_what_its_preview_says_and_is_near(
    asker: tuple[World, Person, str], changes: Json, mechanism: str, truth: float
) -> None:
    """At epsilon 20 a choice is within a rank or two, and Laplace noise within 2."""
    world, person, dataset = asker
    client = world.client(person)
    question = {"dataset": dataset, "query": {**OF, **changes}, "privacy": {"epsilon": 20}}
    preview = made(client.post("/v1/queries/preview", json=question))
    assert preview["mechanism"]["kind"] == mechanism
    assert preview["mechanism"]["blocks"] == 40
    before = world.spent(dataset, person.name)
    key = new_key()
    answer = made(ask(client, question, key))
    assert exact(answer["charged"]) == exact(preview["price"]) == Decimal(20)
    assert world.spent(dataset, person.name) - before == 20
    assert abs(answer["value"] - truth) < 4
    assert (answer["interval"] is not None) == (mechanism == "laplace")
    assert ask(client, question, key).json() == answer
    world.must_be_sound()


def test_what_is_wrong_is_named_and_nothing_is_charged(asker: tuple[World, Person, str]) -> None:
    world, person, dataset = asker
    client = world.client(person)
    before = world.spent(dataset, person.name)
    for changes, at in (
        ({"blocks": 1}, "/query/blocks"),
        ({"low": 120}, "/query"),
        ({"statistic": {"kind": "median", "column": "region"}}, "/query/statistic/column"),
        ({"statistic": {"kind": "code", "column": "age"}}, "/query/statistic/kind"),
        ({"statistic": {"kind": "quantile", "column": "age"}}, "/query/statistic"),
        ({"low": "a"}, "/query/low"),
    ):
        question = {"dataset": dataset, "query": {**OF, **changes}, "privacy": {"epsilon": 1}}
        reply = ask(client, question, new_key())
        assert reply.status_code == 422, reply.text
        assert any(each["pointer"].startswith(at) for each in reply.json()["errors"]), reply.text
    assert world.spent(dataset, person.name) == before


def test_no_rows_at_all_have_a_normal_answer(asker: tuple[World, Person, str]) -> None:
    world, person, dataset = asker
    nobody = {"column": "age", "op": ">", "value": 119}
    for aggregate in ("median", "mean"):
        query = {**OF, "aggregate": aggregate, "where": nobody}
        question = {"dataset": dataset, "query": query, "privacy": {"epsilon": 10}}
        answer = made(ask(world.client(person), question, new_key()))
        assert abs(answer["value"] - 60) < 10  # the middle
