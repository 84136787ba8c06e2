"""SQL over HTTP: the same question, price and stored answer as in JSON; refusals charge nothing."""

from typing import Any

import pytest
from hypothesis import given, settings

from tests.planning.sql.test_translate import TEXTS
from tests.server import Json, World, ask, exact, made, new_key

PLANTED = "planted-value-5d2e"
ADULT: Json = {"column": "age", "op": ">=", "value": 18}
PAIRS: list[tuple[str, Json]] = [
    ("SELECT COUNT(*) FROM {} WHERE age >= 18", {"kind": "count", "where": ADULT}),
    ("SELECT region, AVG(income) FROM {} GROUP BY region",
     {"kind": "mean", "column": "income", "group_by": ["region"]}),
    ("SELECT VAR_POP(age) FROM {}", {"kind": "variance", "column": "age"}),
    ("SELECT MEDIAN(age) FROM {}", {"kind": "median", "column": "age"}),
    (
        "SELECT region, COUNT(*), AVG(income) FROM {} WHERE age >= 18 GROUP BY region",
        {
            "kind": "aggregates",
            "of": [{"kind": "count"}, {"kind": "mean", "column": "income"}],
            "where": ADULT,
            "group_by": ["region"],
        },
    ),
    (
        "SELECT COUNT(*), SUM(age) FROM {}",
        {"kind": "aggregates", "of": [{"kind": "count"}, {"kind": "sum", "column": "age"}]},
    ),
]  # fmt: skip


def in_sql(dataset: str, sql: str, epsilon: str = "0.25", **more: Any) -> Json:
    return {"sql": sql.format(f'"{dataset}"'), "privacy": {"epsilon": epsilon}, **more}


@pytest.mark.parametrize(("sql", "query"), PAIRS, ids=[sql for sql, _ in PAIRS])
@pytest.mark.parametrize("sql_first", [False, True])
def test_both_forms_are_one_question_with_one_price_and_one_stored_answer(
    live_on_each: World, sql: str, query: Json, sql_first: bool
) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person)
    client = world.client(person)
    forms = [
        {"dataset": dataset, "query": query, "privacy": {"epsilon": "0.25"}},
        in_sql(dataset, sql),
    ]
    first, second = reversed(forms) if sql_first else forms
    previews = [made(client.post("/v1/queries/preview", json=form)) for form in forms]
    assert previews[0] == previews[1]
    answer = ask(client, first, new_key())
    assert exact(made(answer)["charged"]) == exact(previews[0]["price"])
    again = ask(client, second, new_key())
    assert again.headers["bursar-reused"] == "true"
    assert again.json()["value"] == answer.json()["value"]
    assert len(world.entries(dataset, "charge")) == 1
    assert world.spent(dataset, person.name) == exact(previews[0]["price"])
    budget = made(client.get(f"/v1/datasets/{dataset}/budgets/{person.name}"))
    assert budget["last_question"]["kind"] == query["kind"]
    world.must_be_sound()


