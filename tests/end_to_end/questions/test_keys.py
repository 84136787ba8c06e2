"""Private keys over HTTP: released texts, charges, currencies that can pay, and texts never
shown.
"""

import secrets
from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.server import Json, Person, World, ask, exact, made, new_key

SECRET = "planted-diagnosis-3e1b"
COLUMNS: list[Json] = [
    {"name": "diagnosis", "type": "text", "length_max": 60},
    {"name": "region", "type": "category", "values": ["north", "south"]},
    {"name": "age", "type": "integer", "low": 0, "high": 120},
]
HEADER = ["diagnosis", "region", "age"]
MANY = {"flu": 120, "Grippe  ": 100, "日本": 90, "Äpfel": 80}
HELD = ["Grippe", "flu", "Äpfel", "日本"]  # sorted by code points
PRIVATE: Json = {"column": "diagnosis", "keys": "private"}
HISTOGRAM: Json = {"kind": "histogram", "column": "diagnosis"}
KEYS: Json = {"kind": "keys", "column": "diagnosis"}
BOTH = {"epsilon": 1, "delta": "1e-6"}
GRANTS: dict[str, Json] = {
    "pure": {"currency": "pure", "epsilon": 100},
    "approximate": {"currency": "approximate", "epsilon": 100, "delta": "1e-3"},
    "zcdp": {"currency": "zcdp", "epsilon": 100, "delta": "1e-3", "failure_delta": "1e-4"},
    "renyi": {"currency": "renyi", "epsilon": 100, "delta": "1e-3", "failure_delta": "1e-4"},
    "gdp": {"currency": "gdp", "epsilon": 30, "delta": "1e-3", "failure_delta": "1e-4"},
}


def rows() -> list[list[object]]:
    """Rows that no other dataset has; one of them has a unique diagnosis."""
    many: list[list[object]] = [
        [text, ("north", "south")[i % 2], i % 90]
        for text, count in MANY.items()
        for i in range(count)
    ]
    return [*many, [SECRET, "north", 40], ["", "north", 1], [secrets.token_hex(4), "south", 2]]


def opened(world: World, currency: str = "approximate", **card: Any) -> tuple[str, Person]:
    person = world.person()
    path = world.write_csv(rows(), HEADER)
    dataset = world.dataset(path, columns=COLUMNS, **card)
    for holder in (person.name, "*"):
        made(world.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=GRANTS[currency]))
    return dataset, person


def question(dataset: str, query: Json, privacy: Json | None = None, **more: Any) -> Json:
    return {"dataset": dataset, "query": query, "privacy": privacy or BOTH, **more}


def test_common_texts_are_released_with_counts_and_replayed_byte_for_byte(
    live_on_each: World,
) -> None:
    """At epsilon 1 and T = 15, counts of 80 and more appear within 45 of the truth.

    This fails with probability below 1e-19. A text of one person appears with probability 6e-7.
    """
    world = live_on_each
    dataset, person = opened(world)
    client = world.client(person)
    body = question(dataset, HISTOGRAM)
    preview = made(client.post("/v1/queries/preview", json=body))
    key = new_key()
    reply = ask(client, body, key)
    answer = made(reply)
    assert [item["group"] for item in answer["value"]] == [{"diagnosis": text} for text in HELD]
    counts = {text.strip(): count for text, count in MANY.items()}
    for item in answer["value"]:
        assert abs(item["value"] - counts[item["group"]["diagnosis"]]) < 45
        assert item["interval"]["low"] <= item["value"] <= item["interval"]["high"]
        assert item["interval"]["covers"] == "noise"
    assert answer["mechanism"] == preview["mechanism"]
    assert answer["mechanism"]["kind"] == "stability_histogram"
    assert (answer["mechanism"]["noise"], answer["mechanism"]["threshold"]) == ("laplace", 15)
    assert preview["expected_error"]["threshold"] == 15
    assert preview["expected_error"]["told_from"] > 15
    assert preview["groups"] is None
    assert exact(answer["charged"]) == exact(preview["price"]) == 1
    delta = exact(answer["charged"], "delta")
    assert Decimal("5e-7") < delta == exact(preview["price"], "delta") < Decimal("1e-6")
    assert exact(world.budget(dataset, person.name)["spent"], "delta") == delta
    again = ask(client, body, key)
    assert (again.content, again.headers["idempotent-replayed"]) == (reply.content, "true")
    assert ask(client, body, new_key()).headers["bursar-reused"] == "true"
    assert world.spent(dataset, person.name) == 1
    world.must_be_sound()


