"""Budgets over HTTP: grants, refusals with the amount that fits, freezing, ETags, visibility."""

import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.server import World, ask, count, exact, made, new_key


def test_a_refusal_names_the_largest_epsilon_and_exactly_that_is_then_admitted(
    live_on_each: World,
) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person, epsilon="0.300000000007")
    client = world.client(person)
    made(ask(client, count(dataset, "0.1"), new_key()))
    before = world.entries(dataset)
    refused = ask(client, count(dataset, 0.25), new_key())
    assert refused.status_code == 402
    assert refused.headers["content-type"] == "application/problem+json"
    problem = refused.json()
    assert problem["type"] == "/problems/budget-exhausted"
    assert problem["account"] == person.name
    assert exact(problem["requested"]) == Decimal("0.25")
    assert exact(problem["remaining"]) == Decimal("0.200000000007")
    largest = exact(problem, "largest_epsilon")
    assert largest == Decimal("0.200000000007")
    assert world.entries(dataset) == before
    assert world.spent(dataset, person.name) == Decimal("0.1")

    one_more = largest + Decimal("0.000000000001")
    assert ask(client, count(dataset, str(one_more)), new_key()).status_code == 402
    made(ask(client, count(dataset, str(largest)), new_key()))
    assert exact(world.budget(dataset, person.name)["remaining"]) == 0
    assert ask(client, count(dataset, "0.000000000001"), new_key()).status_code == 402
    world.must_be_sound()


def test_a_refusal_by_the_shared_budget_names_it(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person, epsilon=10, total=0.1)
    refused = ask(live.client(person), count(dataset, 0.2), new_key())
    assert (refused.status_code, refused.json()["account"]) == (402, "*")
    assert live.spent(dataset, person.name) == live.spent(dataset, "*") == 0


def test_a_limit_below_the_spend_freezes_the_account_and_rewrites_nothing(
    live_on_each: World,
) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person, epsilon=1)
    client = world.client(person)
    made(ask(client, count(dataset, 0.5), new_key()))
    lowered = world.grant(dataset, person.name, 0.4)
    assert lowered["frozen"]
    assert exact(lowered["spent"]) == Decimal("0.5")
    assert exact(lowered["remaining"]) == 0
    refused = ask(client, count(dataset, 0.01), new_key())
    assert (refused.status_code, refused.json()["type"]) == (423, "/problems/account-frozen")
    assert world.spent(dataset, person.name) == Decimal("0.5")
    world.must_be_sound()
    assert not world.grant(dataset, person.name, 0.6)["frozen"]
    assert ask(client, count(dataset, 0.1), new_key()).status_code == 200
    grants = [entry["body"] for entry in world.entries(dataset, "grant")]
    mine = [body for body in grants if body["holder"] == person.name]
    limits = [body["after"]["terms"]["epsilon"] for body in mine]
    assert limits == [10**12, 4 * 10**11, 6 * 10**11]
    assert [body["before"] for body in mine][1:] == [body["after"] for body in mine][:-1]


def test_an_approximate_account_needs_a_delta_and_a_pure_one_has_none(live: World) -> None:
    person = live.person()
    dataset = live.dataset()
    path = f"/v1/datasets/{dataset}/budgets/{person.name}"
    for body in (
        {"currency": "approximate", "epsilon": 1},
        {"currency": "approximate", "epsilon": 1, "delta": 0},
        {"currency": "pure", "epsilon": 1, "delta": 1e-6},
    ):
        reply = live.admin.put(path, json=body)
        assert reply.status_code == 422
        assert reply.json()["errors"][0]["pointer"] == "/delta"
    live.grant(dataset, "*", 1)
    granted = live.grant(dataset, person.name, 1, currency="approximate", delta=1e-6)
    assert granted["limit"] == {"epsilon": 1.0, "delta": 1e-6}
    made(ask(live.client(person), count(dataset, 0.25), new_key()))
    after = live.budget(dataset, person.name)
    assert (exact(after["spent"]), exact(after["remaining"])) == (Decimal("0.25"), Decimal("0.75"))
    changed = live.admin.put(path, json={"currency": "pure", "epsilon": 2})
    assert changed.status_code == 200  # no delta is spent, so the spend converts
    assert exact(changed.json()["spent"]) == Decimal("0.25")
    changed = live.admin.put(path, json={"currency": "renyi", "epsilon": 2, "delta": 1e-6})
    assert changed.status_code == 200
    assert changed.json()["spent"]["epsilon"] == 0.25
    for other in ({"currency": "pure"}, {"currency": "renyi", "delta": 1e-7}):
        refused = live.admin.put(path, json={"epsilon": 2, **other})
        assert refused.status_code == 409  # a curve cannot be converted back, and delta stays


