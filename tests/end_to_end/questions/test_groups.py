"""Groups of analysts, and losses booked from outside releases, over HTTP."""

import math
import secrets
from decimal import Decimal

import httpx
import pytest

from tests.server import Json, Person, World, ask, count, exact, made, new_key

ONE = {"epsilon": 1, "delta": "1e-6"}


def clinic(world: World, *, members: int = 2, epsilon: float = 1) -> tuple[str, str, list[Person]]:
    """A dataset, a group with a budget on it, and two members with an epsilon of 10 each."""
    group = f"clinic-{secrets.token_hex(4)}"
    people = [world.person() for _ in range(members)]
    dataset = world.open_dataset(*people)
    for person in people:
        into(world, person, group)
    world.grant(dataset, f"group:{group}", epsilon)
    return dataset, group, people


def into(world: World, person: Person, *groups: str) -> Json:
    path = f"/v1/analysts/{person.name}"
    return made(world.admin.patch(path, json={"groups": list(groups)}))


def ask_count(world: World, person: Person, dataset: str, epsilon: float) -> httpx.Response:
    return ask(world.client(person), count(dataset, epsilon, fresh=True), new_key())


# Groups


def test_a_shared_budget_limits_its_members_together(live_on_each: World) -> None:
    world = live_on_each
    dataset, group, (ann, bob) = clinic(world)
    answer = made(ask_count(world, ann, dataset, 0.7))
    holders = [each["holder"] for each in answer["charged"]["accounts"]]
    assert holders == [ann.name, f"group:{group}", "*"]
    before = [world.budget(dataset, holder) for holder in (bob.name, f"group:{group}", "*")]
    refused = ask_count(world, bob, dataset, 0.4)
    assert (refused.status_code, refused.json()["account"]) == (402, f"group:{group}")
    assert refused.json()["largest_epsilon"] == 0.3
    after = [world.budget(dataset, holder) for holder in (bob.name, f"group:{group}", "*")]
    assert after == before, "all accounts pay or none"
    made(ask_count(world, bob, dataset, 0.3))
    assert world.spent(dataset, f"group:{group}") == 1
    assert ask_count(world, ann, dataset, 0.01).status_code == 402
    world.must_be_sound()


def test_only_an_administrator_ends_a_membership_and_its_spend_stays(live: World) -> None:
    dataset, group, (ann, bob) = clinic(live)
    made(ask_count(live, ann, dataset, 1))
    assert ask_count(live, bob, dataset, 0.1).status_code == 402
    path = f"/v1/analysts/{bob.name}"
    assert live.client(bob).patch(path, json={"groups": []}).status_code == 403
    assert ask_count(live, bob, dataset, 0.1).status_code == 402
    assert into(live, bob)["groups"] == []
    answer = made(ask_count(live, bob, dataset, 0.1))
    assert [each["holder"] for each in answer["charged"]["accounts"]] == [bob.name, "*"]
    assert live.spent(dataset, f"group:{group}") == 1
    assert ask_count(live, ann, dataset, 0.1).status_code == 402
    into(live, bob, group.upper())
    assert ask_count(live, bob, dataset, 0.1).status_code == 402, (
        "every spelling of the name is refused"
    )
    live.must_be_sound()


def test_only_members_see_a_groups_budget(live: World) -> None:
    dataset, group, (ann, _) = clinic(live)
    stranger = live.person()
    path = f"/v1/datasets/{dataset}/budgets/group:{group}"
    assert made(live.client(ann).get(path))["holder"] == f"group:{group}"
    assert live.client(stranger).get(path).status_code == 404
    listed = made(live.client(ann).get("/v1/budgets"))["items"]
    assert {each["holder"] for each in listed} == {ann.name, f"group:{group}"}
    assert made(live.client(stranger).get("/v1/budgets"))["items"] == []
    nobody = live.admin.put(
        f"/v1/datasets/{dataset}/budgets/group:nobody", json={"currency": "pure", "epsilon": 1}
    )
    assert nobody.status_code == 404, "a group is defined by its members"


