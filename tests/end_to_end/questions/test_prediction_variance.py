"""Prediction variance over HTTP: previewed, charged, answered as a factor; refused by name."""

import pytest

from tests.server import Json, Person, World, ask, exact, made, new_key

QUERY: Json = {
    "kind": "prediction_variance",
    "features": ["age", "smoker", "region"],
    "point": {"age": 120, "smoker": True, "region": "south"},
    "ridge": 0.25,
}


@pytest.fixture(scope="module")
def asker(live_on_each: World) -> tuple[World, Person, str]:
    world = live_on_each
    person = world.person()
    dataset = world.dataset()
    for holder in ("*", person.name):
        world.grant(dataset, holder, 100_000)
    return world, person, dataset


def test_the_charge_equals_the_preview_and_the_answer_is_a_factor(
    asker: tuple[World, Person, str],
) -> None:
    """At epsilon 500 the noise is a factor of at most 1.1, except with probability 1e-5."""
    world, person, dataset = asker
    client = world.client(person)
    question = {"dataset": dataset, "query": QUERY, "privacy": {"epsilon": 500}}
    preview = made(client.post("/v1/queries/preview", json=question))
    assert preview["mechanism"]["kind"] == "laplace"
    assert preview["mechanism"]["ridge"] == 0.25
    error = preview["expected_error"]
    assert (error["unit"], error["promise"]) == ("factor", True)
    assert 1 < error["half_width"] < 1.1
    key = new_key()
    answer = made(ask(client, question, key))
    assert exact(answer["charged"]) == exact(preview["price"]) == 500
    assert 0 < answer["interval"]["low"] < answer["value"] < answer["interval"]["high"] < 16
    assert answer["interval"]["high"] / answer["interval"]["low"] < 1.05
    assert ask(client, question, key).json() == answer
    again = made(ask(client, {**question, "fresh": True}, new_key()))
    assert 1 / 1.2 < again["value"] / answer["value"] < 1.2
    nobody = {"column": "age", "op": ">", "value": 119}
    empty = {**question, "query": {**QUERY, "where": nobody}}
    variance = made(ask(client, empty, new_key()))["value"]
    assert 14 < variance <= 16  # |x0|^2 / ridge
    world.must_be_sound()


@pytest.mark.parametrize(
    ("changes", "at"),
    [
        ({"ridge": 0}, "/query/ridge"),
        ({"ridge": None}, "/query/ridge"),
        ({"ridge": "1"}, "/query/ridge"),
        ({"point": {"age": 1}}, "/query/point"),
        ({"point": {**QUERY["point"], "age": 121}}, "/query/point/age"),
        ({"point": [1, 2]}, "/query/point"),
        ({"features": []}, "/query/features"),
        ({"features": ["seen"], "point": {"seen": "2021-01-01"}}, "/query/features/0"),
    ],
)
def test_an_invalid_field_is_named_and_nothing_is_charged(
    asker: tuple[World, Person, str], changes: Json, at: str
) -> None:
    world, person, dataset = asker
    before = world.spent(dataset, person.name)
    question = {"dataset": dataset, "query": {**QUERY, **changes}, "privacy": {"epsilon": 1}}
    reply = ask(world.client(person), question, new_key())
    assert reply.status_code == 422, reply.text
    assert any(each["pointer"].startswith(at) for each in reply.json()["errors"]), reply.text
    assert world.spent(dataset, person.name) == before
