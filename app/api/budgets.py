"""Budgets: grant and change them, and show what is left."""

import json
from decimal import Decimal
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, BeforeValidator, Field
from starlette.concurrency import run_in_threadpool

from app.access import Principal, Role, holder_of
from app.accounting.curves.orders import ORDERS
from app.accounting.rules.curved import STAR_WEIGHT
from app.accounting.rules.spending import Spend
from app.accounting.rules.terms import GrantTerms
from app.accounting.units import ATTO, PICO, wire
from app.api.accounts.balance_headers import balance_headers
from app.api.http.entity_tags import etag, has_seen, precondition
from app.api.http.json_body import Parsed, body
from app.api.http.openapi import documented, problems, with_balance
from app.api.http.principal import Admin, AnyoneHot, ServicesDep
from app.api.http.services import Services
from app.api.http.wire import (
    AmountResponse,
    DeltaOrZero,
    Reason,
    WireRequest,
    json_response,
)
from app.caches import owned_by
from app.data.card import Dataset
from app.errors import AccessError, NotFound
from app.ledger.account import EVERYBODY, Account
from app.ledger.records import Budget
from app.planning.cells import cell_labels
from app.planning.request import Epsilon, Question, exact_epsilon

router = APIRouter(tags=["budgets"])


BudgetEpsilon = Annotated[
    Decimal, BeforeValidator(exact_epsilon), Field(json_schema_extra={"examples": [0.5, "0.5"]})
]


class Promise(WireRequest):
    """A promise. `pure` promises epsilon; every other currency promises (epsilon, delta).
    `approximate` uses basic composition; `zcdp`, `renyi` and `gdp` use their own filters. A zcdp
    account may be granted as {rho, delta}, a gdp account as {mu, delta}. `failure_delta` is the
    part of delta kept for releases that hold only approximately (default: a thousandth). `order` is
    the Renyi order that gets most of the rest. Both are frozen, and the reply shows them."""

    currency: Literal["pure", "approximate", "zcdp", "renyi", "gdp"]
    epsilon: Epsilon | None = None
    delta: DeltaOrZero = Decimal(0)
    rho: BudgetEpsilon | None = None
    mu: BudgetEpsilon | None = None
    failure_delta: DeltaOrZero | None = None
    order: BudgetEpsilon | None = None

    def wish(self) -> GrantTerms:
        return GrantTerms(
            epsilon=self.epsilon,
            delta=self.delta,
            rho=self.rho,
            mu=self.mu,
            failure_delta=self.failure_delta,
            order=self.order,
        )


class BudgetRequest(Promise):
    """A promise to one holder, and the reason for it."""

    reason: Reason = None


class CellResponse(BaseModel):
    """Loss of the persons in one declared cell; `cell` is null for rows in no declared cell."""

    cell: Any
    spent: AmountResponse
    remaining: AmountResponse
    used: float
    largest_epsilon: float
    largest_epsilon_exact: str | None = None
    questions_left: int


class TermsResponse(BaseModel):
    """Terms frozen at the grant: how delta is split between conversion and failures. For `renyi`
    also the order with most of the conversion's delta, its share, and the limit at each order, null
    where it admits nothing. The other orders share the rest equally."""

    delta_conversion: float
    delta_failure: float
    order: float | None
    order_share: float | None
    orders: list[float] | None
    limits: list[float | None]


class LastQuestion(BaseModel):
    """Your latest question here, and how often it could still be asked with fresh noise."""

    id: str
    kind: str
    epsilon: float | None
    delta: float | None
    epsilon_exact: str | None = None
    delta_exact: str | None = None
    rho: float | None = None
    rho_exact: str | None = None
    questions_left: int


class BudgetResponse(BaseModel):
    """An account. `used` runs from 0 to 1 by the stop rule itself. `spent.epsilon` holds at all
    times together. It is a sum in `pure` and `approximate` accounts, and an odometer elsewhere.
    Near the end the odometer may exceed the limit that the stop rule keeps. `questions_left` is the
    number of typical counts with epsilon 0.1. With cells, each figure of `spent` is the largest of
    any cell, and each figure of `remaining` the smallest."""

    dataset: str
    holder: str
    currency: str
    theorem: str
    limit: AmountResponse
    terms: TermsResponse
    spent: AmountResponse
    remaining: AmountResponse
    used: float
    largest_epsilon: float
    largest_epsilon_exact: str | None = None
    questions_left: int
    last_question: LastQuestion | None
    frozen: bool
    cells: list[CellResponse]


