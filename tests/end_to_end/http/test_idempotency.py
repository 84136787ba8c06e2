"""One request key, one action: for questions and for every POST that changes something."""

import time
from decimal import Decimal

from tests.server import World, ask, card, count, made, new_key, some_rows


def test_the_same_key_and_body_give_the_same_bytes_and_cost_nothing(live_on_each: World) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person)
    client = world.client(person)
    request_key = new_key()
    replies = [ask(client, count(dataset, 0.1, fresh=True), request_key) for _ in range(5)]
    assert len({reply.content for reply in replies}) == 1
    replayed = [reply.headers.get("Idempotent-Replayed") for reply in replies]
    assert replayed == [None, "true", "true", "true", "true"]
    assert {reply.headers["Idempotency-Key"] for reply in replies} == {request_key}
    assert world.spent(dataset, person.name) == Decimal("0.1")
    assert len(world.entries(dataset, "charge")) == 1
    world.must_be_sound()


def test_the_order_of_fields_does_not_change_the_body(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    client = live.client(person)
    request_key = new_key()
    question = count(dataset, 0.1)
    first = ask(client, question, request_key)
    again = ask(client, dict(reversed(question.items())), request_key)
    assert again.content == first.content


def test_another_body_under_a_key_is_refused_and_changes_nothing(live_on_each: World) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person)
    client = world.client(person)
    request_key = new_key()
    first = ask(client, count(dataset, 0.1), request_key)
    before = world.entries(dataset)
    other = ask(client, count(dataset, 0.2), request_key)
    assert other.status_code == 422
    assert other.json()["type"] == "/problems/idempotency-conflict"
    assert world.entries(dataset) == before
    assert ask(client, count(dataset, 0.1), request_key).content == first.content


def test_keys_belong_to_their_analyst(live: World) -> None:
    one, two = live.person(), live.person()
    dataset = live.open_dataset(one, two)
    request_key = new_key()
    first = made(ask(live.client(one), count(dataset, 0.1), request_key))
    second = made(ask(live.client(two), count(dataset, 0.2), request_key))
    assert first["id"] != second["id"]


def test_a_refused_question_leaves_its_key_free(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person, epsilon=0.1)
    client = live.client(person)
    request_key = new_key()
    assert ask(client, count(dataset, 0.2), request_key).status_code == 402
    live.grant(dataset, person.name, 1)
    assert ask(client, count(dataset, 0.2), request_key).status_code == 200


def test_without_a_key_each_request_stands_alone(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    client = live.client(person)
    replies = [ask(client, count(dataset, 0.1, fresh=True)) for _ in range(2)]
    keys = {reply.headers["Idempotency-Key"] for reply in replies}
    assert len(keys) == 2
    assert live.spent(dataset, person.name) == Decimal("0.2")
    again = ask(client, count(dataset, 0.1, fresh=True), replies[0].headers["Idempotency-Key"])
    assert again.content == replies[0].content


def test_an_invalid_key_is_refused(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    client = live.client(person)
    for bad in ("", "x" * 256, "caf\u00e9", "a\tb"):
        reply = client.post(
            "/v1/queries",
            json=count(dataset),
            headers={b"Idempotency-Key": bad.encode("latin-1")},
        )
        assert reply.status_code == 422
        assert reply.json()["errors"][0]["pointer"] == "Idempotency-Key"
    assert live.entries(dataset, "charge") == []


def test_administrative_posts_run_once_per_key(live_on_each: World) -> None:
    world = live_on_each
    admin = world.admin
    headers = {"Idempotency-Key": new_key()}
    name = f"once-{time.monotonic_ns()}"
    bodies = [admin.post("/v1/analysts", json={"name": name}, headers=headers) for _ in range(2)]
    assert [reply.status_code for reply in bodies] == [201, 201]
    assert bodies[0].content == bodies[1].content
    other = admin.post("/v1/analysts", json={"name": name + "x"}, headers=headers)
    assert other.json()["type"] == "/problems/idempotency-conflict"

    headers = {"Idempotency-Key": new_key()}
    first, second = (
        made(admin.post(f"/v1/analysts/{name}/keys", headers=headers)) for _ in range(2)
    )
    assert first["id"] == second["id"]
    assert first["key"] is not None
    assert second["key"] is None
    assert len(made(admin.get(f"/v1/analysts/{name}"))["keys"]) == 1

    headers = {"Idempotency-Key": new_key()}
    body = card(world.write_csv(some_rows()))
    first, second = (made(admin.post("/v1/datasets", json=body, headers=headers)) for _ in range(2))
    assert first == second
    assert len(world.entries(body["name"], "dataset_registered")) == 1
    conflict = admin.post("/v1/datasets", json=body)
    assert conflict.status_code == 409
