"""Questions over HTTP: answers, prices, previews, reuse, history and visibility."""

from decimal import Decimal

import pytest

from tests.server import Json, World, ask, count, exact, made, new_key, some_rows

DAYS = ["2020-01-01", "2023-01-01"]
QUERIES: list[Json] = [
    {"kind": "count"},
    {"kind": "count", "where": {"column": "age", "op": ">=", "value": 18}},
    {"kind": "count", "group_by": ["region", "smoker"]},
    {"kind": "sum", "column": "age"},
    {"kind": "sum", "column": "income", "group_by": ["region"]},
    {"kind": "mean", "column": "income"},
    {"kind": "mean", "column": "age", "group_by": [{"column": "seen", "edges": DAYS}]},
    {"kind": "variance", "column": "income"},
    {"kind": "variance", "column": "age", "group_by": ["smoker"]},
    {"kind": "ratio", "numerator": {"where": {"column": "age", "op": ">=", "value": 18}}},
    {"kind": "reciprocal", "where": {"column": "smoker", "op": "==", "value": True}},
    {"kind": "histogram", "column": "age", "edges": [0, 18, 65, 120]},
    {
        "kind": "sample_aggregate",
        "statistic": {"kind": "iqr", "column": "income"},
        "blocks": 7,
        "low": 0,
        "high": 1000,
        "aggregate": "mean",
    },
    {
        "kind": "prediction_variance",
        "features": ["age", "smoker"],
        "point": {"age": 3, "smoker": False},
        "ridge": 2,
    },
    {"kind": "histogram", "column": "region"},
    {
        "kind": "count",
        "where": {
            "any": [
                {"not": {"column": "region", "op": "in", "value": ["north", "west"]}},
                {"all": [{"column": "income", "op": "between", "value": [0, 1e5]}]},
                {"column": "smoker", "op": "is_null"},
            ]
        },
    },
]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query["kind"])
def test_every_kind_of_question_costs_what_its_preview_says(
    live_on_each: World, query: Json
) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person)
    client = world.client(person)
    question = {"dataset": dataset, "query": query, "privacy": {"epsilon": "0.123456789012"}}
    before = world.entries(dataset)
    preview = made(client.post("/v1/queries/preview", json=question))
    assert world.entries(dataset) == before
    assert world.spent(dataset, person.name) == 0
    assert preview["fits"]

    answer = made(ask(client, question, new_key()))
    assert answer["status"] == "answered"
    assert exact(answer["charged"]) == exact(preview["price"]) == Decimal("0.123456789012")
    assert world.spent(dataset, person.name) == exact(preview["price"])
    assert exact(
        made(client.get(f"/v1/datasets/{dataset}/budgets/{person.name}"))["remaining"]
    ) == (exact(preview["remaining_after"]))
    assert answer["mechanism"] == preview["mechanism"]
    assert answer["theorem"] == preview["theorem"]
    groups = answer["value"] if isinstance(answer["value"], list) else [answer]
    assert len(groups) == preview["groups"]
    for group in groups:
        assert group["interval"]["low"] <= group["value"] <= group["interval"]["high"]
    (entry,) = world.entries(dataset, "charge")
    assert answer["receipt"] == {"entry": entry["seq"], "hash": entry["hash"]}
    world.must_be_sound()


def test_a_list_is_previewed_as_if_earlier_questions_were_paid(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person, epsilon=1)
    questions = [count(dataset, epsilon) for epsilon in (0.5, 0.3, 0.25, 0.1)]
    preview = made(live.client(person).post("/v1/queries/preview", json=questions))
    assert [item["fits"] for item in preview["items"]] == [True, True, False, True]
    assert (preview["fits"], preview["stops_at"]) == (False, 2)
    assert preview["items"][2]["refusal"]["account"] == person.name
    left = [exact(item["remaining_after"]) for item in preview["items"]]
    assert left == [Decimal(text) for text in ("0.5", "0.2", "0.2", "0.1")]
    assert live.spent(dataset, person.name) == 0
    broken = [questions[0], count(dataset, -1)]
    reply = live.client(person).post("/v1/queries/preview", json=broken)
    assert reply.status_code == 422
    assert "/1/privacy/epsilon" in [each["pointer"] for each in reply.json()["errors"]]


