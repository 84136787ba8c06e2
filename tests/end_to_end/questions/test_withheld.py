"""Answers that may be withheld, over HTTP: charged, stored, replayed and listed like others.

A withheld answer has as many bytes as a released one. The tests also cover currencies that can pay
and invalid proposals.
"""

from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.server import COLUMNS, Json, Person, World, ask, exact, made, new_key

BOTH: Json = {"epsilon": 4, "delta": "1e-6"}
PROPOSED: Json = {"kind": "propose_test_release", "bound": 10}
MEDIAN: Json = {"kind": "median", "column": "age"}
GRANT: Json = {"currency": "approximate", "epsilon": 100000, "delta": "0.9"}
# The outcome is nearly certain: with T >= 6 a distance of 0 passes with probability 1e-6.
SAFE = [[50, 1000, "north", "true", "2021-01-01"]] * 300
UNSAFE = [[0, 0, "north", "true", "2021-02-02"], [120, 99999, "south", "true", "2021-02-02"]] * 2
WITHHOLDING: dict[str, tuple[Json, Json]] = {
    "median": (MEDIAN, PROPOSED),
    "quantile": ({"kind": "quantile", "column": "income", "q": 0.4}, {**PROPOSED, "bound": 99.5}),
    "iqr": ({"kind": "iqr", "column": "age"}, {**PROPOSED, "noise": "gaussian"}),
    "mean": ({"kind": "mean", "column": "age"}, {**PROPOSED, "bound": 1}),
    "mode": ({"kind": "mode", "column": "region"}, {"kind": "stable_value"}),
    "top_k": ({"kind": "top_k", "column": "region", "k": 1}, {"kind": "stable_value"}),
}


def opened(world: World, rows: list[Any], grant: Json = GRANT, **card: Any) -> tuple[str, Person]:
    person = world.person()
    dataset = world.dataset(world.write_csv(rows), columns=COLUMNS, **card)
    for holder in (person.name, "*"):
        made(world.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=grant))
    return dataset, person


def question(dataset: str, query: Json, mechanism: Json | None, **more: Any) -> Json:
    asked = {"dataset": dataset, "query": query, "privacy": BOTH, **more}
    return asked if mechanism is None else {**asked, "mechanism": mechanism}


@pytest.fixture(scope="module")
def tables(live: World) -> tuple[str, str, httpx.Client]:
    """A table that is safe for the proposal and one that is not, for the same analyst."""
    (safe, person), (unsafe, _) = opened(live, SAFE), opened(live, UNSAFE)
    made(live.admin.put(f"/v1/datasets/{unsafe}/budgets/{person.name}", json=GRANT))
    return safe, unsafe, live.client(person)


@pytest.mark.parametrize("name", WITHHOLDING)
def test_a_withheld_answer_has_the_bytes_and_fields_of_a_released_one(
    tables: tuple[str, str, httpx.Client], name: str
) -> None:
    safe, unsafe, client = tables
    query, mechanism = WITHHOLDING[name]
    released = ask(client, question(safe, query, mechanism), new_key())
    withheld = ask(client, question(unsafe, query, mechanism), new_key())
    answers = [made(reply) for reply in (released, withheld)]
    assert [answer["status"] for answer in answers] == ["answered", "withheld"]
    assert answers[1]["value"] is None
    assert answers[1]["interval"] is None
    assert answers[0]["value"] is not None
    assert answers[0].keys() == answers[1].keys()
    assert answers[0]["mechanism"] == answers[1]["mechanism"]
    assert len(_own(released, answers[0])) == len(_own(withheld, answers[1]))
    assert exact(answers[0]["charged"]) == exact(answers[1]["charged"]) == 4
    assert exact(answers[0]["charged"], "delta") == exact(answers[1]["charged"], "delta")


def _own(reply: httpx.Response, answer: Json) -> str:
    """The reply without the parts fixed by the charge, which do not depend on data."""
    text, _, _ = reply.text.partition(',"charged":')
    assert answer["id"] in text
    return text


