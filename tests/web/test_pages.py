"""Pages over HTTP, on both stores: what each shows, and what its forms do."""

import html
import json
import re
from urllib.parse import quote

import pytest

from tests.server import World, count, made, new_key
from tests.web.signed_in import Visitor, field_of, text_of

MARKUP = '<img src=x onerror=alert(1)> & "quotes"'
ASK = {"kind": "count", "w_column": "age", "w_op": ">=", "w_value": "18", "amount": "0.1"}


def test_an_analyst_composes_previews_rehearses_and_pays(world: World) -> None:
    ada = Visitor.of(world, "ada")
    empty = ada.page("/datasets/people/ask")
    assert "Compose a question" in empty
    priced = ada.page("/datasets/people/ask", **ASK)
    shown = text_of(priced)
    assert "count where age ≥ 18" in shown
    assert "It costs ε 0.1 leaves ε 0.9" in shown
    assert "Ask for ε 0.1" in shown
    assert "With 95 % confidence the noise changes the count by at most 30 rows." in shown
    rehearsed = text_of(ada.page("/datasets/people/ask", **ASK, show="rehearsal"))
    assert "made-up rows" in rehearsed
    assert world.spent("people", "ada") == 0
    form = {name: field_of(priced, name) for name in ("question", "request_key", "price")}
    reply = ada.post("/questions", **form)
    assert reply.status_code == 303
    answer = text_of(ada.page(reply.headers["location"]))
    assert "With 95 % confidence the answer without noise lies between" in answer
    assert "The interval covers the noise only" in answer
    again = ada.post("/questions", **form)  # the same form, sent twice
    assert again.headers["location"] == reply.headers["location"]
    assert str(world.spent("people", "ada")) == "0.1"
    free = ada.page("/datasets/people/ask", **ASK)
    assert "Show the answer, free" in text_of(free)
    world.must_be_sound()


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        ("is_null", "count where age is missing"),
        ("is_not_null", "count where not (age is missing)"),
    ],
)
def test_a_condition_on_missing_values_needs_no_value(
    live: World, operator: str, words: str
) -> None:
    condition = {"w_op": operator, "w_value": ""}
    shown = text_of(Visitor.of(live, "bob").page("/datasets/people/ask", **{**ASK, **condition}))
    assert words in shown, shown


def test_a_question_that_became_unaffordable_is_refused_on_a_page_and_costs_nothing(
    world: World,
) -> None:
    ada = Visitor.of(world, "ada")
    priced = ada.page("/datasets/people/ask", **{**ASK, "amount": "0.9"})
    form = {name: field_of(priced, name) for name in ("question", "request_key", "price")}
    other = {"dataset": "people", "query": {"kind": "count"}, "privacy": {"epsilon": 0.5}}
    made(world.client("ada").post("/v1/queries", json=other))
    reply = ada.post("/questions", **form)
    assert reply.status_code == 402
    assert "costs more than the budget of ada has left" in reply.text
    assert str(world.spent("people", "ada")) == "0.5"


def test_a_preview_that_does_not_fit_offers_the_largest_price_and_no_button(live: World) -> None:
    bob = Visitor.of(live, "bob")
    shown = text_of(bob.page("/datasets/people/ask", **{**ASK, "amount": "7"}))
    assert "The most that you can ask for now: ε 1" in shown
    assert "Ask for ε 7" not in shown


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"amount": "abc"}, "Epsilon: "),
        ({"amount": "-1"}, "Epsilon: "),
        ({"w_value": "many"}, "Where: "),
        ({"kind": "mean", "f:column": "region"}, "region"),
        ({"kind": "quantile", "f:column": "age", "f:q": "2"}, "Q: "),
        ({"mechanism": "gaussian"}, "delta"),
    ],
)
def test_a_wrong_field_is_named_beside_the_form(
    live: World, fields: dict[str, str], expected: str
) -> None:
    page = Visitor.of(live, "ada").page("/datasets/people/ask", **{**ASK, **fields})
    assert 'role="alert"' in page
    assert expected in text_of(page)
    assert "Show the price" in page  # the form is still there, as it was filled in


def test_a_form_without_its_price_says_what_is_missing(live: World) -> None:
    ada = Visitor.of(live, "ada")
    shown = text_of(ada.page("/datasets/people/ask", kind="mean", amount=""))
    assert "Still missing: column, price." in shown


def test_sql_has_the_same_price_as_the_form(live: World) -> None:
    ada = Visitor.of(live, "ada")
    sql = "SELECT region, COUNT(*) FROM people WHERE age >= 18 GROUP BY region"
    shown = text_of(ada.page("/datasets/people/ask", tab="sql", sql=sql, amount="0.2"))
    assert "It costs ε 0.2" in shown
    wrong = text_of(ada.page("/datasets/people/ask", tab="sql", sql="SELECT *", amount="0.2"))
    assert "SQL" in wrong


