"""The calculator over HTTP: permissions, results, and errors for invalid input."""

import json
from typing import Any

import pytest

from tests.server import Json, World

PATH = "/v1/accounting/compose"
PLANTED = "planted-value-7c1f"
LAPLACE = {"mechanism": "laplace", "epsilon": 0.1}
FROM_THE_DESIGN = [
    {"mechanism": "laplace", "epsilon": 0.1, "count": 10},
    {"mechanism": "gaussian", "noise_multiplier": 2.0, "count": 5},
    {"mechanism": "gaussian", "noise_multiplier": 1.1, "sampling_rate": 0.01, "count": 1000},
    {"mechanism": "randomized_response", "epsilon": 1.0, "categories": 2},
    {"mechanism": "exponential", "epsilon": 0.3, "count": 4},
    {"mechanism": "generic", "epsilon": 0.2, "delta": 1e-8, "count": 3},
    {"mechanism": "discrete_laplace", "epsilon": 0.2, "sensitivity": 3},
    {"mechanism": "discrete_gaussian", "noise_multiplier": 5},
    {"mechanism": "zcdp", "rho": "0.001"},
]


def composed(world: World, who: str = "ada", **request: Any) -> Json:
    reply = world.client(who).post(PATH, json=request)
    assert reply.status_code == 200, reply.text
    found: Json = reply.json()
    return found


@pytest.mark.parametrize("who", ["ada", "vera"])
def test_every_role_may_use_the_calculator(live: World, who: str) -> None:
    composition = composed(live, who, delta=1e-6, events=FROM_THE_DESIGN)
    assert list(composition["results"]) == [
        *("basic", "advanced", "optimal", "zcdp", "renyi", "gdp", "pld"),
    ]
    assert composition["best"] == "renyi"
    assert composition["results"]["renyi"]["delta"] == 1e-6
    assert "no epsilon of its own" in composition["results"]["optimal"]["unavailable"]
    assert len(composition["curve"]["orders"]) == len(composition["curve"]["epsilon"]) == 40
    assert composition["curve"]["delta"] == pytest.approx(3e-8)  # 1 - (1 - 1e-8)^3


def test_the_calculator_needs_a_key(live: World) -> None:
    body = {"delta": 1e-6, "events": [LAPLACE]}
    assert live.server.client().post(PATH, json=body).status_code == 401


def test_the_cost_of_a_million_events_is_that_of_the_distinct_ones(live: World) -> None:
    events = [{**LAPLACE, "count": 10**9}] * 1000
    request: Json = {"delta": 1e-6, "accountants": ["basic"]}
    assert (
        composed(live, events=events, **request)["results"]
        == (composed(live, events=[{**LAPLACE, "count": 10**12}], **request)["results"])
    )


def test_the_calculator_returns_the_curve_at_requested_orders_and_the_delta_at_an_epsilon(
    live: World,
) -> None:
    composition = composed(
        live,
        events=[{"mechanism": "zcdp", "rho": 0.25}],
        epsilon=2,
        orders=[1.5, 10, 1000000],
        accountants=["zcdp", "renyi"],
    )
    assert composition["curve"]["orders"] == [1.5, 10.0, 1000000.0]
    for shown, true in zip(composition["curve"]["epsilon"], [0.375, 2.5, 250000], strict=True):
        assert 0 <= shown - true < 1e-9
    assert composition["results"]["zcdp"]["epsilon"] == 2.0
    assert (
        0 < composition["results"]["zcdp"]["delta"] < composition["results"]["renyi"]["delta"] < 1
    )


def test_a_target_gives_the_largest_event_that_fits(live: World) -> None:
    target = {"mechanism": "laplace", "epsilon": 1, "delta": 1e-6, "count": 100}
    results = composed(live, target=target, accountants=["basic", "renyi"])["results"]
    assert results["basic"]["per_event"] == {"epsilon": 0.01}
    for name in ("basic", "renyi"):
        event = {"mechanism": "laplace", "count": 100}
        largest = results[name]["per_event"]["epsilon"]
        for epsilon, fits in ((largest, True), (round(largest * 1.001, 12), False)):
            events = [{**event, "epsilon": epsilon}]
            forward = composed(live, delta=1e-6, events=events, accountants=[name])
            assert (forward["results"][name]["epsilon"] <= 1) is fits


def event(**changes: Any) -> Json:
    """Three valid events, and then a Gaussian one with these changes."""
    last = {"mechanism": "gaussian", "noise_multiplier": 1.0, "sampling_rate": 0.5} | changes
    kept = {name: value for name, value in last.items() if value != "left out"}
    return {"delta": 1e-6, "events": [LAPLACE, LAPLACE, LAPLACE, kept]}


def good(**changes: Any) -> Json:
    made = {"delta": 1e-6, "events": [LAPLACE]} | changes
    return {name: value for name, value in made.items() if value != "left out"}


def target(**changes: Any) -> Json:
    made = {"mechanism": "laplace", "epsilon": 1, "delta": 1e-6, "count": 10} | changes
    return {"target": {name: value for name, value in made.items() if value != "left out"}}