def test_no_length_reveals_whether_an_answer_is_withheld(live: World) -> None:
    """Ask a table at the threshold sixty times: some answers are released and some withheld.

    All sixty agree with probability below 1e-7.
    """
    dataset, person = opened(live, [[50, 1, "north", "true", "2021-03-03"]] * 8)
    client = live.client(person)
    body = question(dataset, MEDIAN, PROPOSED, fresh=True)
    body["privacy"] = {"epsilon": 1, "delta": "0.01"}
    sizes: dict[str, set[int]] = {"answered": set(), "withheld": set()}
    for _ in range(60):
        reply = ask(client, body, new_key())
        sizes[made(reply)["status"]].add(len(_own(reply, made(reply))))
    assert sizes["answered"] == sizes["withheld"] != set()
    assert len(sizes["answered"]) == 1


def test_a_withheld_answer_is_charged_replayed_reused_and_listed(live_on_each: World) -> None:
    world = live_on_each
    dataset, person = opened(world, UNSAFE)
    client = world.client(person)
    body = question(dataset, MEDIAN, PROPOSED)
    preview = made(client.post("/v1/queries/preview", json=body))
    assert preview["expected_error"]["half_width"] > 0
    assert preview["expected_error"]["told_from"] > preview["mechanism"]["threshold"]
    key = new_key()
    reply = ask(client, body, key)
    answer = made(reply)
    assert answer["status"] == "withheld"
    assert exact(answer["charged"]) == exact(preview["price"]) == 4
    delta = exact(answer["charged"], "delta")
    assert Decimal(0) < delta == exact(preview["price"], "delta") <= Decimal("1e-6")
    assert world.spent(dataset, person.name) == 4
    assert exact(world.budget(dataset, "*")["spent"], "delta") == delta
    again = ask(client, body, key)
    assert (again.content, again.headers["idempotent-replayed"]) == (reply.content, "true")
    other = ask(client, body, new_key())
    assert (other.content, other.headers["bursar-reused"]) == (reply.content, "true")
    assert world.spent(dataset, person.name) == 4
    items = made(client.get("/v1/queries"))["items"]
    assert {item["status"] for item in items if item["dataset"] == dataset} == {"withheld"}
    one = made(client.get(f"/v1/queries/{answer['id']}"))
    assert (one["status"], one["answer"]) == ("withheld", answer)
    world.must_be_sound()


def test_a_privately_chosen_bound_is_released_even_if_the_answer_is_withheld(live: World) -> None:
    dataset, person = opened(live, SAFE)
    client = live.client(person)
    body = question(dataset, MEDIAN, {"kind": "propose_test_release"})
    preview = made(client.post("/v1/queries/preview", json=body))
    assert preview["mechanism"]["bound"] is None
    assert preview["expected_error"]["half_width"] is None
    answer = made(ask(client, body, new_key()))
    assert answer["status"] == "answered"
    assert answer["bound"] in [1, 2, 4, 8, 16, 32, 64, 120]
    width = answer["interval"]["high"] - answer["interval"]["low"]
    assert abs(answer["value"] - 50) <= 60
    assert 0 < width <= 120
    assert exact(answer["charged"]) == 4