def test_a_plan_shows_where_the_budget_stops_and_asks_all_or_none(world: World) -> None:
    ada = Visitor.of(world, "ada")
    questions = [
        json.dumps({"dataset": "people", "query": {"kind": "count"}, "privacy": {"epsilon": e}})
        for e in (0.3, 0.4)
    ]
    fits = ada.page("/plan", q=questions)
    assert "Your budget pays for all 2 questions." in text_of(fits)
    too_much = ada.page("/plan", q=[*questions, questions[1].replace("0.4", "0.5")])
    assert "Your budget stops at question 3." in text_of(too_much)
    assert "Ask all" not in too_much
    form = {"q": questions, "request_key": field_of(fits, "request_key")}
    form["price"] = ["epsilon 0.3", "epsilon 0.4"]
    assert ada.post("/plan", **form).status_code == 303
    assert ada.post("/plan", **form).status_code == 303  # sent twice
    assert str(world.spent("people", "ada")) == "0.7"


def test_an_administrator_adds_somebody_grants_and_hands_over_a_key(world: World) -> None:
    admin = Visitor.of(world, "admin")
    page = admin.page("/people")
    form = {"name": "carla", "role": "analyst", "groups": "health, economics"}
    reply = admin.post("/people", **form, request_key=field_of(page, "request_key"))
    assert reply.headers["location"] == "/people/carla"
    person = admin.page("/people/carla")
    key_form = {"days": "30", "request_key": field_of(person, "request_key")}
    issued = admin.post("/people/carla/keys", **key_form)
    key = text_of(issued.text).split("stored nowhere: ")[1].split()[0]
    assert key.startswith("bursar_")
    twice = admin.post("/people/carla/keys", **key_form)
    assert "This form was sent twice" in twice.text
    assert key not in twice.text
    grant = "/datasets/people/budgets/carla/grant"
    bought = text_of(admin.page(grant, currency="zcdp", epsilon="2", delta="0.000001"))
    assert "Purchasing power" in bought
    granted = admin.post(grant, currency="pure", epsilon="0.5", tag="", reason="study 12")
    assert granted.status_code == 303
    assert admin.post(grant, currency="pure", epsilon="0.5", tag="").status_code == 303
    assert admin.post(grant, currency="pure", epsilon="0.6", tag="").status_code == 412
    carla = Visitor(world.server.client())
    assert carla.post("/sign-in", key=key).status_code == 303
    assert "of ε 0.5 (pure)" in text_of(carla.page("/datasets/people/budgets/carla"))


def test_a_dataset_is_drafted_registered_and_undone(world: World) -> None:
    admin = Visitor.of(world, "admin")
    path = world.write_csv([[30, "north"], [41, "south"]], ["age", "region"])
    draft = admin.page("/register", place=path)
    assert "Bounds and categories come from public knowledge" in draft
    form = {
        "place": path,
        "name": "small",
        "person": "row",
        "neighbours": "add_remove",
        "column": ["age", "region"],
        "type:0": "integer",
        "low:0": "0",
        "high:0": "120",
        "type:1": "category",
        "request_key": field_of(draft, "request_key"),
    }
    refused = admin.post("/register", **form)
    assert refused.status_code == 422
    assert "/columns/1" in refused.text
    assert 'value="small"' in refused.text  # what was typed is still there
    form["values:1"] = "north, south"
    reply = admin.post("/register", **form)
    assert reply.headers["location"] == "/datasets/small"
    again = admin.post("/register", **form)
    assert again.headers["location"] == "/datasets/small"
    page = admin.page("/datasets/small")
    assert "Nobody may ask yet" in page
    key = field_of(page, "request_key")
    gone = admin.post("/datasets/small/withdraw", request_key=key)
    assert "small is withdrawn" in text_of(gone.text)
    assert admin.get("/datasets/small").status_code == 404


def test_viewers_see_budgets_and_the_ledger_and_nothing_that_changes(live: World) -> None:
    vera = Visitor.of(live, "vera")
    assert "ada" in vera.page("/")
    assert "grant" in vera.page("/ledger")
    assert "Change the budget" not in vera.page("/datasets/people/budgets/ada")
    for path in ("/people", "/register", "/datasets/people/ask", "/plan"):
        assert vera.get(path).status_code == 403, path
    assert vera.post("/people", name="x").status_code == 403


def test_analysts_see_their_own_only(live: World) -> None:
    ada = Visitor.of(live, "ada")
    page = ada.page("/")
    assert "bob" not in text_of(page)
    assert ada.get("/datasets/people/budgets/bob").status_code == 404
    assert ada.get("/datasets/people/budgets/*").status_code == 404
    assert ada.get("/ledger").status_code == 403
    other = Visitor.of(live, live.person())
    question = made(
        live.client("ada").post(
            "/v1/queries",
            json={"dataset": "people", "query": {"kind": "count"}, "privacy": {"epsilon": 0.01}},
        )
    )
    assert ada.get(f"/questions/{question['id']}").status_code == 200
    assert other.get(f"/questions/{question['id']}").status_code == 404