GENERIC = {"mechanism": "generic", "epsilon": 0.1, "delta": 0.3}
WRONG: list[tuple[Json, str]] = [
    (event(sampling_rate=0), "/events/3/sampling_rate"),
    (event(sampling_rate=-0.1), "/events/3/sampling_rate"),
    (event(sampling_rate=1.0000001), "/events/3/sampling_rate"),
    (event(sampling_rate=PLANTED), "/events/3/sampling_rate"),
    (event(noise_multiplier=0), "/events/3/noise_multiplier"),
    (event(noise_multiplier=1e-300), "/events/3/noise_multiplier"),
    (event(noise_multiplier="NaN"), "/events/3/noise_multiplier"),
    (event(noise_multiplier="left out"), "/events/3/noise_multiplier"),
    (event(count=0), "/events/3/count"),
    (event(count=-5), "/events/3/count"),
    (event(count=1.5), "/events/3/count"),
    (event(count=True), "/events/3/count"),
    (event(count="3"), "/events/3/count"),
    (event(count=10**12 + 1), "/events/3/count"),
    (event(epsilon=0.1), "/events/3/epsilon"),
    (event(mechanism=PLANTED), "/events/3/mechanism"),
    (event(mechanism=7), "/events/3/mechanism"),
    (event(mechanism="left out"), "/events/3/mechanism"),
    (good(events=[PLANTED]), "/events/0"),
    (good(events=[]), "/events"),
    (good(events={}), "/events"),
    (good(events=[LAPLACE] * 1001), "/events"),
    (good(events="left out"), "/events"),
    (good(delta=0), "/delta"),
    (good(delta=1), "/delta"),
    (good(delta=1.5), "/delta"),
    (good(delta=-1e-6), "/delta"),
    (good(delta=True), "/delta"),
    (good(delta="left out"), "/delta"),
    (good(epsilon=1), "/delta"),
    (good(delta="left out", epsilon=-1), "/epsilon"),
    (good(orders=[2, 1]), "/orders/1"),
    (good(orders=[0.5]), "/orders/0"),
    (good(orders=[2, 3, 1000000.5]), "/orders/2"),
    (good(orders=["1.0000000000001"]), "/orders/0"),
    (good(orders=[]), "/orders"),
    (good(orders=[2] * 101), "/orders"),
    (good(accountants=[]), "/accountants"),
    (good(accountants=["basic", PLANTED]), "/accountants/1"),
    (good(neighbours=PLANTED), "/neighbours"),
    (good(group_size=0), "/group_size"),
    (good(group_size=1.5), "/group_size"),
    (good(surprise=PLANTED), "/surprise"),
    (good(events=[GENERIC, {**GENERIC, "count": 3}]), "/events/1/delta"),
    (good(events=[{**GENERIC, "delta": 1}]), "/events/0/delta"),
    (good(events=[{**GENERIC, "delta": -0.1}]), "/events/0/delta"),
    (good(events=[{"mechanism": "zcdp", "rho": 0}]), "/events/0/rho"),
    (good(events=[{**LAPLACE, "epsilon": 1e7}]), "/events/0/epsilon"),
    (
        good(events=[{"mechanism": "randomized_response", "epsilon": 1, "categories": 1}]),
        "/events/0/categories",
    ),
    (
        good(events=[{"mechanism": "discrete_laplace", "epsilon": 1, "sensitivity": 0}]),
        "/events/0/sensitivity",
    ),
    (target(sampling_rate=0.5), "/target/sampling_rate"),
    (target(mechanism=PLANTED), "/target/mechanism"),
    (target(mechanism="gaussian", sampling_rate=2), "/target/sampling_rate"),
    (target(mechanism="randomized_response"), "/target/categories"),
    (target(delta=0), "/target/delta"),
    (target(count=0), "/target/count"),
    (target(epsilon="left out"), "/target/epsilon"),
    ({**target(), "events": [LAPLACE]}, "/events"),
    ({**target(), "delta": 1e-6}, "/delta"),
    ({}, "/events"),
]


@pytest.mark.parametrize(("body", "pointer"), WRONG)
def test_invalid_input_is_a_problem_that_names_event_and_field(
    live: World, body: Json, pointer: str
) -> None:
    reply = live.client("ada").post(PATH, json=body)
    assert reply.status_code == 422, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert pointer in [error["pointer"] for error in reply.json()["errors"]], reply.text
    assert PLANTED not in reply.text


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_outside_json_are_malformed(live: World, literal: str) -> None:
    raw = json.dumps(event(noise_multiplier="here")).replace('"here"', literal)
    headers = {"Content-Type": "application/json"}
    reply = live.client("ada").post(PATH, content=raw, headers=headers)
    assert reply.status_code == 400
    assert reply.json()["type"] == "/problems/malformed"


def test_the_largest_events_are_answered(live: World) -> None:
    """Every event within range gives a number or a reason."""
    most = [
        {"mechanism": "laplace", "epsilon": 9223372},
        {"mechanism": "gaussian", "noise_multiplier": 1e-6, "sampling_rate": 0.999999},
        {"mechanism": "gaussian", "noise_multiplier": 1e9},
        {"mechanism": "randomized_response", "epsilon": 9223372, "categories": 10**6},
        {"mechanism": "exponential", "epsilon": 9223372},
        {"mechanism": "discrete_laplace", "epsilon": 9223372, "sensitivity": 10**9},
        {"mechanism": "discrete_gaussian", "noise_multiplier": 1e-6},
        {"mechanism": "zcdp", "rho": 1000000},
        {"mechanism": "generic", "epsilon": 9223372, "delta": 1e-300},
    ]
    for event in most:
        for question in ({"delta": 1e-300}, {"delta": 0.999999}, {"epsilon": 0}, {"epsilon": 9e6}):
            for neighbours in ("add_remove", "replace_one"):
                composition = composed(
                    live,
                    events=[{**event, "count": 10**12}],
                    **question,
                    neighbours=neighbours,
                    group_size=10**6,
                    orders=["1.000000001", 1000000],
                )
                for result in composition["results"].values():
                    assert ("unavailable" in result) != ("epsilon" in result)