def test_existing_texts_are_released_without_counts(live_on_each: World) -> None:
    world = live_on_each
    dataset, person = opened(world, "renyi")
    client = world.client(person)
    body = question(dataset, KEYS, {"epsilon": 1, "delta": "1e-5"})
    preview = made(client.post("/v1/queries/preview", json=body))
    assert preview["expected_error"]["kept_from"] == 14
    key = new_key()
    reply = ask(client, body, key)
    answer = made(reply)
    assert answer["value"] == HELD
    assert answer["interval"] is None
    assert answer["mechanism"]["kind"] == "partition_selection"
    assert exact(answer["charged"], "delta") == Decimal("1e-5")
    assert ask(client, body, key).content == reply.content
    world.must_be_sound()


def test_private_keys_combine_with_public_groups_and_filters(live: World) -> None:
    dataset, person = opened(live)
    client = live.client(person)
    grouped = {"kind": "count", "group_by": ["region", PRIVATE]}
    value = made(ask(client, question(dataset, grouped), new_key()))["value"]
    places = [(item["group"]["region"], item["group"]["diagnosis"]) for item in value]
    assert places == [(region, text) for region in ("north", "south") for text in HELD]
    where = {"all": [{"column": "diagnosis", "op": "in", "value": ["flu", "日本", "absent"]}]}
    some = made(ask(client, question(dataset, {**KEYS, "where": where}), new_key()))
    assert some["value"] == ["flu", "日本"]
    nobody = {"column": "age", "op": ">", "value": 119}
    none = made(ask(client, question(dataset, {**HISTOGRAM, "where": nobody}), new_key()))
    assert none["value"] == []
    assert exact(none["charged"]) == 1  # an empty selection is an ordinary answer
    one = {"kind": "count", "where": {"column": "diagnosis", "op": "==", "value": "flu"}}
    counted = made(ask(client, question(dataset, one, {"epsilon": 1}), new_key()))
    assert abs(counted["value"] - 120) < 45
    live.must_be_sound()


@pytest.mark.parametrize("query", [HISTOGRAM, KEYS], ids=["histogram", "keys"])
@pytest.mark.parametrize("currency", GRANTS)
def test_every_currency_except_pure_can_pay(live: World, query: Json, currency: str) -> None:
    dataset, person = opened(live, currency)
    reply = ask(live.client(person), question(dataset, query), new_key())
    if currency == "pure":
        assert reply.status_code == 422
        (error,) = reply.json()["errors"]
        assert error["pointer"] == "/mechanism"
        assert "currencies that can: approximate, zcdp, renyi, gdp" in error["rule"]
        assert live.spent(dataset, person.name) == 0
        return
    assert made(reply)["charged"]["epsilon"] == 1
    curve = live.client(person).get(f"/v1/datasets/{dataset}/budgets/{person.name}/tradeoff")
    assert not made(curve)["exact"]
    live.must_be_sound()