def test_a_repeated_question_is_free_unless_fresh_is_set(live_on_each: World) -> None:
    world = live_on_each
    person, other = world.person(), world.person()
    dataset = world.open_dataset(person, other)
    client = world.client(person)
    question = count(dataset, 0.1)
    first = ask(client, question, new_key())
    second = ask(client, question, new_key())
    assert second.content == first.content
    assert second.headers["Bursar-Reused"] == "true"
    assert "Bursar-Reused" not in first.headers
    assert world.spent(dataset, person.name) == Decimal("0.1")
    fresh = ask(client, {**question, "fresh": True}, new_key())
    assert fresh.json()["id"] != first.json()["id"]
    assert world.spent(dataset, person.name) == Decimal("0.2")
    newest = ask(client, question, new_key())
    assert newest.content == fresh.content
    theirs = ask(world.client(other), question, new_key())
    assert theirs.json()["id"] not in (first.json()["id"], fresh.json()["id"])
    assert world.spent(dataset, other.name) == Decimal("0.1")
    assert world.spent(dataset, "*") == Decimal("0.3")
    ids = {item["id"]: item for item in made(client.get("/v1/queries"))["items"]}
    reused = [item for item in ids.values() if item["reused_from"] is not None]
    assert [exact(item["price"]) for item in reused] == [0, 0]
    world.must_be_sound()