@router.put(
    "/v1/datasets/{dataset}/budgets/{holder}",
    **documented(
        "grant_budget",
        "Grant or change a budget",
        BudgetResponse,
        request=BudgetRequest,
        example={"currency": "pure", "epsilon": 3.0, "reason": "study 12"},
        also=201,
        extra_problems=problems(404, 409, 412),
        conditional=True,
    ),
)
def grant(
    request: Request,
    deps: ServicesDep,
    principal: Admin,
    dataset: str,
    holder: str,
    parsed: Annotated[Parsed[BudgetRequest], Depends(body(BudgetRequest))],
) -> Response:
    """`holder` is an analyst, `group:name`, or `*` for everybody together. A limit below the spent
    amount freezes the account. `If-Match` with the budget's ETag changes the budget only in the
    state you saw; `If-None-Match: *` only creates a new one. 201 if it is new."""
    requested = parsed.value
    budget, new = deps.grant_budget(
        principal,
        dataset=dataset,
        holder=holder,
        currency=requested.currency,
        wish=requested.wish(),
        precondition=precondition(
            request.headers.getlist("if-match"), request.headers.getlist("if-none-match")
        ),
        reason=requested.reason,
    )
    return json_response(
        shown_budget(budget),
        status=201 if new else 200,
        headers={"ETag": etag(budget.account)},
    )


@router.get(
    "/v1/datasets/{dataset}/budgets/{holder}",
    **with_balance(
        documented(
            "get_budget",
            "One budget",
            BudgetResponse,
            extra_problems=problems(404),
            tagged=True,
        )
    ),
)
async def get_budget(
    request: Request, deps: ServicesDep, principal: AnyoneHot, dataset: str, holder: str
) -> Response:
    """Your own budget or your group's; viewers and administrators see any. `If-None-Match` with
    the ETag gives 304."""
    found_dataset, account = await visible_account(deps, principal, dataset, holder)
    headers = {"ETag": etag(account), **balance_headers(account)}
    if has_seen(account, request.headers.getlist("if-none-match")):
        return Response(status_code=304, headers=headers)
    last = None
    if principal.role is Role.ANALYST:
        last = await run_in_threadpool(_last, deps, principal, found_dataset, account)
    budget = Budget(found_dataset.name, account, found_dataset.card)
    return json_response(shown_budget(budget, last), headers=headers)


async def visible_account(
    deps: Services, principal: Principal, dataset: str, holder: str
) -> tuple[Dataset, Account]:
    """The account if this caller may see it; otherwise the same NotFound as for a missing one."""
    folded_holder = holder_of(holder)
    if principal.role is Role.ANALYST and folded_holder not in principal.holders:
        raise NotFound("There is no such budget.")
    try:
        found_dataset = await deps.catalogue.dataset(dataset)
    except AccessError:
        raise NotFound("There is no such budget.") from None
    account = (await deps.ledger.accounts(found_dataset.book_id, [folded_holder])).get(
        folded_holder
    )
    if account is None:
        raise NotFound("There is no such budget.")
    return found_dataset, account


def shown_budget(budget: Budget, last: dict[str, Any] | None = None) -> dict[str, Any]:
    account = budget.account
    return {
        "dataset": budget.dataset,
        "holder": EVERYBODY if account.holder == EVERYBODY else account.shown,
        "currency": account.currency,
        "theorem": account.rule.theorem,
        "limit": account.limit,
        "terms": _terms(account),
        **_state(account),
        "last_question": last,
        "frozen": account.frozen,
        "cells": _cells(account, cell_labels(budget.card)),
    }


def _cells(account: Account, labels: list[Any]) -> list[dict[str, Any]]:
    """State of each cell. Most cells have the same loss, so each distinct loss is computed once."""
    known: dict[Spend, dict[str, Any]] = {}
    shown = []
    for cell, label in enumerate(labels):
        loss_of_cell = account.balance.cell(cell)
        if loss_of_cell not in known:
            known[loss_of_cell] = _state(account, cell)
        shown.append({"cell": label, **known[loss_of_cell]})
    return shown


def _state(account: Account, cell: int | None = None) -> dict[str, Any]:
    """State of the whole account, or for the persons of one cell."""
    cells = None if cell is None else (cell,)
    seen = account if cell is None else account.for_cell(cell)
    return {
        **seen.balances(),
        "used": seen.used,
        **wire("largest_epsilon", account.largest_epsilon(cells), PICO),
        "questions_left": account.questions_left(cells),
    }


def _terms(account: Account) -> dict[str, Any]:
    terms = account.terms
    curved = account.currency == "renyi"
    return {
        "delta_conversion": terms.conversion / ATTO,
        "delta_failure": terms.limits[1] / ATTO,
        "order": float(terms.order or 0) if curved else None,
        "order_share": float(STAR_WEIGHT) if curved else None,
        "orders": [float(order) for order in ORDERS] if curved else None,
        "limits": [None if units < 0 else units / PICO for units in terms.limits[2:]],
    }


def _last(deps: Services, principal: Principal, dataset: Dataset, account: Account) -> Any:
    """The last query of an analyst. Blocking: reads the history, and plans the query again."""
    record = deps.history.last(principal.analyst_id, dataset.id)
    if record is None or "stream" in json.loads(record.question):  # an opened stream does not count
        return None
    question = Question.model_validate_json(record.question)
    currencies = frozenset({account.currency})
    with owned_by(principal.analyst_id):
        plan = deps.planner.plan(
            principal.analyst_id, question, dataset, record.question, currencies
        )
    return {
        "id": record.id,
        "kind": question.query.kind,
        **plan.loss.to_json(),
        "questions_left": account.repeats_left(plan.loss, plan.charged_cells.cells),
    }
