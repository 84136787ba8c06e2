"""A form carries the price that its page has shown. Nobody pays more than that."""

import json
import re

import pytest

from app.web.compose.prices import is_dearer, price_text, sum_of_prices
from app.web.numbers import price
from tests.server import World, count, made, some_rows
from tests.web.signed_in import Visitor, field_of, text_of

RISEN = "The price has risen since this page showed it."


def form_of(page: str) -> dict[str, str]:
    return {name: field_of(page, name) for name in ("question", "request_key", "price", "form")}


def rewritten(world: World, path: str, dataset: str) -> None:
    """New rows under a dataset: its old answers are no longer given for free."""
    world.write_csv(some_rows(80), name=path)
    made(world.admin.patch(f"/v1/datasets/{dataset}", json={"refresh": True}))


def asked_once(world: World) -> tuple[str, str, Visitor]:
    """A file, its dataset, and a visitor who has paid 0.2 for a count of it."""
    ada = world.person()
    path = world.write_csv(some_rows())
    dataset = world.dataset(path)
    world.grant(dataset, "*", 10)
    world.grant(dataset, ada.name, 1)
    made(world.client(ada).post("/v1/queries", json=count(dataset, "0.2")))
    return path, dataset, Visitor.of(world, ada)


def test_a_form_that_said_free_charges_nothing_after_the_data_have_changed(live: World) -> None:
    path, dataset, ada = asked_once(live)
    page = ada.page(f"/datasets/{dataset}/ask", kind="count", amount="0.2")
    assert "Show the answer, free" in text_of(page)
    rewritten(live, path, dataset)
    name = _holder(live, dataset)
    reply = ada.post("/questions", **form_of(page))
    assert reply.status_code == 409
    shown = text_of(reply.text)
    assert RISEN in shown
    assert "Ask for ε 0.2" in shown
    assert str(live.spent(dataset, name)) == "0.2"
    assert 'name="amount" value="0.2"' in reply.text  # the form is as it was filled in
    assert f'action="/datasets/{dataset}/ask"' in reply.text
    assert form_of(reply.text)["request_key"] == form_of(page)["request_key"]
    paid = ada.post("/questions", **form_of(reply.text))
    assert paid.status_code == 303
    assert str(live.spent(dataset, name)) == "0.4"


def test_a_plan_that_said_free_charges_nothing_after_the_data_have_changed(live: World) -> None:
    path, dataset, ada = asked_once(live)
    questions = [json.dumps(count(dataset, "0.2")), json.dumps(count(dataset, "0.1"))]
    page = ada.page("/plan", q=questions)
    assert "Ask all 2 for ε 0.1" in text_of(page)
    prices = re.findall(r'name="price" value="([^"]*)"', page)
    assert prices == ["free", "epsilon 0.1"]
    rewritten(live, path, dataset)
    form = {"q": questions, "request_key": field_of(page, "request_key"), "price": prices}
    reply = ada.post("/plan", **form)
    assert reply.status_code == 409
    assert RISEN in text_of(reply.text)
    assert "Ask all 2 for ε 0.3" in text_of(reply.text)
    holder = _holder(live, dataset)
    assert str(live.spent(dataset, holder)) == "0.2"
    form["price"] = re.findall(r'name="price" value="([^"]*)"', reply.text)
    assert ada.post("/plan", **form).status_code == 303
    assert ada.post("/plan", **form).status_code == 303  # sent twice
    assert str(live.spent(dataset, holder)) == "0.5"


def test_a_form_sent_twice_around_a_change_of_the_data_is_paid_once(live: World) -> None:
    path, dataset, ada = asked_once(live)
    page = ada.page(f"/datasets/{dataset}/ask", kind="count", amount="0.3")
    first = ada.post("/questions", **form_of(page))
    rewritten(live, path, dataset)
    again = ada.post("/questions", **form_of(page))
    assert again.headers["location"].partition("?")[0] == first.headers["location"]
    assert str(live.spent(dataset, _holder(live, dataset))) == "0.5"