def test_persons_with_several_rows_work_under_both_relations(live: World) -> None:
    """600 rows of one value, at most two per person, are far from any unsafe table."""
    rows = [[50, 1, "north", "true", "2021-04-04", i // 2] for i in range(600)]
    header = [column["name"] for column in COLUMNS] + ["id"]
    for relation in ("add_remove", "replace_one"):
        again = [[50, 1, "north", relation == "add_remove", *row[4:]] for row in rows]
        person = live.person()
        public = {"rows": 600} if relation == "replace_one" else {}
        dataset = live.dataset(
            live.write_csv(again, header),
            columns=COLUMNS,
            neighbours=relation,
            person={"kind": "column", "column": "id", "rows_max": 2},
            **public,
        )
        for holder in (person.name, "*"):
            made(live.admin.put(f"/v1/datasets/{dataset}/budgets/{holder}", json=GRANT))
        client = live.client(person)
        for name in ("median", "iqr", "mean", "mode"):
            query, mechanism = WITHHOLDING[name]
            answer = made(ask(client, question(dataset, query, mechanism), new_key()))
            assert answer["status"] == "answered", (relation, name)


CURRENCIES = ["pure", "approximate", "zcdp", "renyi", "gdp"]


@pytest.mark.parametrize("currency", CURRENCIES)
def test_accounts_with_a_delta_can_pay(live: World, currency: str) -> None:
    grant: Json = {"currency": currency, "epsilon": 30}
    if currency != "pure":
        grant["delta"] = "1e-2"
    if currency in ("zcdp", "renyi", "gdp"):
        grant["failure_delta"] = "1e-3"
    # separate tables, since each body of data has one currency
    age = 51 + CURRENCIES.index(currency)
    dataset, person = opened(live, [[age, *SAFE[0][1:]]] * 200, grant)
    client = live.client(person)
    for name in ("median", "mode"):
        reply = ask(client, question(dataset, *WITHHOLDING[name]), new_key())
        if currency == "pure":
            assert reply.status_code in (402, 403, 422), reply.text
            assert "approximate" in reply.text
        else:
            assert made(reply)["status"] == "answered"
    assert (live.spent(dataset, person.name) > 0) == (currency != "pure")


BAD: dict[str, tuple[Json, Json, str]] = {
    "a bound of zero": ({"mechanism": {**PROPOSED, "bound": 0}}, {}, "/mechanism/bound"),
    "a negative bound": ({"mechanism": {**PROPOSED, "bound": -2.5}}, {}, "/mechanism/bound"),
    "a bound that is a text": ({"mechanism": {**PROPOSED, "bound": "2"}}, {}, "/mechanism/bound"),
    "a bound below a step": ({"mechanism": {**PROPOSED, "bound": 0.5}}, {}, "/mechanism/bound"),
    "no delta": ({"privacy": {"epsilon": 1}}, {}, "/privacy/delta"),
    "a share of one": ({"mechanism": {**PROPOSED, "test_share": 1}}, {}, "/mechanism/test_share"),
    "a share for a proposal beside a bound": (
        {"mechanism": {**PROPOSED, "proposal_share": 0.1}},
        {},
        "/mechanism",
    ),
    "shares that leave nothing": (
        {"mechanism": {"kind": "propose_test_release", "test_share": 0.6, "proposal_share": 0.4}},
        {},
        "/mechanism",
    ),
    "another noise": ({"mechanism": {**PROPOSED, "noise": "gumbel"}}, {}, "/mechanism/noise"),
    "Gaussian noise for a bound to be chosen": (
        {"mechanism": {"kind": "propose_test_release", "noise": "gaussian"}},
        {},
        "/mechanism/noise",
    ),
    "candidates": ({}, {"candidates": [1, 2]}, "/query/candidates"),
    "groups": ({}, {"kind": "mean", "group_by": ["region"]}, "/mechanism/kind"),
    "a count": ({}, {"kind": "count", "column": None}, "/mechanism/kind"),
    "a half width without a bound": (
        {
            "mechanism": {"kind": "propose_test_release"},
            "privacy": {"half_width": 3, "delta": "1e-6"},
        },
        {},
        "/privacy",
    ),
    "a stable median": ({"mechanism": {"kind": "stable_value"}}, {}, "/mechanism/kind"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_invalid_proposal_is_named_and_nothing_is_charged(
    live: World, tables: tuple[str, str, httpx.Client], name: str
) -> None:
    safe, _, client = tables
    changes, query, pointer = BAD[name]
    asked = {k: v for k, v in {**MEDIAN, **query}.items() if v is not None}
    before = made(client.get("/v1/queries"))["items"]
    reply = ask(client, {**question(safe, asked, PROPOSED), **changes}, new_key())
    assert reply.status_code == 422, reply.text
    problem = reply.json()
    assert pointer in [each["pointer"] for each in problem["errors"]], problem
    assert made(client.get("/v1/queries"))["items"] == before


def test_nothing_is_withheld_unless_the_mechanism_was_named(
    tables: tuple[str, str, httpx.Client],
) -> None:
    _, unsafe, client = tables
    for query, _ in WITHHOLDING.values():
        preview = made(client.post("/v1/queries/preview", json=question(unsafe, query, None)))
        kinds = {each["kind"] for each in preview["alternatives"]} | {preview["mechanism"]["kind"]}
        assert not kinds & {"propose_test_release", "stable_value"}
