"""DELETE /v1/datasets/{dataset}: it corrects a wrong card as long as nothing was charged."""

from pathlib import Path

import httpx
import pytest

from tests.bursard import wait_until
from tests.server import HEADER, Person, World, ask, card, count, made, new_key, some_rows


def withdraw(world: World, dataset: str, key: str | None = None, **more: str) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return world.admin.delete(f"/v1/datasets/{dataset}", headers=headers, params=more)


def prepared(home: Path) -> set[str]:
    return {path.stem for path in (home / "versions").glob("*.duckdb")}


def persons_file(world: World) -> str:
    """A file with two rows per person."""
    rows = [[f"p{i // 2}", *row] for i, row in enumerate(some_rows())]
    return world.write_csv(rows, header=["who", *HEADER])


def granted(world: World, dataset: str, person: Person) -> None:
    for holder in ("*", person.name):
        world.grant(dataset, holder, 10)


def test_a_wrong_person_column_can_be_corrected(live_on_each: World) -> None:
    world = live_on_each
    person, path = world.person(), persons_file(world)
    wrong = world.dataset(path)
    granted(world, wrong, person)
    before = prepared(world.ledger.home)
    right = card(path, name=wrong, person={"kind": "column", "column": "who", "rows_max": 2})
    assert world.admin.post("/v1/datasets", json=right).status_code == 409
    body = made(withdraw(world, wrong, reason="a person has two rows"))
    assert (body["dataset"], body["status"]) == (wrong, "withdrawn")
    assert "registered again" in body["detail"]

    # It looks like a name that never existed.
    for reply in (world.admin.get(f"/v1/datasets/{wrong}"), withdraw(world, wrong)):
        assert (reply.status_code, reply.json()["type"]) == (404, "/problems/not-found")
    client = world.client(person)
    unknown = ask(client, count("never-was"))
    refused = ask(client, count(wrong))
    assert (refused.status_code, refused.text) == (unknown.status_code, unknown.text)
    assert all(item["dataset"] != wrong for item in world.pages("/v1/budgets"))
    assert prepared(world.ledger.home) < before  # the server has deleted its rows too
    (entry,) = [
        item
        for item in world.pages("/v1/ledger")
        if item["body"].get("dataset") == wrong and item["kind"] == "dataset_withdrawn"
    ]
    assert (entry["actor"], entry["body"]["reason"]) == ("admin", "a person has two rows")

    made(world.admin.post("/v1/datasets", json=right))
    assert ask(client, count(wrong)).status_code == 403  # earlier budgets belonged to another book
    granted(world, wrong, person)
    made(ask(client, count(wrong)))
    world.must_be_sound()


def test_a_wrong_neighbouring_relation_can_be_corrected(live: World) -> None:
    path = live.write_csv(some_rows())
    dataset = live.dataset(path)
    made(withdraw(live, dataset))
    made(live.admin.post("/v1/datasets", json=card(path, neighbours="replace_one", rows=60)))


def test_after_a_charge_the_name_closes_and_the_loss_stays(live_on_each: World) -> None:
    world = live_on_each
    person, path = world.person(), persons_file(world)
    dataset = world.dataset(path)
    granted(world, dataset, person)
    client, key = world.client(person), new_key()
    answer = made(ask(client, count(dataset), key))
    for _ in range(2):
        body = made(withdraw(world, dataset))
        assert body["status"] == "closed"
        assert "stays" in body["detail"]
    assert made(world.admin.get(f"/v1/datasets/{dataset}"))["status"] == "closed"
    refused = ask(client, count(dataset, 0.5), new_key())
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/dataset-closed")
    assert made(ask(client, count(dataset), key)) == answer
    other = card(path, person={"kind": "column", "column": "who", "rows_max": 2})
    for again in (card(path, name=dataset), other):
        assert world.admin.post("/v1/datasets", json=again).status_code == 409
    assert world.spent(dataset, "*") == world.spent(dataset, person.name) > 0
    assert len(world.entries(dataset, "dataset_changed")) == 1
    world.must_be_sound()


