"""Previews over HTTP: payers, curves, lists and SQL. Rehearsals: no charge and no trace."""

import httpx
import pytest

from tests.server import Json, Person, World, ask, exact, made, new_key

COUNT: Json = {"query": {"kind": "count"}, "privacy": {"epsilon": "0.25"}}
PATH = "/v1/queries/preview"
REHEARSE = "/v1/queries/rehearse"
MEAN: Json = {"kind": "mean", "column": "age", "group_by": ["region"]}
ACCOUNT = {"currency": "renyi", "epsilon": 3, "delta": "1e-6"}


@pytest.fixture(scope="module")
def asker(live: World) -> tuple[Person, str]:
    person = live.person()
    return person, live.open_dataset(person, epsilon=1)


def auditors(world: World) -> list[httpx.Client]:
    return [world.admin, world.client(world.person(role="viewer"))]


def pointer(reply: httpx.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["errors"][0]["pointer"]


def test_administrators_and_viewers_name_a_payer(live: World, asker: tuple[Person, str]) -> None:
    person, dataset = asker
    body = {"dataset": dataset, **COUNT}
    own = made(live.client(person).post(PATH, json=body))
    for client in auditors(live):
        seen = made(client.post(PATH, json={**body, "as": person.name}))
        assert seen == {**own, "questions_left": 4}
        bought = made(client.post(PATH, json={**body, "account": ACCOUNT}))
        assert bought["fits"]
        assert bought["questions_left"] > 10
        assert pointer(client.post(PATH, json=body)) == (422, "/as")
        both = {**body, "as": "*", "account": ACCOUNT}
        assert pointer(client.post(PATH, json=both)) == (422, "/account")
        short = {**body, "account": {"currency": "renyi", "epsilon": 3}}
        assert pointer(client.post(PATH, json=short)) == (422, "/account/delta")
        assert client.post(PATH, json={**body, "as": "nobody"}).status_code == 404
        elsewhere = {**body, "dataset": "none", "account": ACCOUNT}
        assert client.post(PATH, json=elsewhere).status_code == 404
    assert live.spent(dataset, person.name) == 0


def test_the_charge_equals_the_preview_as_the_analyst(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person, epsilon=1)
    body = {"dataset": dataset, **COUNT}
    seen = made(live.admin.post(PATH, json={**body, "as": person.name}))
    answer = made(ask(live.client(person), body, new_key()))
    assert exact(answer["charged"]) == exact(seen["price"])
    assert answer["charged"]["accounts"][0]["remaining"] == seen["remaining_after"]


def test_payers_and_assumptions_of_lists_and_sql(live: World, asker: tuple[Person, str]) -> None:
    person, dataset = asker
    sql = {"sql": f'SELECT AVG(age) FROM "{dataset}"', "privacy": {"epsilon": 1}}
    guess = {**sql, "assume": {"rows": 500}}
    wrapped = {"questions": [{"dataset": dataset, **COUNT}, guess], "account": ACCOUNT}
    items = made(live.admin.post(PATH, json=wrapped))["items"]
    assert [item["kind"] for item in items] == ["count", "mean"]
    error = items[1]["expected_error"]
    assert error["text"].startswith("Estimate for 500 rows")
    single = made(live.admin.post(PATH, json={**guess, "account": ACCOUNT, "epsilons": ["0.5"]}))
    assert single["expected_error"] == error
    assert single["curve"][0]["expected_error"]["half_width"] > error["half_width"]
    client = live.client(person)
    plain = made(client.post(PATH, json=[guess, {"dataset": dataset, **COUNT}]))
    assert (plain["fits"], plain["stops_at"]) == (False, 1)
    bad = {"sql": f'SELECT AVG(agee) FROM "{dataset}"', "privacy": {"epsilon": 1}}
    reply = client.post(PATH, json={"questions": [guess, bad]})
    assert pointer(reply) == (422, "/questions/1/sql")
    assert pointer(client.post(PATH, json=[{**guess, "as": "*"}])) == (422, "/0/as")


@pytest.mark.parametrize(
    ("more", "at"),
    [
        ({"epsilons": []}, "/epsilons"),
        ({"epsilons": [0.1] * 51}, "/epsilons"),
        ({"epsilons": [0.1, 0]}, "/epsilons/1"),
        ({"epsilons": [0.1], "privacy": {"rho": "0.1"}}, "/epsilons"),
        ({"epsilons": [0.1], "privacy": {"half_width": 5}}, "/epsilons"),
        ({"assume": {"rows": 0}}, "/assume/rows"),
        ({"as": "somebody else"}, "/as"),
    ],
)
def test_what_cannot_be_previewed_names_its_field(
    live: World, asker: tuple[Person, str], more: Json, at: str
) -> None:
    person, dataset = asker
    reply = live.client(person).post(PATH, json={"dataset": dataset, **COUNT, **more})
    assert pointer(reply) == (422, at)


# Rehearsals


def test_a_rehearsal_needs_no_budget_and_no_data_and_leaves_no_trace(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person, epsilon=1)
    client = live.client(person)
    count = {"dataset": dataset, "query": {"kind": "count"}, "privacy": {"epsilon": 1}}
    answer = made(ask(client, count, new_key()))  # nothing is left
    card = made(live.admin.get(f"/v1/datasets/{dataset}"))
    (live.ledger.data / card["source"]["path"]).unlink()
    viewer = live.client(live.person(role="viewer"))
    entries = made(live.admin.get("/v1/ledger"))["items"]
    for caller in (client, live.admin, viewer):
        reply = made(caller.post(REHEARSE, json={**count, "query": MEAN}))
        assert (reply["status"], reply["made_up"], reply["rows"]) == ("rehearsed", True, 1000)
        assert (reply["id"], reply["receipt"]) == (None, None)
        assert reply["charged"]["epsilon"] == 0
        assert reply["charged"]["price"]["epsilon"] == 1
        assert len(reply["value"]) == 4
        assert set(answer) <= set(reply)
    assert made(live.admin.get("/v1/ledger"))["items"] == entries
    assert len(made(client.get("/v1/queries"))["items"]) == 1


def test_a_rehearsal_takes_sql_and_a_number_of_rows(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person, epsilon=1)
    client = live.client(person)
    sql = f'SELECT region, COUNT(*), AVG(age) FROM "{dataset}" GROUP BY region'
    body = {"sql": sql, "privacy": {"epsilon": 1}, "assume": {"rows": 60}}
    reply = made(client.post(REHEARSE, json=body))
    assert (reply["rows"], len(reply["value"])) == (60, 4)
    refused = client.post(REHEARSE, json={**body, "assume": {"rows": 10**6}})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/assume/rows"
    stranger = live.client(live.person())
    assert stranger.post(REHEARSE, json=body).json()["type"] == "/problems/no-grant"


@pytest.mark.parametrize("field", ["epsilons", "as", "account"])
def test_fields_of_a_preview_are_refused(live: World, field: str) -> None:
    body = {"dataset": "d", "query": {"kind": "count"}, "privacy": {"epsilon": 1}, field: "*"}
    reply = live.client(live.person()).post(REHEARSE, json=body)
    assert reply.json()["errors"][0]["pointer"] == f"/{field}"