def test_limits_round_down_and_costs_round_up(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person, epsilon="0.1000000000019")
    assert exact(live.budget(dataset, person.name)["limit"]) == Decimal("0.100000000001")
    made(ask(live.client(person), count(dataset, "0.0000000000011"), new_key()))
    assert live.spent(dataset, person.name) == Decimal("0.000000000002")


def test_if_match_changes_only_the_version_that_was_read(live_on_each: World) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person, epsilon=1)
    path = f"/v1/datasets/{dataset}/budgets/{person.name}"
    seen = world.admin.get(path).headers["ETag"]
    unchanged = world.admin.get(path, headers={"If-None-Match": seen})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    body = {"currency": "pure", "epsilon": 2}
    assert world.admin.put(path, json=body, headers={"If-Match": seen}).status_code == 200
    stale = world.admin.put(path, json=body, headers={"If-Match": seen})
    assert (stale.status_code, stale.json()["type"]) == (412, "/problems/precondition-failed")
    new = world.admin.put(path, json=body, headers={"If-None-Match": "*"})
    assert new.status_code == 412
    before = world.admin.get(path).headers["ETag"]
    made(ask(world.client(person), count(dataset, 0.1), new_key()))
    after = world.admin.get(path, headers={"If-None-Match": before})
    assert after.status_code == 200
    assert after.headers["ETag"] != before
    now = after.headers["ETag"]
    for tags in ('"not-ours"', f"W/{now}", f'"7", "x",, {before}', '"018"', '"' + "9" * 300 + '"'):
        other = world.admin.put(path, json=body, headers={"If-Match": tags})
        assert (tags, other.status_code) == (tags, 412)
    for tags in ("1", '"no end', "", ",", '*, "1"', f"{now} {now}"):
        odd = world.admin.put(path, json=body, headers={"If-Match": tags})
        assert (tags, odd.status_code) == (tags, 422)
        assert odd.json()["errors"][0]["pointer"] == "If-Match"
    for tags in (f"W/{now}", f'"x", {now}', "*"):
        seen_before = world.admin.put(path, json=body, headers={"If-None-Match": tags})
        assert (tags, seen_before.status_code) == (tags, 412)
    assert world.admin.get(path).headers["ETag"] == now
    for tags in ("3", '"no end', '"x"', "W/"):
        assert world.admin.get(path, headers={"If-None-Match": tags}).status_code == 200
    two_lines = [("If-None-Match", '"x"'), ("If-None-Match", f"W/{now}")]
    assert world.admin.get(path, headers=two_lines).status_code == 304
    two_lines = [("If-Match", '"x"'), ("If-Match", "W/" + now)]
    assert world.admin.put(path, json=body, headers=two_lines).status_code == 412
    one_of = world.admin.put(path, json=body, headers=[("If-Match", before), ("If-Match", now)])
    assert one_of.status_code == 200
    not_that = world.admin.put(path, json=body, headers={"If-None-Match": now})
    assert not_that.status_code == 200
    missing = f"/v1/datasets/{dataset}/budgets/{world.person().name}"
    none = world.admin.put(missing, json=body, headers={"If-Match": '"1"'})
    assert none.status_code == 412
    assert world.admin.put(missing, json=body, headers={"If-None-Match": "*"}).status_code == 201


