"""Trade-off curve of a budget: error rates of the best attack on what was spent."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel

from app.api.budgets import visible_account
from app.api.http.openapi import documented, problems
from app.api.http.principal import AnyoneHot, ServicesDep
from app.api.http.wire import json_response
from app.ledger.account import EVERYBODY

router = APIRouter(tags=["budgets"])

Points = Annotated[int, Query(ge=2, le=1001, description="Number of points from 0 to 1.")]


class TradeoffResponse(BaseModel):
    """An attack looks at every answer and guesses whether one person is in the data. `alpha` is how
    often it wrongly says no; `beta` is how often at least it then wrongly says yes, given what was
    spent. `beta` is lowered by 1e-11, so that it never claims too much privacy. `exact` means that
    some attack reaches the curve. `promised_beta` is the same for all that the account may ever
    spend. With cells, the curve lies at or below the curve of every cell."""

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
        "Trade-off curve of the spent budget",
        TradeoffResponse,
        extra_problems=problems(404, 429),
    ),
)
async def get_tradeoff(
    deps: ServicesDep, principal: AnyoneHot, dataset: str, holder: str, points: Points = 101
) -> Response:
    """The trade-off function of f-DP. Exact for one release of known noise, for equal counts, and
    for Gaussian releases; otherwise a bound. The spent curve assumes queries fixed in advance. For
    an analyst who chose queries by earlier answers, the promise holds."""
    found_dataset, account = await visible_account(deps, principal, dataset, holder)
    trace = partial(deps.trace_tradeoff, account, points)
    spent, promise = await deps.reading.run(principal.analyst_id, trace)
    return json_response(
        {
            "dataset": found_dataset.name,
            "holder": EVERYBODY if account.holder == EVERYBODY else account.shown,
            "alpha": spent.alphas,
            "beta": spent.betas,
            "exact": spent.exact,
            "theorem": spent.theorem,
            "promised_beta": promise.betas,
        }
    )
