"""History of a budget: one row for each ledger entry that touched it, with the figures after it."""

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel

from app.access import Principal, Role
from app.api.budgets import visible_account
from app.api.http.openapi import documented, problems
from app.api.http.principal import AnyoneHot, ServicesDep
from app.api.http.services import Services
from app.api.http.wire import (
    AmountResponse,
    CursorIn,
    Limit,
    LossResponse,
    OrderIn,
    SinceIn,
    cursor_place,
    cursor_text,
    iso,
    json_response,
    price_of,
    since_microseconds,
)
from app.ledger.account import EVERYBODY, Account
from app.ledger.account_history.replay import Step
from app.ledger.loss_record import loss_from_record
from app.ledger.records import ChargeFacts
from app.ledger.stream_orders import stream_of

router = APIRouter(tags=["budgets"])


class AccountHistoryItem(BaseModel):
    """One entry, and the account after it, by the functions of the live budget. `price` is what a
    charge or a booked loss has cost, or what a void has given back. An analyst sees `question`,
    `kind`, `analyst` and `price` of their own questions only."""

    sequence: int
    at: str
    entry: str
    question: str | None
    kind: str | None
    analyst: str | None
    price: LossResponse | None
    currency: str
    limit: AmountResponse
    used: float
    remaining: AmountResponse
    spent: AmountResponse


class AccountHistoryResponse(BaseModel):
    """Rows in the `order` of the request. A page may be short, or even empty, and still have a
    `next_cursor`: one request reads a limited number of entries."""

    dataset: str
    holder: str
    items: list[AccountHistoryItem]
    next_cursor: str | None


@router.get(
    "/v1/datasets/{dataset}/budgets/{holder}/history",
    **documented(
        "get_budget_history",
        "One budget after each entry",
        AccountHistoryResponse,
        extra_problems=problems(404, 429),
    ),
)
async def get_budget_history(
    deps: ServicesDep,
    principal: AnyoneHot,
    dataset: str,
    holder: str,
    since: SinceIn = None,
    order: OrderIn = "oldest",
    limit: Limit = 50,
    cursor: CursorIn = None,
) -> Response:
    """Every ledger entry that touched the account, with limit, used, spent and remaining after it.
    The newest row agrees with the budget itself. Free answers have no entry. Follow `next_cursor`
    until it is null. `order=newest` begins with the newest row, and costs the same however long the
    history is."""
    found_dataset, account = await visible_account(deps, principal, dataset, holder)
    read = _newest_page if order == "newest" else _oldest_page
    page_of = read(deps, account, limit, since_microseconds(since), cursor)

    def page() -> tuple[list[dict[str, Any]], str | None]:
        steps, following = page_of()
        return _rows(deps, principal, steps), following

    rows, following = await deps.reading.run(principal.analyst_id, page)
    return json_response(
        {
            "dataset": found_dataset.name,
            "holder": EVERYBODY if account.holder == EVERYBODY else account.shown,
            "items": rows,
            "next_cursor": following,
        }
    )


PageOf = Callable[[], tuple[list[Step], str | None]]


def _oldest_page(
    deps: Services, account: Account, limit: int, since: int | None, cursor: str | None
) -> PageOf:
    after, _ = cursor_place(cursor, int, int) or (0, 0)

    def page() -> tuple[list[Step], str | None]:
        read = deps.replay_account(account, after=max(0, after), limit=limit, since=since)
        return read.steps, None if read.complete else cursor_text(read.after, read.reached)

    return page


def _newest_page(
    deps: Services, account: Account, limit: int, since: int | None, cursor: str | None
) -> PageOf:
    _, before, _ = cursor_place(cursor, str, int, int) or ("", None, 0)

    def page() -> tuple[list[Step], str | None]:
        read = deps.rewind_account(account, before=before, limit=limit, since=since)
        following = None if read.complete else cursor_text("newest", read.before, read.reached)
        return read.steps, following

    return page


def _rows(deps: Services, principal: Principal, steps: list[Step]) -> list[dict[str, Any]]:
    ids = {step.charge_id for step in steps if step.charge_id is not None}
    facts = deps.account_entries.charges(ids)
    if principal.role is Role.ANALYST:  # the balance shows that others were charged, not for what
        facts = {
            charge_id: charge
            for charge_id, charge in facts.items()
            if charge.analyst_id == principal.analyst_id
        }
    shows_losses = principal.role is not Role.ANALYST
    return [_row(step, facts, shows_losses=shows_losses) for step in steps]


def _row(step: Step, facts: Mapping[str, ChargeFacts], *, shows_losses: bool) -> dict[str, Any]:
    entry, charge_id = step.entry, step.charge_id
    shown: dict[str, Any] = dict.fromkeys(("question", "kind", "analyst", "price"))
    charge = None if charge_id is None else facts.get(charge_id)
    if charge_id is not None and charge is not None:
        shown = {
            "question": stream_of(charge_id) if charge.is_stream else charge_id,
            "kind": charge.kind,
            "analyst": charge.analyst,
            "price": price_of(charge.charged),
        }
    elif entry.kind == "booked" and shows_losses:
        shown["price"] = loss_from_record(step.body).to_json()
    return {
        "sequence": entry.seq,
        "at": iso(entry.at),
        "entry": entry.kind,
        **shown,
        **_figures(step.account),
    }


def _figures(account: Account) -> dict[str, Any]:
    return {
        "currency": account.currency,
        "limit": account.limit,
        "used": account.used,
        **account.balances(),
    }