def test_gaussian_noise_costs_rho_and_a_failure_probability(live: World) -> None:
    dataset, person = opened(live, "zcdp")
    client = live.client(person)
    body = question(dataset, HISTOGRAM, {"rho": "0.05", "delta": "1e-6"})
    shown = made(client.post("/v1/queries/preview", json=body))
    noises = [each["mechanism"]["noise"] for each in shown["alternatives"]]
    assert noises == ["laplace", "gaussian"]
    answer = made(ask(client, body, new_key()))
    assert answer["mechanism"]["noise"] == "gaussian"
    assert answer["charged"]["epsilon"] is None
    assert answer["charged"]["rho"] == pytest.approx(0.05, rel=1e-6)
    assert 0 < answer["charged"]["delta"] <= 1e-6
    assert [item["group"]["diagnosis"] for item in answer["value"]] == HELD
    left = made(client.get(f"/v1/datasets/{dataset}/budgets/{person.name}"))["remaining"]
    assert exact(left, "delta") == Decimal("1e-4") - exact(answer["charged"], "delta")
    live.must_be_sound()


def test_a_failure_probability_beyond_its_limit_is_refused_and_costs_nothing(live: World) -> None:
    dataset, person = opened(live, "renyi")
    client = live.client(person)
    first = question(dataset, KEYS, {"epsilon": "0.1", "delta": "9e-5"})
    made(ask(client, first, new_key()))
    refused = ask(client, question(dataset, KEYS, {"epsilon": "0.2", "delta": "2e-5"}), new_key())
    assert refused.status_code == 402
    assert refused.json()["requested"]["delta"] == 2e-5
    assert exact(refused.json()["remaining"], "delta") == Decimal("1e-5")
    made(ask(client, question(dataset, KEYS, {"epsilon": "0.2", "delta": "1e-5"}), new_key()))
    live.must_be_sound()


def test_a_question_about_one_cell_costs_that_cell_alone(live: World) -> None:
    dataset, person = opened(live, cells={"column": "region"})
    client = live.client(person)
    for region in ("north", "south"):
        where = {"column": "region", "op": "==", "value": region}
        for query in (HISTOGRAM, KEYS):
            asked = question(dataset, {**query, "where": where})
            assert made(ask(client, asked, new_key()))["charged"]["cells"] == [region]
    assert live.spent(dataset, person.name) == 2
    every = made(ask(client, question(dataset, HISTOGRAM), new_key()))
    assert every["charged"]["cells"] is None
    assert live.spent(dataset, person.name) == 3


def test_a_half_width_determines_its_loss(live: World) -> None:
    dataset, person = opened(live)
    client = live.client(person)
    wide = {"half_width": 20, "confidence": 0.95, "delta": "1e-6"}
    answer = made(ask(client, question(dataset, HISTOGRAM, wide), new_key()))
    assert all(item["interval"]["high"] - item["value"] <= 20 for item in answer["value"])
    reply = ask(client, question(dataset, KEYS, wide), new_key())
    assert [each["pointer"] for each in reply.json()["errors"]] == ["/privacy"]