def test_another_price_or_filter_is_another_question(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    client = live.client(person)
    where = {"column": "age", "op": "<", "value": 50}
    questions = [
        count(dataset, 0.1),
        count(dataset, 0.2),
        count(dataset, 0.1, confidence=0.9),
        {**count(dataset, 0.1), "query": {"kind": "count", "where": where}},
    ]
    ids = {made(ask(client, question, new_key()))["id"] for question in questions}
    assert len(ids) == 4
    assert live.spent(dataset, person.name) == Decimal("0.5")


def test_history_shows_ones_own_questions_and_an_administrator_sees_all(live: World) -> None:
    one, two, viewer = live.person(), live.person(), live.person(role="viewer")
    dataset = live.open_dataset(one, two)
    answer = made(ask(live.client(one), count(dataset, 0.1), new_key()))
    made(ask(live.client(two), count(dataset, 0.1), new_key()))
    mine = made(live.client(one).get("/v1/queries"))["items"]
    assert [item["id"] for item in mine] == [answer["id"]]
    assert mine[0]["answer"] == answer
    assert mine[0]["status"] == "answered"
    assert mine[0]["receipt"] == answer["receipt"]
    found = made(live.client(one).get(f"/v1/queries/{answer['id']}"))
    assert found == mine[0]
    everybody = made(live.admin.get("/v1/queries", params={"limit": 200}))["items"]
    assert {item["analyst"] for item in everybody} >= {one.name, two.name}
    hidden = live.client(two).get(f"/v1/queries/{answer['id']}")
    unknown = live.client(two).get("/v1/queries/q_00000000000000000000000000")
    assert (hidden.status_code, hidden.content) == (404, unknown.content)
    assert live.client(viewer).get("/v1/queries").status_code == 403


def test_the_cursor_pages_through_history_without_a_gap(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person)
    client = live.client(person)
    asked = [made(ask(client, count(dataset, 0.1, fresh=True), new_key()))["id"] for _ in range(5)]
    items = live.pages("/v1/queries", limit=2)
    found = [item["id"] for item in items if item["analyst"] == person.name]
    assert sorted(found) == sorted(asked)
    assert found == sorted(found, reverse=True)


def test_a_dataset_without_a_grant_looks_like_an_unknown_one(live: World) -> None:
    person = live.person()
    granted_to_nobody = live.dataset()
    for_others = live.open_dataset(live.person())
    without_everybody = live.dataset()
    live.grant(without_everybody, person.name, 1)
    client = live.client(person)
    replies = [
        ask(client, count(name), new_key())
        for name in (granted_to_nobody, for_others, without_everybody, "never-registered")
    ]
    assert {reply.status_code for reply in replies} == {403}
    assert len({reply.content for reply in replies}) == 1
    previews = [
        client.post("/v1/queries/preview", json=count(name))
        for name in (granted_to_nobody, for_others, without_everybody, "never-registered")
    ]
    assert {reply.content for reply in previews} == {replies[0].content}
    for path in ("", "/sample", f"/budgets/{person.name}"):
        seen = client.get(f"/v1/datasets/{for_others}{path}")
        unseen = client.get(f"/v1/datasets/never-registered{path}")
        assert (seen.status_code, seen.content) == (404, unseen.content)
    names = [item["name"] for item in made(client.get("/v1/datasets"))["items"]]
    assert names == [without_everybody]


def test_an_invalid_question_does_not_reveal_that_a_hidden_dataset_exists(
    live: World,
) -> None:
    person = live.person()
    hidden = live.open_dataset(live.person())
    client = live.client(person)

    def about(name: str, column: str) -> Json:
        where = {"column": column, "op": "==", "value": 1}
        return {**count(name), "query": {"kind": "count", "where": where}}

    replies = [
        ask(client, about(name, column), new_key())
        for name in (hidden, "never-registered")
        for column in ("age", "no-such-column")
    ]
    assert len({(reply.status_code, reply.content) for reply in replies}) == 1


def test_a_closed_dataset_returns_only_stored_answers(live_on_each: World) -> None:
    world = live_on_each
    person = world.person()
    dataset = world.open_dataset(person)
    client = world.client(person)
    request_key = new_key()
    answer = ask(client, count(dataset, 0.1), request_key)
    made(world.admin.patch(f"/v1/datasets/{dataset}", json={"status": "closed"}))
    refused = ask(client, count(dataset, 0.2), new_key())
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/dataset-closed")
    assert ask(client, count(dataset, 0.1), request_key).content == answer.content
    assert ask(client, count(dataset, 0.1), new_key()).content == answer.content
    preview = made(client.post("/v1/queries/preview", json=count(dataset, 0.2)))
    assert not preview["fits"]
    assert world.spent(dataset, person.name) == Decimal("0.1")
    made(world.admin.patch(f"/v1/datasets/{dataset}", json={"status": "open"}))
    assert ask(client, count(dataset, 0.2), new_key()).status_code == 200


def test_noise_is_fresh_and_centred_on_the_exact_count(live: World) -> None:
    person = live.person()
    dataset = live.open_dataset(person, epsilon=1000)
    client = live.client(person)
    values = [
        made(ask(client, count(dataset, 1, fresh=True), new_key()))["value"] for _ in range(40)
    ]
    assert len(set(values)) > 1
    # With 60 rows, the mean of 40 draws of scale 1 is off by 4 with probability below 1e-8.
    assert abs(sum(values) / len(values) - 60) < 4


def test_a_planted_value_appears_in_no_reply_and_in_no_log(live: World) -> None:
    person = live.person()
    secret_text, secret_number = "ZANZIBAR-SECRET", 48151.62
    rows = some_rows()
    rows[7][1], rows[8][2] = secret_number, secret_text
    dataset = live.dataset(live.write_csv(rows))
    live.grant(dataset, "*", 100)
    live.grant(dataset, person.name, 100)
    client = live.client(person)
    replies = [
        ask(client, {"dataset": dataset, "query": query, "privacy": {"epsilon": 0.1}}, new_key())
        for query in QUERIES
    ]
    replies += [
        client.get(f"/v1/datasets/{dataset}"),
        client.get(f"/v1/datasets/{dataset}/sample", params={"rows": 1000}),
        live.admin.get(f"/v1/datasets/{dataset}"),
        live.admin.get("/v1/ledger/export"),
        live.admin.post(
            "/v1/datasets",
            json={
                "name": "mismatch",
                "source": {"path": live.write_csv([[secret_text, secret_number]], ["a", "b"])},
                "person": {"kind": "row"},
                "neighbours": "add_remove",
                "columns": [{"name": "c", "type": "integer", "low": 0, "high": 1}],
            },
        ),
    ]
    said = "\n".join(reply.text for reply in replies) + live.server.output()
    for planted in (secret_text, str(secret_number), "4815162"):
        assert planted not in said
    assert all(reply.status_code in (200, 422) for reply in replies)
