"""Previews and rehearsals: price a question, or see a made-up answer, for free."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from app.access import Principal, Role
from app.api.accounts.balance_headers import on_granted
from app.api.http.json_body import Parsed, body
from app.api.http.openapi import documented, problems, with_balance
from app.api.http.principal import AnyoneHot, ServicesDep
from app.api.http.services import Services
from app.api.http.wire import json_response
from app.api.previews.models import (
    DOCUMENTED,
    PREVIEWED,
    Previewed,
    PreviewList,
    PreviewListResponse,
    PreviewQuestion,
    PreviewResponse,
    RehearsalResponse,
)
from app.api.queries import EXAMPLE, EXAMPLES
from app.api.sql_questions import translated
from app.errors import Invalid
from app.planning.preview_request import AssumedQuestion, AssumedSqlQuestion

router = APIRouter(tags=["queries"])
PREVIEW_EXAMPLES: dict[str, Any] = {
    **EXAMPLES,
    "budget": {
        "summary": "A budget of epsilon 3, and a curve",
        "value": {
            **EXAMPLE,
            "epsilons": [0.01, 0.1, 1],
            "account": {"currency": "pure", "epsilon": 3},
        },
    },
}

REHEARSAL_EXAMPLES: dict[str, Any] = {
    **EXAMPLES,
    "rows": {"summary": "On 5000 rows", "value": {**EXAMPLE, "assume": {"rows": 5000}}},
}


@router.post(
    "/v1/queries/preview",
    **with_balance(
        documented(
            "preview",
            "Price one question or a list, for free",
            PreviewResponse | PreviewListResponse,
            request=DOCUMENTED,
            examples=PREVIEW_EXAMPLES,
            extra_problems=problems(403, 404, 429, 503),
        )
    ),
)
async def preview(
    deps: ServicesDep,
    principal: AnyoneHot,
    parsed: Annotated[Parsed[Previewed], Depends(body(PREVIEWED, translate=translated))],
) -> Response:
    """The price of a question and its expected error; reads no data, charges nothing. A list is
    priced in order, each question after the ones before it were paid. Administrators and viewers
    name a holder with `as`, or send a made-up `account`."""
    sent = parsed.value
    try:
        if isinstance(sent, PreviewQuestion):
            (single,) = await deps.preview_queries(
                principal, [sent.question()], payer=sent.payer(), epsilons=sent.curve()
            )
            return json_response(single, headers=await _balance(deps, principal, [single]))
        if isinstance(sent, PreviewList):
            previews = await deps.preview_queries(
                principal, sent.questions, at="/questions", payer=sent.payer()
            )
        else:
            previews = await deps.preview_queries(principal, sent, at="")
    except Invalid as error:
        raise parsed.translate_error(error) from None
    stops_at = next((i for i, item in enumerate(previews) if not item["fits"]), None)
    content = {"items": previews, "fits": stops_at is None, "stops_at": stops_at}
    return json_response(content, headers=await _balance(deps, principal, previews))


async def _balance(
    deps: Services, principal: Principal, previews: list[dict[str, Any]]
) -> dict[str, str]:
    """Headers with an analyst's own balance, unless the previews are about several datasets."""
    names = {item["dataset"] for item in previews}
    if principal.role is not Role.ANALYST or len(names) > 1:
        return {}
    return await on_granted(deps, principal, names.pop())


@router.post(
    "/v1/queries/rehearse",
    **documented(
        "rehearse",
        "The whole way of a question, on made-up rows, for free",
        RehearsalResponse,
        request=AssumedQuestion | AssumedSqlQuestion,
        examples=REHEARSAL_EXAMPLES,
        extra_problems=problems(403, 404, 429, 503),
    ),
)
async def rehearse(
    deps: ServicesDep,
    principal: AnyoneHot,
    parsed: Annotated[
        Parsed[AssumedQuestion], Depends(body(AssumedQuestion, translate=translated))
    ],
) -> Response:
    """The reply that the question would get: real mechanism, real noise, made-up rows. The rows are
    drawn from the public card alone, `assume.rows` of them (1000 by default). No private row is
    read, nothing is charged or stored, and no budget needs to be left."""
    try:
        return json_response(await deps.rehearse_query(principal, parsed.value))
    except Invalid as error:
        raise parsed.translate_error(error) from None