@pytest.mark.parametrize(("headers", "others"), [({"If-None-Match": "*"}, 412), ({}, 200)])
def test_one_of_many_concurrent_grants_creates_the_budget(
    live_on_each: World, headers: dict[str, str], others: int
) -> None:
    """All the others find it."""
    world = live_on_each
    dataset = world.dataset()
    body = {"currency": "pure", "epsilon": 1}
    clients = [world.server.client(world.ledger.admin_key) for _ in range(8)]
    for _ in range(4):
        path = f"/v1/datasets/{dataset}/budgets/{world.person().name}"
        start = threading.Barrier(8)

        def grant(client: httpx.Client, path: str = path, start: Any = start) -> int:
            start.wait()
            return client.put(path, json=body, headers=headers).status_code

        with ThreadPoolExecutor(8) as pool:
            assert sorted(pool.map(grant, clients)) == sorted([201, *[others] * 7])
    world.must_be_sound()


def test_analysts_see_their_own_budgets_and_viewers_and_administrators_see_all(live: World) -> None:
    one, two, viewer = live.person(), live.person(), live.person(role="viewer")
    dataset = live.open_dataset(one, two)
    path = f"/v1/datasets/{dataset}/budgets"
    for client in (live.client(viewer), live.admin):
        for holder in (one.name, two.name, "*"):
            assert client.get(f"{path}/{holder}").status_code == 200
    mine = live.client(one)
    assert mine.get(f"{path}/{one.name}").status_code == 200
    assert mine.get(f"{path}/{one.name.upper()}").status_code == 200
    hidden = [mine.get(f"{path}/{holder}") for holder in (two.name, "*", "nobody-at-all")]
    assert {reply.status_code for reply in hidden} == {404}
    assert len({reply.content for reply in hidden}) == 1
    listed = made(mine.get("/v1/budgets"))["items"]
    assert [(item["dataset"], item["holder"]) for item in listed] == [(dataset, one.name)]
    everything = made(live.client(viewer).get("/v1/budgets", params={"limit": 200}))["items"]
    assert {(dataset, one.name), (dataset, two.name), (dataset, "*")} <= {
        (item["dataset"], item["holder"]) for item in everything
    }


def test_an_analyst_cannot_see_the_spend_of_others(live: World) -> None:
    one, two = live.person(), live.person()
    dataset = live.open_dataset(one, two, total=50)
    made(ask(live.client(two), count(dataset, 0.7), new_key()))
    answer = made(ask(live.client(one), count(dataset, 0.1), new_key()))
    own, everybody = answer["charged"]["accounts"]
    assert own["holder"] == one.name
    assert everybody == {"holder": "*", "spent": None, "remaining": None}


@pytest.mark.parametrize("role", ["analyst", "viewer"])
def test_only_administrators_grant(live: World, role: str) -> None:
    person = live.person(role=role)
    dataset = live.open_dataset(live.person())
    before = live.entries(dataset)
    reply = live.client(person).put(
        f"/v1/datasets/{dataset}/budgets/{person.name}", json={"currency": "pure", "epsilon": 9}
    )
    assert reply.status_code == 403
    assert live.entries(dataset) == before


def test_a_budget_needs_an_existing_analyst_and_an_existing_dataset(live: World) -> None:
    viewer = live.person(role="viewer")
    dataset = live.dataset()
    body = {"currency": "pure", "epsilon": 1}
    for budget_path, status in (
        (f"{dataset}/budgets/{viewer.name}", 422),
        (f"{dataset}/budgets/nobody-at-all", 404),
        ("never-registered/budgets/*", 404),
    ):
        assert live.admin.put(f"/v1/datasets/{budget_path}", json=body).status_code == status
    assert live.entries(dataset, "grant") == []


def test_used_share_and_questions_left_follow_the_spend(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person, epsilon=1)
    made(ask(live.client(person), count(dataset, 0.25), new_key()))
    budget = live.budget(dataset, person.name)
    assert budget["used"] == 0.25
    assert budget["questions_left"] == 7
    assert budget["largest_epsilon"] == 0.75
