"""Budgets: grant and change them, and see what is left."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Request, Response
from pydantic import BaseModel, BeforeValidator

from app.access import Role
from app.accounting.rounding import PICO, wire
from app.api.body import Parsed, body
from app.api.openapi import documented, problems
from app.api.principal import Admin, Anyone, AnyoneHot, Given
from app.api.wire import (
    CursorIn,
    Limit,
    LossResponse,
    Reason,
    WireRequest,
    cursor_place,
    cursor_text,
    json_response,
)
from app.errors import AccessError, Invalid, NotFound
from app.ledger.account import EVERYBODY, Account
from app.names import folded
from app.planning.question import Epsilon, exact_amount

router = APIRouter(tags=["budgets"])


def _delta(value: object) -> Decimal:
    if value == 0 and not isinstance(value, bool):
        return Decimal(0)
    amount = exact_amount(value)
    if not Decimal("1e-18") <= amount < 1:
        raise ValueError("0, or from 1e-18 to less than 1")
    return amount


class BudgetRequest(WireRequest):
    """A limit: `pure` promises epsilon, `approximate` promises (epsilon, delta)."""

    currency: Literal["pure", "approximate"]
    epsilon: Epsilon
    delta: Annotated[Decimal, BeforeValidator(_delta)] = Decimal(0)
    reason: Reason = None


class BudgetResponse(BaseModel):
    """An account: `used` runs from 0 to 1 by the stop rule itself; `questions_left` counts typical
    counts of epsilon 0.1."""

    dataset: str
    holder: str
    currency: str
    limit: LossResponse
    spent: LossResponse
    remaining: LossResponse
    used: float
    largest_epsilon: float
    largest_epsilon_exact: str | None = None
    questions_left: int
    frozen: bool
    cells: list[dict[str, Any]]


class BudgetsResponse(BaseModel):
    items: list[BudgetResponse]
    next_cursor: str | None


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
    ),
)
def grant(
    given: Given,
    principal: Admin,
    dataset: str,
    holder: str,
    parsed: Annotated[Parsed[BudgetRequest], Depends(body(BudgetRequest))],
    if_match: Annotated[str | None, Header(max_length=100)] = None,
    if_none_match: Annotated[str | None, Header(max_length=100)] = None,
) -> Response:
    """`holder` is an analyst, or `*` for everybody together. A limit lowered below what is spent
    freezes the account. `If-Match` with the budget's ETag changes just the budget you saw;
    `If-None-Match: *` only makes a new one. 201 if it is new."""
    wanted = parsed.value
    budget, new = given.grant_budget(
        principal,
        dataset=dataset,
        holder=holder,
        currency=wanted.currency,
        epsilon=wanted.epsilon,
        delta=wanted.delta,
        expected_version=_version(if_match),
        must_be_new=if_none_match == "*",
        must_exist=if_match == "*",
        reason=wanted.reason,
    )
    return json_response(
        _shown(budget.dataset, budget.account),
        status=201 if new else 200,
        headers={"ETag": _etag(budget.account)},
    )


@router.get(
    "/v1/datasets/{dataset}/budgets/{holder}",
    **documented(
        "get_budget", "One budget", BudgetResponse, extra_problems=problems(404), tagged=True
    ),
)
async def get_budget(
    request: Request, given: Given, principal: AnyoneHot, dataset: str, holder: str
) -> Response:
    """Your own; viewers and administrators see any. `If-None-Match` with the ETag gives 304."""
    own = folded(holder) == folded(principal.name)
    if principal.role is Role.ANALYST and not own:
        raise NotFound("There is no such budget.")
    try:
        found = await given.catalogue.dataset(dataset)
    except AccessError:
        raise NotFound("There is no such budget.") from None
    accounts = await given.ledger.accounts(found.book_id, [folded(holder)])
    account = accounts.get(folded(holder))
    if account is None:
        raise NotFound("There is no such budget.")
    known = request.headers.get("if-none-match", "").split(",")
    if any(each.strip().removeprefix("W/") in ("*", _etag(account)) for each in known):
        return Response(status_code=304, headers={"ETag": _etag(account)})
    return json_response(_shown(found.name, account), headers={"ETag": _etag(account)})


@router.get("/v1/budgets", **documented("list_budgets", "Budgets", BudgetsResponse))
def list_budgets(
    given: Given, principal: Anyone, limit: Limit = 50, cursor: CursorIn = None
) -> Response:
    """Your own; viewers and administrators see all."""
    holder = folded(principal.name) if principal.role is Role.ANALYST else None
    (after,) = cursor_place(cursor, str) or ("",)
    found = given.budgets.all(holder=holder, after=after, limit=limit)
    following = cursor_text(found[-1][0]) if len(found) == limit else None
    items = [_shown(budget.dataset, budget.account) for _, budget in found]
    return json_response({"items": items, "next_cursor": following})


def _version(if_match: str | None) -> int | None:
    if if_match is None or if_match == "*":
        return None
    digits = if_match.strip().removeprefix('"').removesuffix('"')
    if not digits.isdecimal() or len(digits) > 18:
        raise Invalid.field("If-Match", "the ETag of a budget")
    return int(digits)


def _etag(account: Account) -> str:
    return f'"{account.version}"'


def _shown(dataset: str, account: Account) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "holder": EVERYBODY if account.holder == EVERYBODY else account.shown,
        "currency": account.currency,
        "limit": account.limit.wire(),
        "spent": account.spent.wire(),
        "remaining": account.remaining.wire(),
        "used": account.used,
        **wire("largest_epsilon", account.largest_epsilon, PICO),
        "questions_left": account.questions_left,
        "frozen": account.frozen,
        "cells": [],
    }
