"""Accounts of every currency over HTTP: granted, charged, refused, shown and previewed."""

from decimal import Decimal

import httpx
import pytest

from app.accounting import COMPOSITION_RULES
from tests.server import Json, Person, World, ask, count, exact, made, new_key

DELTA = "1e-6"
GRANTS: dict[str, Json] = {
    "pure": {"currency": "pure", "epsilon": 1},
    "approximate": {"currency": "approximate", "epsilon": 1, "delta": DELTA},
    "zcdp": {"currency": "zcdp", "epsilon": 1, "delta": DELTA},
    "zcdp by rho": {"currency": "zcdp", "rho": "0.03", "delta": DELTA},
    "renyi": {"currency": "renyi", "epsilon": 1, "delta": DELTA},
    "renyi by its order": {"currency": "renyi", "epsilon": 1, "delta": DELTA, "order": 41},
    "gdp": {"currency": "gdp", "epsilon": 1, "delta": DELTA},
    "gdp by mu": {"currency": "gdp", "mu": 0.2, "delta": DELTA, "failure_delta": "1e-7"},
}
OWN_UNITS = {"zcdp": "rho", "renyi": "renyi", "gdp": "mu"}


def put(world: World, dataset: str, holder: str, body: Json) -> httpx.Response:
    return world.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=body)


def opened(world: World, what: str, total: Json | None = None) -> tuple[str, Person]:
    """A dataset on which a new person has this budget, and everybody has a large one."""
    person, dataset = world.person(), world.dataset()
    made(put(world, dataset, "*", total or {"currency": "pure", "epsilon": 1000}))
    made(put(world, dataset, person.name, GRANTS[what]))
    return dataset, person


def own_budget(world: World, dataset: str, person: Person) -> Json:
    return made(world.client(person).get(f"/v1/datasets/{dataset}/budgets/{person.name}"))


def exact_text(reply: Json, name: str) -> str:
    return str(reply.get(f"{name}_exact") or repr(reply[name]))


@pytest.mark.parametrize("what", GRANTS)
def test_every_currency_is_granted_and_its_answers_name_the_theorem(
    live_on_each: World, what: str
) -> None:
    world = live_on_each
    total = GRANTS["renyi" if what == "pure" else "zcdp"]
    dataset, person = opened(world, what, total)
    currency, client = GRANTS[what]["currency"], world.client(person)
    fresh = own_budget(world, dataset, person)
    assert (fresh["currency"], fresh["used"], fresh["last_question"]) == (currency, 0.0, None)
    assert fresh["theorem"] == COMPOSITION_RULES[currency].theorem
    assert fresh["spent"]["epsilon"] == 0.0
    answer = made(ask(client, count(dataset, 0.1), new_key()))
    for each in (currency, total["currency"]):
        assert COMPOSITION_RULES[each].theorem in answer["theorem"]
    assert "Proposition 1" in answer["theorem"]
    mine, everybody = answer["charged"]["accounts"]
    assert everybody == {"holder": "*", "spent": None, "remaining": None}
    now = own_budget(world, dataset, person)
    assert (now["spent"], now["remaining"]) == (mine["spent"], mine["remaining"])
    assert exact(now["spent"]) == Decimal("0.1")
    assert 0 < now["used"] < 1
    if currency in OWN_UNITS:
        unit = OWN_UNITS[currency]
        limit, spent, left = (now[name][unit] for name in ("limit", "spent", "remaining"))
        assert 0 < spent < limit
        assert 0 < left < limit
        assert now["terms"]["delta_conversion"] + now["terms"]["delta_failure"] == pytest.approx(
            1e-6
        )
        assert limit in now["terms"]["limits"] or currency == "gdp"
    world.must_be_sound()


def test_a_grant_in_native_units_keeps_its_epsilon(live: World) -> None:
    dataset, person = opened(live, "zcdp by rho")
    by_rho = own_budget(live, dataset, person)
    assert by_rho["limit"]["rho"] == 0.03
    assert 1.0 < by_rho["limit"]["epsilon"] < 1.3
    dataset, person = opened(live, "gdp by mu")
    by_mu = own_budget(live, dataset, person)
    assert by_mu["limit"]["mu"] == pytest.approx(0.2)
    assert 0.8 < by_mu["limit"]["epsilon"] < 1.1
    assert by_mu["terms"]["delta_failure"] == 1e-7
    dataset, person = opened(live, "renyi by its order")
    chosen = own_budget(live, dataset, person)
    assert (chosen["terms"]["order"], chosen["limit"]["order"]) == (41.0, 41.0)
    assert len(chosen["terms"]["orders"]) == len(chosen["terms"]["limits"]) == 40


