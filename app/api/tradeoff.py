"""The trade-off curve of a budget: what the best attack could do with what was spent."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from app.api.budgets import visible_account
from app.api.http.openapi import documented, problems
from app.api.http.principal import AnyoneHot, ServicesDep
from app.api.http.wire import json_response
from app.ledger.account import EVERYBODY

router = APIRouter(tags=["budgets"])

Points = Annotated[int, Query(ge=2, le=1001, description="How many points from 0 to 1.")]


class TradeoffResponse(BaseModel):
    """An attack looks at every answer and guesses whether one person is in the data. `alpha` is how
    often it wrongly says no, `beta` how often at least it then wrongly says yes, by what was spent
    (lowered by 1e-11: it never claims more privacy than there is); `exact` says that some attack
    can do so well. `promised_beta` is the same for all that the account may ever spend. With cells,
    the curve lies at or below the curve of every cell."""

    dataset: str
    holder: str
    alpha: list[float]
    beta: list[float]
    exact: bool
    theorem: str
    promised_beta: list[float]


@router.get(
    "/v1/datasets/{dataset}/budgets/{holder}/tradeoff",
    **documented(
        "get_tradeoff",
        "Trade-off curve of what was spent",
        TradeoffResponse,
        extra_problems=problems(404),
    ),
)
async def get_tradeoff(
    given: ServicesDep, principal: AnyoneHot, dataset: str, holder: str, points: Points = 101
) -> Response:
    """The trade-off function of f-DP. Exact for one release of known noise, for equal counts, and
    for Gaussian releases; otherwise a bound. What was spent reads as if it had been fixed in
    advance; what holds for an analyst who chose by the answers is the promise."""
    found, account = await visible_account(given, principal, dataset, holder)
    spent, promise = await run_in_threadpool(given.trace_tradeoff, account, points)
    return json_response(
        {
            "dataset": found.name,
            "holder": EVERYBODY if account.holder == EVERYBODY else account.shown,
            "alpha": spent.alphas,
            "beta": spent.betas,
            "exact": spent.exact,
            "theorem": spent.theorem,
            "promised_beta": promise.betas,
        }
    )
