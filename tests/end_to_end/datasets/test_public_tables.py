"""Public tables over HTTP: read once at registration, and part of the card."""

import json
import secrets

import duckdb
import pytest

from tests.end_to_end.datasets.public_table_cards import (
    GOOD,
    level,
    looked_up,
    price,
    register,
    written,
)
from tests.house.documentation import DOCS, examples, section
from tests.server import COLUMNS, REGIONS, Json, World, ask, card, made, new_key, some_rows


def test_a_table_is_part_of_the_card_and_answers_questions(live: World) -> None:
    path = written(live, GOOD)
    doubled = {"multiply": [{"value": 2}, looked_up(path, "price")]}
    registered = register(live, level(path), price(doubled))
    derived = {column["name"]: column["derived"] for column in registered["columns"]}
    assert derived["level"] == {
        "lookup": {"column": "region", "map": {"north": "high", "south": "low", "east": "low"}}
    }
    assert derived["price"]["multiply"][1]["lookup"]["map"] == {
        "north": 10.0,
        "south": 2.5,
        "east": 0.0,
    }
    person = live.person()
    for holder in ("*", person.name):
        live.grant(registered["name"], holder, 10_000)
    client = live.client(person)

    def answer_to(query: Json) -> Json:
        question = {"dataset": registered["name"], "query": query, "privacy": {"epsilon": 500}}
        return made(ask(client, question, new_key()))

    # There are 60 rows, 15 per region. The table has no line for the west, so those rows have no
    # value.
    groups = answer_to({"kind": "histogram", "column": "level"})["value"]
    counts = {group["group"]["level"]: group["value"] for group in groups}
    assert counts == {"high": 15, "low": 30}
    assert answer_to({"kind": "sum", "column": "price"})["value"] == pytest.approx(375, abs=20)
    missing = {"column": "level", "op": "is_null"}
    assert answer_to({"kind": "count", "where": missing})["value"] == 15

    # Later changes of the file affect neither the card nor the counts.
    (live.ledger.data / path).write_text(GOOD.replace("north,high", "north,low"))
    shown = made(client.get(f"/v1/datasets/{registered['name']}"))
    assert shown["columns"] == registered["columns"]
    (live.ledger.data / path).unlink()
    again = {**missing, "op": "==", "value": "high"}
    assert answer_to({"kind": "count", "where": again})["value"] == 15
    live.must_be_sound()


def test_keys_of_a_parquet_table_may_be_integers_or_booleans(live: World) -> None:
    name = f"{secrets.token_hex(6)}.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT i AS age, i % 2 = 0 AS even, i / 4.0 AS price FROM range(200) AS t(i)) "
            f"TO '{live.ledger.data / name}' (FORMAT parquet)"
        )
    even = {
        "name": "even",
        "type": "boolean",
        "derived": looked_up(name, "even", by="age", key="age"),
    }
    smokers = written(live, "smokes,price\nYES,12\n0,3.5\n")
    registered = register(
        live,
        even,
        price(looked_up(name, "price", by="age", key="age")),
        {**price(looked_up(smokers, "price", by="smoker", key="smokes")), "name": "insured"},
    )
    derived = {each["name"]: each["derived"] for each in registered["columns"]}
    # Keys outside the column's values are dropped.
    assert derived["even"]["lookup"]["map"] == {str(i): i % 2 == 0 for i in range(121)}
    assert derived["price"]["lookup"]["map"]["7"] == 1.75
    assert derived["insured"]["lookup"]["map"] == {"true": 12.0, "false": 3.5}


def test_a_case_may_look_up_and_a_line_without_a_value_gives_null(live: World) -> None:
    path = written(live, "region,price\nnorth,10\nsouth,\nelsewhere,\n007,1\n")
    adult = [{"column": "age", "op": ">=", "value": 18}]
    cases = {"case": [{"when": adult, "then": looked_up(path, "price")}], "else": {"value": 1}}
    registered = register(live, price(cases, "integer"))
    (found,) = [each["derived"] for each in registered["columns"] if each["name"] == "price"]
    assert found["case"][0]["then"]["lookup"]["map"] == {"north": 10.0}


def test_a_registration_is_repeated_although_its_table_is_now_missing_or_private(
    live: World,
) -> None:
    for then in ("gone", "private"):
        path = written(live, GOOD.replace(",10", ",11"))  # no other test uses these bytes
        body = card(live.write_csv(some_rows()), columns=[*COLUMNS, level(path)])
        headers = {"Idempotency-Key": new_key()}
        first = live.admin.post("/v1/datasets", json=body, headers=headers)
        assert first.status_code == 201, first.text
        if then == "gone":
            (live.ledger.data / path).unlink()
        else:
            columns = [each for each in COLUMNS if each["name"] == "region"]
            live.dataset(path, columns=columns)
        again = live.admin.post("/v1/datasets", json=body, headers=headers)
        assert (again.status_code, again.content) == (201, first.content), then


def test_a_repeated_registration_with_a_table_returns_the_first_reply(live: World) -> None:
    path = written(live, GOOD)
    body = card(live.write_csv(some_rows()), columns=[*COLUMNS, level(path)])
    headers = {"Idempotency-Key": new_key()}
    first = live.admin.post("/v1/datasets", json=body, headers=headers)
    (live.ledger.data / path).write_text(GOOD.replace("north,high", "north,low"))
    again = live.admin.post("/v1/datasets", json=body, headers=headers)
    assert made(again) == made(first)
    other = json.loads(json.dumps(body).replace('"value": "level"', '"value": "region"'))
    other["columns"][-1]["values"] = REGIONS
    refused = live.admin.post("/v1/datasets", json=other, headers=headers)
    assert refused.json()["type"] == "/problems/idempotency-conflict"


def test_the_documented_table_registers(live: World) -> None:
    ((column, _),) = examples(section(DOCS / "datasets.md", "Public tables"))
    written(live, "region,area\nnorth,rural\nwest,urban\n", "areas.csv")
    shown = register(live, column)["columns"][-1]
    assert shown["derived"]["lookup"]["map"] == {"north": "rural", "west": "urban"}
