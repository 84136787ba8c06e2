"""Answering: charge first, read under the charge, store, and return the stored answer."""

import asyncio
import json
from typing import Any

import pytest

from app.access import Role
from app.accounting.units import PICO
from app.errors import (
    BudgetExhausted,
    DatasetClosed,
    IdempotencyConflict,
    Invalid,
    NoGrant,
    NotAuthenticated,
    NotPermitted,
)
from app.ledger.account import EVERYBODY
from tests.actions.asking.faulty_engine import COUNT, NOTHING, TENTH, make_faulty
from tests.actions.service import Service, body


def test_an_answer_is_charged_near_the_truth_and_shows_price_and_theorem(service: Service) -> None:
    reply = service.ask(COUNT, epsilon="0.9")
    answer = json.loads(reply.text)
    assert answer["status"] == "answered"
    assert abs(answer["value"] - 40) < 60  # a larger error has a probability below 1e-20
    assert answer["charged"]["epsilon"] == 0.9
    assert answer["mechanism"]["kind"] == "laplace"
    assert "Proposition 1" in answer["theorem"]
    assert "filter" in answer["theorem"]
    assert (
        service.account("ann").balance.common
        == service.account(EVERYBODY).balance.common
        == (PICO * 9 // 10, 0)
    )
    stored = service.stores.history.one(answer["id"], analyst_id=service.ann.analyst_id)
    assert stored.answer == reply.text
    assert service.sound()


@pytest.mark.parametrize(
    "query",
    [
        {"kind": "sum", "column": "age"},
        {"kind": "mean", "column": "income", "where": {"column": "age", "op": ">", "value": 1}},
        {"kind": "histogram", "column": "city"},
        {"kind": "count", "group_by": ["member", {"column": "age", "edges": list(range(20))}]},
    ],
)
def test_every_kind_of_question_gets_valid_json(service: Service, query: dict[str, Any]) -> None:
    shown = json.loads(service.ask(query).text)
    assert shown["value"] is not None
    assert set(shown) >= {"id", "status", "value", "mechanism", "interval", "charged", "receipt"}


def test_the_same_key_returns_the_same_bytes_for_one_charge(service: Service) -> None:
    replies = [service.ask(COUNT, key="k") for _ in range(5)]
    assert len({reply.text for reply in replies}) == 1
    assert [reply.replayed for reply in replies] == [False, True, True, True, True]
    assert service.account("ann").balance.common == TENTH


def test_the_same_question_is_free_unless_fresh_is_set(
    service: Service,
) -> None:
    first = service.ask(COUNT)
    again = service.ask(COUNT)
    assert (again.text, again.reused) == (first.text, True)
    fresh = service.ask(COUNT, fresh=True)
    assert not fresh.reused
    assert json.loads(fresh.text)["id"] != json.loads(first.text)["id"]
    assert service.account("ann").balance.common == (2 * PICO // 10, 0)


def test_another_body_under_the_key_is_refused(service: Service) -> None:
    service.ask(COUNT, key="k")
    with pytest.raises(IdempotencyConflict):
        service.ask(COUNT, key="k", epsilon="0.2")
    assert service.account("ann").balance.common == TENTH


def test_concurrent_questions_are_charged_as_far_as_the_budget_goes(service: Service) -> None:
    async def all_of_them() -> list[Any]:
        asked = [service.request(body(COUNT, fresh=True)) for _ in range(15)]
        return await asyncio.gather(*map(service.answer_query, asked), return_exceptions=True)

    results = asyncio.run(all_of_them())
    refused = [result for result in results if isinstance(result, BaseException)]
    assert len(refused) == 5
    assert {type(each) for each in refused} == {BudgetExhausted}
    assert service.account("ann").balance.common == (PICO, 0)
    assert service.sound()


@pytest.mark.parametrize("role", [Role.ADMIN, Role.VIEWER])
def test_only_analysts_ask(service: Service, role: Role) -> None:
    asked = service.request(body(COUNT), token=service.person("x", role))
    with pytest.raises(NotPermitted):
        asyncio.run(service.answer_query(asked))


def test_a_refused_question_never_reaches_the_engine(service: Service) -> None:
    faulty = make_faulty(service)
    with pytest.raises(BudgetExhausted):
        service.ask(COUNT, epsilon="1.1")
    with pytest.raises(Invalid):
        service.ask({"kind": "sum", "column": "salary"})
    with pytest.raises(NoGrant):
        asyncio.run(service.answer_query(service.request({**body(COUNT), "dataset": "none"})))
    stranger = service.person("Bob", Role.ANALYST)
    for query in (COUNT, {"kind": "sum", "column": "salary"}):
        with pytest.raises(NoGrant):
            asyncio.run(service.answer_query(service.request(body(query), token=stranger)))
    with pytest.raises(NotAuthenticated):
        asyncio.run(service.answer_query(service.request(body(COUNT), token="wrong")))
    service.stores.datasets.alter("admin", "people", description=None, closed=True, reason=None)
    with pytest.raises(DatasetClosed):
        service.ask(COUNT)
    assert faulty.asked == 0
    assert service.account("ann").balance.common == NOTHING


def test_a_question_is_planned_again_if_people_change_meanwhile(service: Service) -> None:
    service.ask(COUNT)
    service.stores.people.create("admin", "Zoe", Role.VIEWER, None, None, "")
    assert not service.ask(COUNT, fresh=True).replayed


def test_a_revoked_key_stops_the_next_question(service: Service) -> None:
    service.ask(COUNT)
    (key,) = service.stores.people.keys(service.ann.analyst_id)
    service.stores.people.revoke_key("admin", key.id, None)
    with pytest.raises(NotAuthenticated):
        service.ask(COUNT, fresh=True)
    assert service.account("ann").balance.common == TENTH


def test_a_closed_dataset_answers_no_later_question(service: Service) -> None:
    first = service.ask(COUNT, key="k")
    service.stores.datasets.alter("admin", "people", description=None, closed=True, reason=None)
    with pytest.raises(DatasetClosed):
        service.ask(COUNT, fresh=True)
    assert service.ask(COUNT, key="k").text == first.text
    assert service.ask(COUNT).text == first.text