def test_a_booked_loss_keeps_the_name(live: World) -> None:
    dataset = live.dataset()
    live.grant(dataset, "*", 10)
    loss = {"events": [{"mechanism": "laplace", "epsilon": 0.5}], "reason": "a yearbook"}
    made(live.admin.post(f"/v1/datasets/{dataset}/losses", json=loss))
    assert made(withdraw(live, dataset))["status"] == "closed"


def test_the_same_key_withdraws_once(live: World) -> None:
    path, key = live.write_csv(some_rows()), new_key()
    dataset = live.dataset(path)
    first = made(withdraw(live, dataset, key))
    live.dataset(path, name=dataset)
    assert made(withdraw(live, dataset, key)) == first
    assert live.admin.get(f"/v1/datasets/{dataset}").status_code == 200
    other = withdraw(live, dataset, key, reason="another")
    assert (other.status_code, other.json()["type"]) == (422, "/problems/idempotency-conflict")


def test_a_repeated_registration_reports_that_its_dataset_is_gone(live: World) -> None:
    body, headers = card(live.write_csv(some_rows())), {"Idempotency-Key": new_key()}
    made(live.admin.post("/v1/datasets", json=body, headers=headers))
    made(withdraw(live, body["name"]))
    again = live.admin.post("/v1/datasets", json=body, headers=headers)
    assert again.status_code == 409
    assert "withdrawn since" in again.json()["detail"]


def test_a_missing_role_and_an_unknown_name_look_alike(live: World) -> None:
    for name in ("ada", "vera"):
        client = live.client(name)
        replies = [client.delete(f"/v1/datasets/{each}") for each in ("people", "nothing")]
        assert {reply.status_code for reply in replies} == {403}
        assert replies[0].text == replies[1].text
    assert live.admin.get("/v1/datasets/people").status_code == 200
    assert live.admin.delete("/v1/datasets/nothing").status_code == 404


@pytest.mark.parametrize("store_kind", ["postgresql"])
def test_another_server_notices_the_withdrawal_and_deletes_its_prepared_version(
    world: World,
) -> None:
    first = world.serve()
    person = world.person()
    dataset = world.dataset()
    granted(world, dataset, person)
    second = world.ledger.serve(elsewhere=True)
    home = world.ledger.folder / f"home-{len(world.ledger.servers) - 1}"
    client = second.client(person.key)
    too_much = ask(client, count(dataset, 11))
    # nothing was charged, but a version was prepared
    assert too_much.status_code == 402, too_much.text
    assert len(prepared(home)) == 1
    world.use(first)
    assert made(withdraw(world, dataset))["status"] == "withdrawn"
    assert ask(client, count(dataset)).status_code == 403
    second.stop()
    world.ledger.serve(elsewhere=True, BURSAR_HOME=str(home))
    wait_until(lambda: not prepared(home), 30, "the withdrawn version is deleted")


def test_the_command_asks_the_operator_to_confirm(live: World) -> None:
    ledger = live.ledger
    dataset = live.dataset()
    declined = ledger.bursard("dataset", "remove", dataset, check=False)
    assert declined.returncode == 2
    assert "Otherwise the name is closed" in declined.stdout
    assert live.admin.get(f"/v1/datasets/{dataset}").status_code == 200
    done = ledger.bursard("dataset", "remove", dataset, "--yes", "--reason", "a slip")
    assert f"{dataset} is withdrawn." in done.stdout
    assert live.admin.get(f"/v1/datasets/{dataset}").status_code == 404
    unknown = ledger.bursard("dataset", "remove", dataset, "--yes", check=False)
    assert (unknown.returncode, unknown.stderr) == (
        2,
        "bursard: There is no dataset of this name.\n",
    )
    person = live.person()
    charged = live.open_dataset(person)
    made(ask(live.client(person), count(charged)))
    done = ledger.bursard("dataset", "remove", charged, "--yes")
    assert f"{charged} is closed." in done.stdout
