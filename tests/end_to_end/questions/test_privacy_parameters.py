"""Privacy parameters over HTTP: rho, half widths, invalid ones; prices, limits, currencies."""

from typing import Any

import pytest

from tests.server import Json, Person, World, ask, made, new_key

ZCDP = {"currency": "zcdp", "rho": "0.05", "delta": "1e-6"}
GRANTS: dict[str, Json] = {
    "pure": {"currency": "pure", "epsilon": 5},
    "approximate": {"currency": "approximate", "epsilon": 5, "delta": "1e-5"},
    "zcdp": ZCDP,
    "renyi": {"currency": "renyi", "epsilon": 3, "delta": "1e-6"},
    "gdp": {"currency": "gdp", "epsilon": 3, "delta": "1e-6"},
}


def opened(world: World, own: Json, everybody: Json = ZCDP) -> tuple[str, Person]:
    person, dataset = world.person(), world.dataset()
    for holder, body in ((person.name, own), ("*", everybody)):
        made(world.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=body))
    return dataset, person


def counted(dataset: str, privacy: Json, **more: Any) -> Json:
    return {
        "dataset": dataset,
        "query": {"kind": "count"},
        "privacy": privacy,
        "fresh": True,
        **more,
    }


def test_charges_in_rho_stop_when_the_rho_is_spent(live_on_each: World) -> None:
    dataset, person = opened(live_on_each, {**ZCDP, "rho": "0.02"})
    client = live_on_each.client(person)
    for spent in (0.01, 0.02):
        answer = made(ask(client, counted(dataset, {"rho": 0.01}), new_key()))
        assert answer["mechanism"]["kind"] == "gaussian"
        assert answer["charged"]["rho"] == 0.01
        assert answer["charged"]["epsilon"] is None
        assert answer["charged"]["accounts"][0]["spent"]["rho"] == spent
        assert answer["interval"]["low"] <= answer["value"] <= answer["interval"]["high"]
    before = live_on_each.admin.get("/v1/ledger/export").text
    refused = ask(client, counted(dataset, {"rho": "0.000001"}), new_key())
    assert refused.status_code == 402
    assert live_on_each.admin.get("/v1/ledger/export").text == before
    assert made(live_on_each.admin.get("/v1/ledger/verify"))["sound"]


@pytest.mark.parametrize(
    ("currency", "able"), [("pure", False), ("approximate", True), ("renyi", True), ("gdp", False)]
)
def test_a_currency_that_cannot_pay_names_those_that_can(
    live: World, currency: str, able: bool
) -> None:
    dataset, person = opened(live, GRANTS[currency])
    asked = counted(dataset, {"epsilon": 0.3, "delta": 1e-7}, mechanism={"kind": "gaussian"})
    reply = ask(live.client(person), asked, new_key())
    if able:
        assert made(reply)["charged"]["epsilon"] == 0.3
        return
    assert reply.status_code == 422
    (error,) = reply.json()["errors"]
    assert error["pointer"] == "/mechanism"
    assert "approximate, zcdp, renyi" in error["rule"]
    assert live.spent(dataset, "*") == 0


def test_the_default_mechanism_is_the_best_that_the_accounts_can_pay(live: World) -> None:
    for own, kind in ((GRANTS["pure"], "laplace"), (ZCDP, "gaussian")):
        dataset, person = opened(live, own)
        client = live.client(person)
        shown = made(client.post("/v1/queries/preview", json=counted(dataset, {"rho": 0.01})))
        assert shown["mechanism"]["kind"] == kind
        kinds = {each["kind"]: each for each in shown["alternatives"]}
        assert set(kinds) == {"laplace", "gaussian"}
        assert kinds["gaussian"]["payable"] is (kind == "gaussian")
        errors = [each["expected_error"]["half_width"] for each in shown["alternatives"]]
        assert all(error > 0 for error in errors)
        answer = made(ask(client, counted(dataset, {"rho": 0.01}), new_key()))
        assert answer["mechanism"] == shown["mechanism"]


def test_a_half_width_costs_the_least_sufficient_epsilon(live: World) -> None:
    dataset, person = opened(live, GRANTS["pure"])
    client = live.client(person)
    body = counted(dataset, {"half_width": 10, "confidence": 0.95})
    shown = made(client.post("/v1/queries/preview", json=body))
    # the root of 2 e^(-11 epsilon) / (1 + e^-epsilon) = 0.05
    assert shown["price"]["epsilon"] == pytest.approx(0.2843485, rel=1e-5)
    assert shown["expected_error"]["half_width"] == 10
    answer = made(ask(client, body, new_key()))
    assert answer["charged"]["epsilon"] == shown["price"]["epsilon"]
    assert answer["interval"]["high"] - answer["value"] == 10


@pytest.mark.parametrize(
    ("privacy", "pointer"),
    [
        ({"epsilon": 1, "rho": 1}, "/privacy"),
        ({"delta": 1e-6}, "/privacy"),
        ({"epsilon": 1, "confidence": 0.9}, "/privacy"),
        ({"epsilon": 1, "delta": 0}, "/privacy/delta"),
        ({"epsilon": 1, "delta": 1}, "/privacy/delta"),
        ({"rho": 0}, "/privacy/rho"),
        ({"half_width": -1}, "/privacy/half_width"),
        ({"half_width": 0.5}, "/privacy"),  # no noise stays within half a person
        ({"half_width": 10, "confidence": 1}, "/privacy/confidence"),
        ({"rho": 1000000}, "/privacy"),
    ],
)
def test_an_error_names_the_invalid_privacy_field(live: World, privacy: Json, pointer: str) -> None:
    dataset, person = opened(live, ZCDP)
    asked = counted(dataset, privacy, mechanism={"kind": "gaussian"})
    reply = ask(live.client(person), asked, new_key())
    assert reply.status_code == 422, reply.text
    assert pointer in [error["pointer"] for error in reply.json()["errors"]]
    assert live.spent(dataset, "*") == 0
