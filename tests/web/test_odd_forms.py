"""Odd values in forms and addresses: every page refuses them in words, and none fails."""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from app.web.compose.code import as_code
from app.web.compose.json_text import read_json
from app.web.compose.question_from_form import split
from app.web.compose.words import question_in_words
from tests.server import World, count
from tests.web.browsing import browsing
from tests.web.signed_in import Visitor, text_of

ASK = "/datasets/people/ask"
DEEP = "[" * 3000
ODD = [
    *("5", "null", "true", '"text"', "[]", "[1]", "[[]]", "{}", "[{}]", '[{"kind":1}]', "{"),
    *('{"column":5}', '{"where":5}', '{"where":{"op":"zz","column":"age"}}', "NaN", "1e400"),
    *('[{"name":1,"where":[]}]', '"\\ud800"', '{"where":{"all":5}}', '[{"column":{}}]'),
    *(DEEP, "[" * 400 + "]" * 400, "9" * 5000),
]
FIELDS = [
    ("ratio", "f:numerator"),
    ("ratio", "f:denominator"),
    ("aggregates", "f:of"),
    ("workload", "f:predicates"),
    ("workload", "f:strategy"),
    ("workload", "f:consistent"),
    ("workload", "f:nonnegative"),
    ("quantile", "f:q"),
    ("histogram", "f:edges"),
    ("mean", "f:column"),
    ("count", "amount"),
    ("count", "rows"),
    ("count", "delta"),
    ("count", "mechanism"),
]
QUESTIONS = [
    *ODD,
    '{"query":[1]}',
    '{"query":5}',
    '{"query":{"where":5}}',
    '{"query":{"group_by":[5,[]]}}',
    '{"query":{"where":{"all":[1]}}}',
    '{"sql":5}',
    '{"dataset":[],"query":{"kind":[]},"privacy":[]}',
    '{"query":{"where":' + '{"not":' * 50 + "1" + "}" * 51 + "}",
]


def must_not_fail(reply: Any, what: object) -> None:
    assert reply.status_code < 500, (what, reply.status_code, text_of(reply.text)[:300])


@pytest.mark.parametrize(("kind", "field"), FIELDS)
def test_no_value_of_a_field_makes_the_composer_fail(live: World, kind: str, field: str) -> None:
    ada = Visitor.of(live, "ada")
    complete = {"f:numerator": '{"kind":"count"}', "f:denominator": '{"kind":"count"}'}
    complete |= {"f:predicates": '[{"name":"a","where":{"column":"age","op":">","value":1}}]'}
    for odd in [*ODD, "zzz", "nan", "-inf"]:
        fields = {"kind": kind, "amount": "0.1", **complete, field: odd}
        for tab in ("form", "sql"):
            must_not_fail(ada.get(ASK, **fields, tab=tab, sql=odd), (kind, field, odd[:40]))


@pytest.mark.parametrize("operator", ["==", "in", "between", "is_null", "zz", ""])
def test_no_condition_makes_the_composer_fail(live: World, operator: str) -> None:
    ada = Visitor.of(live, "ada")
    for value in ("", ",", "18", "18, 65", "1,2,3", '"', '""', DEEP):
        for column in ("age", "nothing", "region"):
            fields = {"w_column": column, "w_op": operator, "w_value": value, "kind": "count"}
            must_not_fail(ada.get(ASK, **fields), fields)


@pytest.mark.parametrize("text", QUESTIONS)
def test_no_question_makes_a_plan_or_a_payment_fail(live: World, text: str) -> None:
    ada = Visitor.of(live, "ada")
    must_not_fail(ada.get("/plan", q=text), text[:40])
    must_not_fail(ada.get(ASK, plan=text, kind="count"), text[:40])
    for price in ("", "free", "epsilon 5"):
        must_not_fail(ada.post("/plan", q=text, price=price), text[:40])
        must_not_fail(ada.post("/questions", question=text, price=price, form=text), text[:40])


@pytest.mark.parametrize("text", QUESTIONS)
def test_words_and_code_take_any_json(text: str) -> None:
    try:
        value = read_json(text)
    except ValueError:
        return
    if isinstance(value, dict):
        assert question_in_words(value)
        assert "JSON" in as_code(value)


@pytest.mark.parametrize("currency", ["pure", "approximate", "zcdp", "renyi", "gdp", "zzz"])
def test_no_amount_makes_a_grant_fail(live: World, currency: str) -> None:
    admin = Visitor.of(live, "admin")
    path = "/datasets/people/budgets/ada/grant"
    for odd in ("nan", "inf", "-inf", "1e400", "9" * 4000, "-" + "9" * 4000, "x", "-1", "0"):
        for field in ({"epsilon": odd, "delta": "0.000001"}, {"epsilon": "1", "delta": odd}):
            must_not_fail(admin.get(path, currency=currency, **field), field)
            if "epsilon" in field and field["epsilon"] == odd:
                must_not_fail(admin.post(path, currency=currency, tag="", **field), field)


def test_an_unknown_choice_is_refused_and_not_taken_for_no(live: World) -> None:
    predicates = '[{"name":"a","where":{"column":"age","op":">","value":1}}]'
    fields = {"kind": "workload", "f:predicates": predicates, "amount": "0.1"}
    ada = Visitor.of(live, "ada")
    for name in ("strategy", "consistent", "nonnegative"):
        shown = text_of(ada.page(ASK, **{**fields, f"f:{name}": "zzz"}))
        assert "It costs" not in shown, name
        assert f"{name.capitalize()}: " in shown, shown