def test_a_groups_budget_alone_is_a_grant_in_any_currency(live: World) -> None:
    group, person = f"lab-{secrets.token_hex(4)}", live.person()
    dataset = live.open_dataset()
    assert ask_count(live, person, dataset, 0.1).status_code == 403
    into(live, person, group)
    assert ask_count(live, person, dataset, 0.1).status_code == 403
    live.grant(dataset, f"group:{group}", 1, currency="renyi", delta="1e-6")
    answer = made(ask_count(live, person, dataset, 0.1))
    assert "Feldman" in answer["theorem"]
    assert ask_count(live, person, dataset, 5).json()["account"] == f"group:{group}"
    seen = made(live.client(person).get("/v1/datasets"))["items"]
    assert [each["name"] for each in seen] == [dataset]
    preview = made(live.client(person).post("/v1/queries/preview", json=count(dataset, 5)))
    assert not preview["fits"]
    live.must_be_sound()


# Losses booked from outside


def book(world: World, dataset: str, *events: Json, key: str | None = None, **more: str) -> Json:
    return made(booking(world, dataset, *events, key=key, **more))


def booking(
    world: World, dataset: str, *events: Json, key: str | None = None, **more: str
) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    body = {"events": list(events), **more}
    return world.admin.post(f"/v1/datasets/{dataset}/losses", json=body, headers=headers)


LAPLACE = {"mechanism": "laplace", "epsilon": 0.5}
GAUSSIAN = {"mechanism": "gaussian", "noise_multiplier": 20, "count": 4}


def test_a_booked_loss_counts_on_the_shared_account_beyond_its_limit(live_on_each: World) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person, total=1)
    booked = book(world, dataset, {**LAPLACE, "count": 1})
    assert booked["holders"] == ["*"]
    assert world.spent(dataset, "*") == Decimal("0.5")
    refused = ask_count(world, person, dataset, 0.6)
    assert (refused.status_code, refused.json()["account"]) == (402, "*")
    made(ask_count(world, person, dataset, 0.4))
    book(world, dataset, LAPLACE, {"mechanism": "generic", "epsilon": "0.25"}, reason="a yearbook")
    now = world.budget(dataset, "*")
    assert (exact(now["spent"]), now["frozen"]) == (Decimal("1.65"), True)
    frozen = ask_count(world, person, dataset, 0.01)
    assert (frozen.status_code, frozen.json()["type"]) == (423, "/problems/account-frozen")
    assert world.spent(dataset, person.name) == Decimal("0.4"), (
        "the analyst's own account is unchanged"
    )
    (first, second) = world.entries(dataset, "booked")
    assert first["seq"] == booked["entry"]
    assert second["body"]["reason"] == "a yearbook"
    assert [event["mechanism"] for event in second["body"]["events"]] == ["laplace", "generic"]
    world.must_be_sound()


def test_a_loss_is_booked_once_per_key(live_on_each: World) -> None:
    world = live_on_each
    dataset = world.open_dataset()
    key = new_key()
    first = book(world, dataset, LAPLACE, key=key)
    assert book(world, dataset, LAPLACE, key=key) == first
    assert world.spent(dataset, "*") == Decimal("0.5")
    another = booking(world, dataset, {**LAPLACE, "count": 2}, key=key)
    assert (another.status_code, another.json()["type"]) == (422, "/problems/idempotency-conflict")
    assert book(world, dataset, LAPLACE, key=new_key()) != first
    assert world.spent(dataset, "*") == 1
    world.must_be_sound()


def test_a_pure_account_cannot_count_gaussian_noise(live: World) -> None:
    dataset = live.open_dataset()
    before = live.entries(dataset), live.budget(dataset, "*")
    refused = booking(live, dataset, LAPLACE, GAUSSIAN)
    assert refused.status_code == 422
    (error,) = refused.json()["errors"]
    assert error["pointer"].startswith("/events")
    assert "zcdp, renyi, gdp" in refused.text
    assert (live.entries(dataset), live.budget(dataset, "*")) == before