def test_markup_in_names_and_descriptions_is_text(world: World) -> None:
    body = {"description": MARKUP}
    made(world.admin.patch("/v1/datasets/people", json=body))
    made(world.admin.patch("/v1/analysts/ada", json={"groups": ["<b>bold"]}))
    for visitor in (Visitor.of(world, "admin"), Visitor.of(world, "ada")):
        for path in ("/", "/datasets", "/datasets/people"):
            page = visitor.page(path)
            assert "<img src=x" not in page
            assert "<b>" not in page
    assert "&lt;img src=x onerror" in Visitor.of(world, "admin").page("/datasets/people")


def test_verification_on_a_page_says_sound(world: World) -> None:
    reply = Visitor.of(world, "admin").post("/ledger/verify")
    assert "The ledger is sound" in text_of(reply.text)


def test_forms_that_are_too_large_or_no_forms_are_refused(live: World) -> None:
    ada = Visitor.of(live, "ada")
    origin = {"Origin": live.server.url}
    large = ada.client.post("/questions", data={"question": "x" * 300_000}, headers=origin)
    assert large.status_code == 413
    no_form = ada.client.post("/questions", json={}, headers=origin)
    assert no_form.status_code == 415
    assert ada.post("/questions", question="nonsense").status_code == 400
    assert ada.get("/plan", q="nonsense").status_code == 400


def test_the_ledger_begins_with_the_newest_entry_and_suggests_real_kinds(live: World) -> None:
    admin = Visitor.of(live, "admin")
    page = admin.page("/ledger")
    newest = made(live.admin.get("/v1/ledger", params={"order": "newest", "limit": 3}))["items"]
    hashes = re.findall(r'title="([0-9a-f]{64})"', page)
    assert hashes[:3] == [entry["hash"] for entry in newest]
    oldest = admin.page("/ledger", order="oldest")
    assert "oldest first" in text_of(oldest)
    suggested = re.findall(r'<option value="([a-z_]+)">', page.partition("<datalist")[2])
    assert "charge" in suggested
    for kind in suggested:
        assert admin.get("/ledger", kind=kind).status_code == 200, kind


def test_mechanisms_side_by_side_name_their_noise(live: World) -> None:
    form = {"kind": "mode", "f:column": "region", "amount": "0.1"}
    shown = text_of(Visitor.of(live, "ada").page("/datasets/people/ask", **form))
    assert "noisy max (gumbel)" in shown
    assert "permute and flip" in shown


ODD = ["Jo Ann", "50%", "\u017elu\u0165", "a+b", "x?y=1", "x#y", "A&B"]


def test_people_and_datasets_with_odd_names_have_pages(world: World) -> None:
    admin = Visitor.of(world, "admin")
    for name in ODD:
        reply = admin.post("/people", name=name, role="analyst", request_key=new_key())
        assert reply.status_code == 303, (name, reply.text)
        assert name in html.unescape(admin.page(reply.headers["location"])), name
        quoted = quote(name, safe="")
        world.grant("people", quoted, 1)
        path = f"/datasets/people/budgets/{quoted}"
        shown = admin.page(path)
        assert f"{name} on people" in text_of(shown)
        assert f'data-live="{path}"' in shown
    assert admin.get("/people/nobody").status_code == 404


@pytest.mark.parametrize("currency", ["pure", "approximate", "zcdp", "renyi", "gdp"])
def test_a_budget_of_any_currency_is_frozen_by_one_button(live: World, currency: str) -> None:
    person = live.person()
    budget = {"currency": currency, "epsilon": 1}
    budget |= {} if currency == "pure" else {"delta": 0.000001}
    path = f"/datasets/people/budgets/{person.name}"
    made(live.admin.put(f"/v1{path}", json=budget))
    made(live.client(person).post("/v1/queries", json=count("people", 0.1)))
    admin = Visitor.of(live, "admin")
    page = admin.page(f"{path}/grant")
    form = page.partition("Before and after")[2]
    fields = {name: field_of(form, name) for name in ("tag", "currency", "epsilon", "delta")}
    assert admin.post(f"{path}/grant", **fields, reason="frozen").status_code == 303
    assert made(live.admin.get(f"/v1{path}"))["frozen"] is True
    refused = live.client(person).post("/v1/queries", json=count("people", 0.001, fresh=True))
    assert refused.status_code == 423, refused.text
    assert "Freeze this budget now" not in admin.page(f"{path}/grant")