@pytest.mark.parametrize("what", GRANTS)
def test_a_refusal_changes_nothing_and_the_largest_epsilon_fits(
    live_on_each: World, what: str
) -> None:
    world = live_on_each
    dataset, person = opened(world, what)
    client = world.client(person)
    made(ask(client, count(dataset, 0.25), new_key()))
    before = own_budget(world, dataset, person), world.entries(dataset)
    refused = ask(client, count(dataset, 20), new_key())
    assert (refused.status_code, refused.json()["type"]) == (402, "/problems/budget-exhausted")
    refusal = refused.json()
    assert (refusal["account"], refusal["currency"]) == (person.name, GRANTS[what]["currency"])
    largest = Decimal(exact_text(refusal, "largest_epsilon"))
    assert largest > 0
    assert exact_text(before[0], "largest_epsilon") == exact_text(refusal, "largest_epsilon")
    assert refusal["remaining"] == before[0]["remaining"]
    more = (largest * Decimal("1.001")).quantize(Decimal("1e-12"))
    assert ask(client, count(dataset, str(more)), new_key()).status_code == 402
    assert (own_budget(world, dataset, person), world.entries(dataset)) == before
    assert ask(client, count(dataset, str(largest)), new_key()).status_code == 200
    world.must_be_sound()


@pytest.mark.parametrize("what", ["pure", "zcdp", "renyi", "gdp"])
def test_exactly_the_shown_number_of_questions_is_left(live: World, what: str) -> None:
    dataset, person = opened(live, what)
    client = live.client(person)
    assert own_budget(live, dataset, person)["questions_left"] == 10
    made(ask(client, count(dataset, 0.04), new_key()))
    last = own_budget(live, dataset, person)["last_question"]
    assert (last["kind"], last["epsilon"]) == ("count", 0.04)
    left = last["questions_left"]
    assert left >= (28 if what in ("zcdp", "renyi") else 24)
    for _ in range(left):
        assert ask(client, count(dataset, 0.04, fresh=True), new_key()).status_code == 200
    assert own_budget(live, dataset, person)["last_question"]["questions_left"] == 0
    assert ask(client, count(dataset, 0.04, fresh=True), new_key()).status_code == 402


def test_the_shared_account_limits_in_its_own_currency(live_on_each: World) -> None:
    world = live_on_each
    dataset, person = opened(world, "pure", {**GRANTS["renyi"], "epsilon": "0.3"})
    client = world.client(person)
    made(ask(client, count(dataset, 0.25), new_key()))
    before = own_budget(world, dataset, person), world.budget(dataset, "*")
    refused = ask(client, count(dataset, 0.25, fresh=True), new_key())
    assert (refused.status_code, refused.json()["account"]) == (402, "*")
    assert (own_budget(world, dataset, person), world.budget(dataset, "*")) == before
    world.must_be_sound()


BAD_GRANTS: dict[str, tuple[Json, str]] = {
    "a rho of a pure account": ({"currency": "pure", "epsilon": 1, "rho": 1}, "/rho"),
    "a delta of a pure account": ({"currency": "pure", "epsilon": 1, "delta": DELTA}, "/delta"),
    "no delta": ({"currency": "renyi", "epsilon": 1}, "/delta"),
    "no epsilon": ({"currency": "renyi", "delta": DELTA}, "/epsilon"),
    "epsilon and rho": ({**GRANTS["zcdp"], "rho": 1}, "/epsilon"),
    "epsilon and mu": ({**GRANTS["gdp"], "mu": 1}, "/epsilon"),
    "an order off the grid": ({**GRANTS["renyi"], "order": 2.1}, "/order"),
    "an order of zcdp": ({**GRANTS["zcdp"], "order": 2}, "/order"),
    "failures of all of delta": ({**GRANTS["zcdp"], "failure_delta": DELTA}, "/failure_delta"),
    "a mu beyond 64 bits": ({"currency": "gdp", "mu": 5000, "delta": DELTA}, "/mu"),
    "a rho beyond 64 bits": ({"currency": "zcdp", "rho": 9.2233e6, "delta": DELTA}, "/rho"),
    "a currency nobody knows": ({"currency": "gold", "epsilon": 1}, "/currency"),
}