@pytest.mark.parametrize(("by", "amount"), [("within", "50"), ("rho", "0.001")])
def test_a_price_named_by_error_or_rho_is_not_asked_for_a_curve(
    live: World, by: str, amount: str
) -> None:
    shown = text_of(Visitor.of(live, "ada").page(ASK, kind="count", by=by, amount=amount))
    assert "epsilons" not in shown.lower()
    if by == "within":
        assert "It costs" in shown


def test_a_fresh_kind_misses_its_column_and_not_the_price_in_the_box(live: World) -> None:
    ada = Visitor.of(live, "ada")
    page = ada.page(ASK, kind="mean")
    assert 'name="amount" value="0.1"' in page
    assert "Still missing: column." in text_of(page)
    assert "Ask for ε 0.1" in text_of(ada.page(ASK, kind="count"))


@pytest.mark.parametrize(
    ("operator", "value", "missing"),
    [
        ("in", ",", "a value for age"),
        ("between", "18", "two values for age"),
        ("between", "1, 2, 3", "two values for age"),
        ("==", "", "a value for age"),
    ],
)
def test_a_condition_without_its_values_is_incomplete(
    live: World, operator: str, value: str, missing: str
) -> None:
    fields = {"kind": "count", "w_column": "age", "w_op": operator, "w_value": value}
    shown = text_of(Visitor.of(live, "ada").page(ASK, **fields))
    assert f"Still missing: {missing}." in shown
    assert "Ask for" not in shown


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('"Smith, J", Doe', ["Smith, J", "Doe"]),
        ('a; "b ""c"" d"\n e', ["a", 'b "c" d', "e"]),
        ('5" pipe, 6" pipe', ['5" pipe', '6" pipe']),
        (' , "" ;', []),
        ('"open, end', ['"open', "end"]),
        ("0, 18, 65", ["0", "18", "65"]),
    ],
)
def test_a_value_in_quotes_may_have_a_comma(text: str, parts: list[str]) -> None:
    assert split(text) == parts


def test_an_error_is_said_once_and_in_words(live: World) -> None:
    shown = text_of(Visitor.of(live, "ada").page(ASK, kind="count", amount="abc"))
    assert shown.count("Epsilon: ") == 1
    assert "/privacy" not in shown


def test_a_plan_that_is_too_long_says_so_and_drops_nothing(live: World) -> None:
    ada = Visitor.of(live, "ada")
    questions = [json.dumps(count("people", f"0.00{number:02}")) for number in range(10, 62)]
    page = ada.page("/plan", q=questions)
    shown = text_of(page)
    assert "A plan has at most 50 questions, and this one has 52. Remove 2" in shown
    assert "Your budget pays" not in shown
    assert "Ask all" not in shown
    assert page.count('name="remove"') == 52
    assert page.count("0.0061") == 1  # a question stands once in the page of a plan
    refused = ada.post("/plan", q=questions)
    assert refused.status_code == 422
    assert "at most 50 questions" in refused.text
    fewer = ada.get("/plan", plan=questions, remove="0")
    assert fewer.status_code == 303
    left = ada.page(fewer.headers["location"])
    assert "this one has 51" in text_of(left)
    assert "0.0010" not in left
    whole = ada.page("/plan", q=questions[:50])
    assert len(whole) < 100_000
    assert re.search(r"Ask all 50 for ε [\d.]+", text_of(whole))


def test_a_grant_needs_a_holder_whom_the_interface_knows(live: World) -> None:
    admin = Visitor.of(live, "admin")
    empty = admin.get("/datasets/people/grant", holder="")
    assert empty.status_code == 400
    assert "Name the holder" in text_of(empty.text)
    for unknown in ("nobody-of-this-name", "group:nobody", "vera"):
        reply = admin.get(f"/datasets/people/budgets/{unknown}/grant")
        assert reply.status_code in (404, 422), unknown
        assert "Purchasing power" not in reply.text
    assert "Purchasing power" in admin.page(f"/datasets/people/budgets/{live.person().name}/grant")


def test_the_edges_of_a_column_appear_when_it_is_ticked(browser: Browser, live: World) -> None:
    with browsing(browser, live, "ada") as page:
        page.goto(ASK)
        page.get_by_role("checkbox", name="age").check()
        edges = page.get_by_label("Edges of age")
        expect(edges).to_be_visible()
        edges.fill("0, 18, 65, 120")
        expect(page.locator("#result")).to_contain_text("count by age")
        page.get_by_role("checkbox", name="region").check()
        expect(page.locator("#result")).to_contain_text("count by age, region")
        expect(edges).to_have_value("0, 18, 65, 120")


def test_a_question_is_removed_from_a_plan_with_a_button(browser: Browser, live: World) -> None:
    first, second = (json.dumps(count("people", epsilon)) for epsilon in ("0.011", "0.012"))
    with browsing(browser, live, "ada") as page:
        page.goto(f"/plan?q={first}&q={second}")
        page.get_by_role("button", name="Remove question 1").click()
        expect(page.get_by_role("button", name="Ask all 1 for ε 0.012")).to_be_visible()
        page.get_by_role("button", name="About people").click()
        page.get_by_role("button", name="Show the price").click()
        page.get_by_role("link", name="Add to a plan").click()
        expect(page.get_by_role("button", name="Remove question 2")).to_be_visible()