@pytest.mark.parametrize("currency", ["zcdp", "renyi", "gdp"])
def test_accounts_with_a_curve_count_gaussian_noise(live: World, currency: str) -> None:
    person, dataset = live.person(), live.dataset()
    for holder in ("*", person.name):
        live.grant(dataset, holder, 1, currency=currency, delta="1e-6")
    shown = book(live, dataset, GAUSSIAN, holder=person.name)
    assert shown["holders"] == ["*", person.name]
    unit = {"zcdp": ("rho", 0.005), "renyi": ("renyi", 0.11), "gdp": ("mu", 0.1)}[currency]
    for holder in ("*", person.name):
        assert live.budget(dataset, holder)["spent"][unit[0]] == pytest.approx(unit[1])
    left = live.budget(dataset, person.name)["largest_epsilon"]
    assert 0 < left < 1
    made(ask_count(live, person, dataset, left * 0.999))
    live.must_be_sound()


def test_an_approximate_account_counts_gaussian_noise_at_its_delta(live: World) -> None:
    dataset = live.dataset()
    live.grant(dataset, "*", 10, currency="approximate", delta="1e-5")
    assert booking(live, dataset, GAUSSIAN).status_code == 422
    book(live, dataset, {**GAUSSIAN, "delta": "1e-6"})
    spent = live.budget(dataset, "*")["spent"]
    assert exact(spent, "delta") == Decimal("1e-6")
    # Four releases compose to mu = 0.1. Their epsilon comes from the exact trade-off curve.
    epsilon, mu = spent["epsilon"], 0.1
    above, below = (math.erfc((epsilon / mu + way * mu / 2) / math.sqrt(2)) / 2 for way in (-1, 1))
    assert above - math.exp(epsilon) * below == pytest.approx(1e-6, rel=1e-6)
    live.must_be_sound()


BAD_EVENTS: dict[str, tuple[Json, str]] = {
    "a kind nobody knows": ({"mechanism": "magic", "epsilon": 1}, "/events/1"),
    "no count": ({**LAPLACE, "count": 0}, "/events/1/count"),
    "a count that is none": ({**LAPLACE, "count": 1.5}, "/events/1/count"),
    "too many": ({**LAPLACE, "count": 10**10}, "/events/1/count"),
    "a negative epsilon": ({**LAPLACE, "epsilon": -1}, "/events/1/epsilon"),
    "NaN": ({**LAPLACE, "epsilon": "NaN"}, "/events/1/epsilon"),
    "no noise": ({"mechanism": "gaussian", "noise_multiplier": 0}, "/events/1/noise_multiplier"),
    "a delta of one": ({"mechanism": "generic", "epsilon": 1, "delta": 1}, "/events/1/delta"),
    "a rho left out": ({"mechanism": "zcdp"}, "/events/1/rho"),
    "a member too many": ({**LAPLACE, "sigma": 1}, "/events/1/sigma"),
}


@pytest.mark.parametrize("what", BAD_EVENTS)
def test_an_invalid_event_is_named_by_index_and_field(live: World, what: str) -> None:
    event, pointer = BAD_EVENTS[what]
    before = live.entries("people")
    reply = booking(live, "people", LAPLACE, event)
    assert reply.status_code == 422, reply.text
    pointers = [each["pointer"] for each in reply.json()["errors"]]
    assert any(each.startswith(pointer) for each in pointers), pointers
    assert live.entries("people") == before


def test_deltas_that_add_up_to_one_are_refused(live: World) -> None:
    dataset = live.dataset()
    live.grant(dataset, "*", 10, currency="approximate", delta="1e-5")
    event = {"mechanism": "generic", "epsilon": 1, "delta": 0.4, "count": 3}
    assert booking(live, dataset, event).status_code == 422


def test_only_administrators_book_losses_and_only_on_granted_accounts(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    body = {"events": [LAPLACE]}
    path = f"/v1/datasets/{dataset}/losses"
    assert live.client(person).post(path, json=body).status_code == 403
    assert live.client("vera").post(path, json=body).status_code == 403
    assert live.admin.post("/v1/datasets/none/losses", json=body).status_code == 404
    stranger = live.person()
    assert booking(live, dataset, LAPLACE, holder=stranger.name).status_code == 404
    assert live.entries(dataset, "booked") == []