@pytest.mark.parametrize("what", BAD_GRANTS)
def test_an_invalid_grant_is_refused_by_its_field(live: World, what: str) -> None:
    body, pointer = BAD_GRANTS[what]
    before = live.entries("people")
    reply = put(live, "people", "ada", body)
    assert reply.status_code == 422, reply.text
    assert pointer in [each["pointer"] for each in reply.json()["errors"]]
    assert live.entries("people") == before


@pytest.mark.parametrize("currency", COMPOSITION_RULES)
def test_the_largest_epsilon_can_be_granted(live: World, currency: str) -> None:
    dataset = live.dataset()
    delta = {} if currency == "pure" else {"delta": DELTA}
    body = {"currency": currency, "epsilon": "9223372.036854775807", **delta}
    granted = made(put(live, dataset, "*", body))
    assert granted["limit"]["epsilon"] > 9223372.0
    assert made(put(live, dataset, "*", {**body, "epsilon": 1}))["limit"]["epsilon"] == 1.0


def test_an_account_that_has_spent_keeps_its_currency_and_its_order(live: World) -> None:
    dataset, person = opened(live, "renyi")
    changed = made(put(live, dataset, person.name, GRANTS["gdp"]))
    assert changed["currency"] == "gdp"
    first = made(put(live, dataset, person.name, GRANTS["renyi"]))
    made(ask(live.client(person), count(dataset, 0.1), new_key()))
    assert put(live, dataset, person.name, GRANTS["gdp"]).status_code == 409
    raised = made(put(live, dataset, person.name, {**GRANTS["renyi"], "epsilon": 8}))
    assert raised["terms"]["order"] == first["terms"]["order"]
    pairs = zip(raised["terms"]["limits"], first["terms"]["limits"], strict=True)
    assert all((new or 0) >= (old or 0) for new, old in pairs)
    assert put(live, dataset, person.name, GRANTS["renyi by its order"]).status_code == 422
    live.must_be_sound()


# Previews


LISTS: dict[str, list[Json]] = {
    "too much at once": [{"epsilon": 0.5}, {"epsilon": 0.4}, {"epsilon": 2}, {"epsilon": 0.05}],
    "the same again is free": [{"epsilon": 0.6}, {"epsilon": 0.6}, {"epsilon": 0.3}],
    "unless it is to be fresh": [{"epsilon": 0.6}, {"epsilon": 0.6, "fresh": True}],
    "ever the same": [{"epsilon": 0.15, "fresh": True}] * 9,
}


@pytest.mark.parametrize("what", ["pure", "zcdp by rho", "renyi", "gdp by mu"])
@pytest.mark.parametrize("name", LISTS)
def test_a_previewed_list_stops_where_real_questions_stop(
    live: World, what: str, name: str
) -> None:
    dataset, person = opened(live, what)
    client = live.client(person)
    questions = [
        count(dataset, each["epsilon"], fresh=each.get("fresh", False)) for each in LISTS[name]
    ]
    preview = made(client.post("/v1/queries/preview", json=questions))
    assert own_budget(live, dataset, person)["used"] == 0.0, "a preview costs nothing"
    previewed = [item["fits"] for item in preview["items"]]
    done, left = [], []
    for question in questions:
        reply = ask(client, question, new_key())
        assert reply.status_code in (200, 402)
        done.append(reply.status_code == 200)
        left.append(own_budget(live, dataset, person)["remaining"])
    assert previewed == done
    stops = previewed.index(False) if False in previewed else None
    assert (preview["fits"], preview["stops_at"]) == (stops is None, stops)
    assert [item["remaining_after"] for item in preview["items"]] == left
    if name == "the same again is free":
        assert [item["reused"] for item in preview["items"]] == [False, True, False]
        assert left[0] == left[1]
    live.must_be_sound()