def test_several_aggregates_are_one_charge_and_one_row_for_each_group(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    sql = "SELECT smoker, COUNT(*), SUM(age), AVG(income), VAR_POP(age) FROM {} GROUP BY smoker"
    answer = made(ask(live.client(person), in_sql(dataset, sql, "1"), new_key()))
    assert exact(answer["charged"]) == 1
    assert [row["group"] for row in answer["value"]] == [{"smoker": False}, {"smoker": True}]
    for row in answer["value"]:
        assert [each["kind"] for each in row["values"]] == ["count", "sum", "mean", "variance"]
        for each in row["values"]:
            assert each["interval"]["low"] <= each["value"] <= each["interval"]["high"]
    (entry,) = live.entries(dataset, "charge")
    assert answer["receipt"]["entry"] == entry["seq"]


def test_the_idempotency_key_belongs_to_the_body_as_sent(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    client = live.client(person)
    key = new_key()
    question = in_sql(dataset, "SELECT COUNT(*) FROM {}")
    first = ask(client, question, key)
    again = ask(client, question, key)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.content == first.content
    same = {"dataset": dataset, "query": {"kind": "count"}, "privacy": {"epsilon": "0.25"}}
    other = ask(client, same, key)
    assert (other.status_code, other.json()["type"]) == (422, "/problems/idempotency-conflict")


REFUSED: list[tuple[str, str]] = [
    (f"SELECT COUNT(*) FROM {{}} WHERE region IN (SELECT '{PLANTED}')", "no subqueries"),
    (f"SELECT COUNT(*) FROM {{}} UNION SELECT '{PLANTED}'", "no UNION"),
    (f"SELECT COUNT(*) FROM {{}} WHERE region = LOWER('{PLANTED}')", "a literal"),
    (f"SELECT UPPER('{PLANTED}') FROM {{}}", "COUNT(*), COUNT(DISTINCT person), SUM"),
    (f"SELECT COUNT(*) FROM {{}}; SELECT '{PLANTED}'", "no second statement"),
    (f"SELECT COUNT(*) FROM {{}} WHERE region = '{PLANTED}", "a quote"),
    (f"SELECT COUNT(*) FROM {{}} '{PLANTED}' b", "cannot be parsed"),
    # Violations of the card are reported with their position in the SQL too.
    (f"SELECT COUNT(*)\nFROM {{}}\nWHERE region = '{PLANTED}'", "line 3, column 16: must be one"),
    (f"SELECT COUNT(*)\nFROM {{}}\nWHERE \"{PLANTED}\" = 1", "line 3, column 7: a column that"),
    (f"SELECT SUM(\"{PLANTED}\") FROM {{}}", "line 1, column 8: a column that"),
    ("SELECT COUNT(*), SUM(region) FROM {}", "line 1, column 18: must be an integer or number"),
    ("SELECT COUNT(*)\nFROM {}\nGROUP BY age", "line 3, column 10: "),
    ("SELECT COUNT(*)\nFROM {}\nWHERE smoker > TRUE", "line 3, column 7: "),
    ("SELECT COUNT(*), COUNT(*) FROM {}", "line 1, column 18: each aggregate may appear only once"),
    ("SELECT " + ", ".join(f"SUM(c{i})" for i in range(21)) + " FROM {}", "line 1, column "),
    ("SELECT COUNT(*) FROM {}\nWHERE " + "age = 1 OR " * 200 + "age = 2", "line 2, column 7: "),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "rule"), REFUSED, ids=[rule for _, rule in REFUSED])
@pytest.mark.parametrize("path", ["/v1/queries", "/v1/queries/preview"])
def test_a_refusal_gives_the_position_quotes_nothing_and_charges_nothing(
    live: World, path: str, sql: str, rule: str
) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    before = live.entries(dataset)
    reply = live.client(person).post(path, json=in_sql(dataset, sql))
    assert reply.status_code == 422
    (wrong,) = reply.json()["errors"]
    assert wrong["pointer"] == "/sql"
    assert wrong["rule"].startswith("line ")
    assert rule in wrong["rule"]
    assert PLANTED not in reply.text
    assert PLANTED not in live.server.output()
    assert live.entries(dataset) == before
    assert live.spent(dataset, person.name) == 0


def test_a_list_of_both_forms_is_previewed_and_refused_item_by_item(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    client = live.client(person)
    plain = {"dataset": dataset, "query": {"kind": "count"}, "privacy": {"epsilon": "0.25"}}
    preview = made(
        client.post("/v1/queries/preview", json=[plain, in_sql(dataset, "SELECT COUNT(*) FROM {}")])
    )
    assert [item["reused"] for item in preview["items"]] == [False, True]
    for sql in ("SELECT SUM(nobody) FROM {}", "SELECT COUNT(*) FROM {} LIMIT 1"):
        reply = client.post("/v1/queries/preview", json=[plain, in_sql(dataset, sql)])
        assert reply.status_code == 422
        assert [each["pointer"] for each in reply.json()["errors"]] == ["/1/sql"]


def test_other_fields_are_checked_as_in_json(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    client = live.client(person)
    question = in_sql(dataset, "SELECT COUNT(*) FROM {}")
    for change, pointer in (
        ({"query": {"kind": "count"}}, "/query"),
        ({"dataset": "another"}, "/dataset"),
        ({"privacy": {"epsilon": -1}}, "/privacy/epsilon"),
        ({"surprise": 1}, "/surprise"),
        ({"sql": 5}, "/sql"),
    ):
        reply = ask(client, {**question, **change}, new_key())
        assert (reply.status_code, reply.json()["errors"][0]["pointer"]) == (422, pointer)
    assert made(ask(client, {**question, "dataset": dataset}, new_key()))["status"] == "answered"


def test_a_dataset_without_a_grant_looks_as_in_json(live: World) -> None:
    client = live.client(live.person())
    dataset = live.open_dataset(live.person())
    for name in (dataset, "nobody"):
        in_json = {"dataset": name, "query": {"kind": "count"}, "privacy": {"epsilon": 1}}
        replies = [ask(client, each) for each in (in_json, in_sql(name, "SELECT COUNT(*) FROM {}"))]
        assert {reply.status_code for reply in replies} == {403}
        assert replies[0].json() == replies[1].json()


def test_no_text_makes_the_server_fail(live: World) -> None:
    client = live.client("ada")

    @settings(max_examples=150, deadline=None, database=None)
    @given(TEXTS)
    def sent(sql: str) -> None:
        body = {"sql": sql, "privacy": {"epsilon": 1}}
        assert client.post("/v1/queries/preview", json=body).status_code in (200, 400, 403, 422)

    sent()
    assert "unexpected" not in live.server.output()


def test_aggregates_asked_together_equal_those_asked_one_by_one(live: World) -> None:
    """There is almost no noise, so all come from the same rows."""
    person = live.person()
    dataset = live.open_dataset(person, epsilon=1_000_000, total=1_000_000)
    client = live.client(person)
    parts = ["COUNT(*)", "SUM(age)", "SUM(income)", "AVG(age)", "AVG(income)", "VAR_POP(age)"]
    rest = "FROM {} WHERE age >= 18 GROUP BY smoker"
    several = in_sql(dataset, f"SELECT {', '.join(parts)} {rest}", "3000")
    rows = made(ask(client, several, new_key()))["value"]
    for i, part in enumerate(parts):
        alone = made(ask(client, in_sql(dataset, f"SELECT {part} {rest}", "500"), new_key()))
        assert [row["group"] for row in rows] == [row["group"] for row in alone["value"]]
        together = [row["values"][i]["value"] for row in rows]
        assert together == pytest.approx([row["value"] for row in alone["value"]], rel=0.05)
    count, age_sum, _, age_mean, *_ = (each["value"] for each in rows[0]["values"])
    assert age_sum / count == pytest.approx(age_mean, rel=0.05)