WRONG: dict[str, tuple[Json, Json, str]] = {
    "no delta": (HISTOGRAM, {"privacy": {"epsilon": 1}}, "/privacy/delta"),
    "no delta for keys": (KEYS, {"privacy": {"rho": 1}}, "/privacy/delta"),
    "keys of a category": (
        {"kind": "count", "group_by": [{"column": "region", "keys": "private"}]},
        {},
        "/query/group_by/0/column",
    ),
    "keys that are not private": (
        {"kind": "count", "group_by": [{"column": "diagnosis", "keys": SECRET}]},
        {},
        "/query/group_by/0/keys",
    ),
    "keys with edges": (
        {"kind": "count", "group_by": [{**PRIVATE, "edges": [0, 1]}]},
        {},
        "/query/group_by/0/edges",
    ),
    "two of them": (
        {"kind": "count", "group_by": [PRIVATE, PRIVATE]},
        {},
        "/query/group_by/1/keys",
    ),
    "a group that is none": ({"kind": "count", "group_by": [5]}, {}, "/query/group_by/0"),
    "public groups of a text": (
        {"kind": "count", "group_by": ["diagnosis"]},
        {},
        "/query/group_by/0",
    ),
    "a sum by keys": (
        {"kind": "sum", "column": "age", "group_by": [PRIVATE]},
        {},
        "/query/group_by/0/keys",
    ),
    "the mode of a text": ({"kind": "mode", "column": "diagnosis"}, {}, "/query/column"),
    "noise for keys": (
        KEYS,
        {"mechanism": {"kind": "partition_selection", "noise": "laplace"}},
        "/mechanism",
    ),
    "another noise": (
        HISTOGRAM,
        {"mechanism": {"kind": "stability_histogram", "noise": "gumbel"}},
        "/mechanism",
    ),
    "Laplace noise on private keys": (
        HISTOGRAM,
        {"mechanism": {"kind": "laplace"}},
        "/mechanism/kind",
    ),
    "a threshold on public bins": (
        {"kind": "histogram", "column": "region"},
        {"mechanism": {"kind": "stability_histogram"}},
        "/mechanism/kind",
    ),
    "a text that cannot be": (
        {**KEYS, "where": {"column": "diagnosis", "op": "==", "value": f" {SECRET}"}},
        {},
        "/query/where/value",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_invalid_question_names_its_field_and_costs_nothing(live: World, wrong: str) -> None:
    query, changes, pointer = WRONG[wrong]
    dataset, person = opened(live)
    client = live.client(person)
    body = {**question(dataset, query), **changes}
    for path in ("/v1/queries", "/v1/queries/preview"):
        reply = client.post(path, json=body)
        assert (reply.status_code, reply.json()["type"]) == (422, "/problems/invalid"), reply.text
        assert pointer in [each["pointer"] for each in reply.json()["errors"]], reply.text
        assert SECRET not in reply.text
    assert live.spent(dataset, person.name) == 0


@pytest.mark.parametrize(
    ("column", "pointer"),
    [
        ({"name": "diagnosis", "type": "text", "length_max": 0}, "/columns/0/length_max"),
        ({"name": "diagnosis", "type": "text", "values": ["a"]}, "/columns/0/values"),
        ({"name": "none", "type": "text"}, "/columns/0/name"),
    ],
)
def test_an_invalid_text_column_is_not_registered(live: World, column: Json, pointer: str) -> None:
    path = live.write_csv(rows(), HEADER)
    reply = register(live, path, [column])
    assert reply.status_code == 422
    assert pointer in [each["pointer"] for each in reply.json()["errors"]]
    assert SECRET not in reply.text


def register(world: World, path: str, columns: list[Json], **more: Any) -> httpx.Response:
    body = {
        "name": f"data-{secrets.token_hex(4)}",
        "source": {"path": path},
        "person": {"kind": "row"},
        "neighbours": "add_remove",
        "columns": columns,
        **more,
    }
    return world.admin.post("/v1/datasets", json=body)


def test_cells_of_a_text_column_are_refused(live: World) -> None:
    path = live.write_csv(rows(), HEADER)
    reply = register(live, path, COLUMNS, cells={"column": "diagnosis"})
    assert reply.status_code == 422
    assert "not public" in reply.text


def test_a_text_of_one_person_appears_nowhere(live: World) -> None:
    """Each question releases it with probability at most 1e-6."""
    dataset, person = opened(live)
    client = live.client(person)
    seen = [client.get(f"/v1/datasets/{dataset}"), client.get(f"/v1/datasets/{dataset}/sample")]
    for query in (HISTOGRAM, KEYS, {"kind": "count", "group_by": [PRIVATE, "region"]}):
        seen.append(ask(client, question(dataset, query), new_key()))
    seen += [client.get("/v1/queries"), live.admin.get("/v1/ledger/export")]
    for reply in seen:
        assert reply.status_code == 200
        assert SECRET not in reply.text
    words = {row["diagnosis"] for row in seen[1].json()["rows"]}
    assert not words & {*HELD, "flu"}
    assert all(word.isascii() and word.isalpha() for word in words)
    assert SECRET not in live.server.output()
