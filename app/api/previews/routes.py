"""Previews: price one question or a list, for free."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Response

from app.api.http.json_body import Parsed, body
from app.api.http.openapi import documented, problems
from app.api.http.principal import AnyoneHot, ServicesDep
from app.api.http.wire import json_response
from app.api.previews.models import (
    DOCUMENTED,
    PREVIEWED,
    Previewed,
    PreviewList,
    PreviewListResponse,
    PreviewQuestion,
    PreviewResponse,
)
from app.api.queries import EXAMPLE, EXAMPLES
from app.api.sql_questions import translated
from app.errors import Invalid

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


@router.post(
    "/v1/queries/preview",
    **documented(
        "preview",
        "Price one question or a list, for free",
        PreviewResponse | PreviewListResponse,
        request=DOCUMENTED,
        examples=PREVIEW_EXAMPLES,
        extra_problems=problems(403, 404, 429, 503),
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
            return json_response(single)
        if isinstance(sent, PreviewList):
            previews = await deps.preview_queries(
                principal, sent.questions, at="/questions", payer=sent.payer()
            )
        else:
            previews = await deps.preview_queries(principal, sent, at="")
    except Invalid as error:
        raise parsed.translate_error(error) from None
    stops_at = next((i for i, item in enumerate(previews) if not item["fits"]), None)
    return json_response({"items": previews, "fits": stops_at is None, "stops_at": stops_at})