def test_a_form_without_a_price_is_shown_again(live: World) -> None:
    ada = Visitor.of(live, "ada")
    question = json.dumps(count("people", "0.01234"))
    spent = live.spent("people", "ada")
    for price_sent in ({}, {"price": "free"}, {"price": "cheap"}, {"price": "epsilon NaN"}):
        assert ada.post("/questions", question=question, **price_sent).status_code == 409
        assert ada.post("/plan", q=[question], **price_sent).status_code == 409
    assert live.spent("people", "ada") == spent


@pytest.mark.parametrize(
    ("loss", "shown"),
    [
        ({"epsilon": 1.0049}, "ε 1.01"),
        ({"epsilon": 0.10049, "delta": 0.0}, "ε 0.101"),
        ({"epsilon": 0.1, "epsilon_exact": "0.1000000000000000001"}, "ε 0.101"),
        ({"epsilon": 0.25}, "ε 0.25"),
        ({"epsilon": 1234.5}, "ε 1,240"),
        ({"epsilon": 0.1, "delta": 1.234e-6}, "ε 0.1 and δ 1.24e-6"),
        ({"epsilon": None, "delta": 0.0, "rho": 0.0010001}, "rho 0.00101"),
    ],
)
def test_a_price_is_rounded_up_and_has_its_delta(loss: dict[str, object], shown: str) -> None:
    assert re.sub("<[^>]+>", "", price(loss)) == shown


def test_the_button_of_a_question_names_no_less_than_it_costs(live: World) -> None:
    ada = Visitor.of(live, "ada")
    page = ada.page("/datasets/people/ask", kind="count", amount="0.10049")
    assert "Ask for ε 0.101" in text_of(page)
    assert "It costs ε 0.101" in text_of(page)
    assert 'title="0.10049"' in page


@pytest.mark.parametrize(
    ("now", "shown", "dearer"),
    [
        ({"epsilon": 0.2}, "free", True),
        ({"epsilon": 0.2}, "epsilon 0.2", False),
        ({"epsilon": 0.2}, "epsilon 0.3", False),
        ({"epsilon": 0.2, "epsilon_exact": "0.2000000000000000001"}, "epsilon 0.2", True),
        ({"epsilon": 0.2, "delta": 1e-6}, "epsilon 0.2", True),
        ({"epsilon": 0.2, "delta": 0.0}, "epsilon 0.2 delta 0.000001", False),
        ({"epsilon": None, "rho": 0.1}, "epsilon 0.2 rho 0.1", True),
        ({"epsilon": 0.2}, "epsilon", True),
        ({"epsilon": 0.2}, "epsilon Infinity", True),
        ({"epsilon": 0.2}, "price 7", True),
    ],
)
def test_a_price_is_dearer_if_any_member_is(
    now: dict[str, object], shown: str, dearer: bool
) -> None:
    preview = {"reused": False, "price": now}
    assert is_dearer(preview, shown) == dearer
    assert not is_dearer(preview, price_text(preview))
    assert not is_dearer({**preview, "reused": True}, shown)


def test_the_sum_of_a_plan_leaves_out_what_is_free() -> None:
    paid = {"reused": False, "price": {"epsilon": 0.1, "delta": 1e-6}}
    free = {**paid, "reused": True}
    assert sum_of_prices([free]) is None
    total = sum_of_prices([paid, paid, paid, free])
    assert total is not None
    assert (total["epsilon_exact"], total["delta_exact"]) == ("0.3", "0.000003")


def _holder(world: World, dataset: str) -> str:
    """The analyst who has a budget on this dataset."""
    budgets = made(world.admin.get("/v1/budgets", params={"dataset": dataset}))["items"]
    return next(str(budget["holder"]) for budget in budgets if budget["holder"] != "*")
