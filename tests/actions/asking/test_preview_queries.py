"""Previews: free, computed from public facts, and equal to the later charge."""

import json

import pytest

from app.access import Principal, Role, holders_of
from app.errors import BudgetExhausted, Invalid, NoGrant, NotPermitted
from app.ledger.account import EVERYBODY
from app.planning.preview_request import AssumedQuestion
from tests.actions.service import Service, body

COUNT = {"kind": "count"}


def test_a_preview_charges_nothing_and_shows_the_later_price(service: Service) -> None:
    (preview,) = service.preview(body(COUNT, epsilon="0.3"))
    assert service.account("ann").balance.common == (0, 0)
    assert preview["price"] == {"epsilon": 0.3, "delta": 0.0}
    assert preview["fits"]
    assert preview["refusal"] is None
    answer = json.loads(service.ask(COUNT, epsilon="0.3").text)
    assert answer["charged"]["epsilon"] == 0.3
    assert answer["mechanism"] == preview["mechanism"]
    assert answer["charged"]["accounts"][0]["remaining"] == preview["remaining_after"]
    assert answer["theorem"] == preview["theorem"]


def test_a_list_is_previewed_as_if_each_question_were_paid_before_the_next(
    service: Service,
) -> None:
    previews = service.preview(*[body(COUNT, epsilon=e) for e in ("0.6", "0.5", "0.4", "0.1")])
    assert [preview["fits"] for preview in previews] == [True, False, True, False]
    assert previews[1]["refusal"]["largest_epsilon"] == 0.4
    assert previews[2]["remaining_after"]["epsilon"] == 0.0
    service.ask(COUNT, epsilon="0.6")
    with pytest.raises(BudgetExhausted):
        service.ask(COUNT, epsilon="0.5")
    service.ask(COUNT, epsilon="0.4")


def test_the_largest_epsilon_of_a_preview_fits_and_a_unit_more_does_not(service: Service) -> None:
    """This includes everybody's account: a refusal by it shows the same epsilon."""
    (preview,) = service.preview(body(COUNT))
    assert preview["largest_epsilon"] == 1.0
    service.grant(EVERYBODY, "0.7")
    (preview,) = service.preview(body(COUNT))
    assert preview["largest_epsilon"] == 0.7
    fits, passes = (
        service.preview(body(COUNT, epsilon=epsilon))[0] for epsilon in ("0.7", "0.700000000001")
    )
    assert fits["fits"]
    assert not passes["fits"]


def test_a_preview_needs_no_data(service: Service) -> None:
    service.file.unlink()
    (preview,) = service.preview(body({"kind": "histogram", "column": "city"}))
    assert preview["groups"] == 3
    assert preview["expected_error"]["half_width"] > 0
    (mean,) = service.preview(body({"kind": "mean", "column": "age"}))
    assert mean["expected_error"]["half_width"] is None


def test_a_closed_dataset_does_not_fit(service: Service) -> None:
    service.stores.datasets.alter("admin", "people", description=None, closed=True, reason=None)
    (preview,) = service.preview(body(COUNT))
    assert not preview["fits"]
    assert preview["refusal"] is not None


def test_an_error_in_a_list_is_reported_with_its_index(service: Service) -> None:
    wrong = body({"kind": "sum", "column": "salary"})
    with pytest.raises(Invalid) as caught:
        service.preview(body(COUNT), wrong)
    assert caught.value.fields[0].pointer == "/1/query/column"
    with pytest.raises(Invalid) as caught:
        service.preview(wrong, listed=False)
    assert caught.value.fields[0].pointer == "/query/column"


def test_previews_need_an_analyst_with_a_budget(service: Service) -> None:
    import asyncio

    question = AssumedQuestion.model_validate(body(COUNT))
    for role, name, error in (
        (Role.ADMIN, "admin", NotPermitted),
        (Role.VIEWER, "v", NotPermitted),
        (Role.ANALYST, "Bob", NoGrant),
    ):
        principal = Principal("a", name, role, "k", holders_of(name, ()))
        with pytest.raises(error):
            asyncio.run(service.preview_queries(principal, [question], listed=False))
    with pytest.raises(NoGrant):
        service.preview({**body(COUNT), "dataset": "none"})


def test_an_assumed_number_of_rows_gives_an_estimate_and_changes_no_price(service: Service) -> None:
    mean = body({"kind": "mean", "column": "age"})
    plain, guessed = service.preview(mean, {**mean, "assume": {"rows": 5_000}})
    assert plain["expected_error"]["half_width"] is None
    error = guessed["expected_error"]
    assert 0 < error["half_width"] < 1
    assert error["promise"] is False
    assert error["text"].startswith("Estimate for 5,000 rows: with 95 % confidence")
    assert guessed["price"] == plain["price"]
    assert guessed["mechanism"] == plain["mechanism"]
    others = [other["expected_error"] for other in guessed["alternatives"]]
    assert error in others
