"""Losses from releases made elsewhere, booked by an administrator."""

import json
from decimal import Decimal
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel, BeforeValidator, Field, TypeAdapter
from typing_extensions import TypedDict

from app.accounting import external_releases
from app.actions.budgets.book_losses import ReportedReleases
from app.api.http.json_body import Parsed, body
from app.api.http.openapi import documented, problems
from app.api.http.principal import Admin, ServicesDep
from app.api.http.wire import Delta, Reason, WireRequest, json_response
from app.planning.request import Epsilon, exact_amount

router = APIRouter(tags=["budgets"])

COUNT_MAX = 10**9


def _amount(value: object) -> Decimal:
    amount = exact_amount(value)
    if not Decimal("1e-6") <= amount <= Decimal("1e6"):
        raise ValueError("between 1e-6 and 1000000")
    return amount


BookedAmount = Annotated[
    Decimal, BeforeValidator(_amount), Field(json_schema_extra={"examples": [2.0]})
]
BookedCount = Annotated[int, Field(ge=1, le=COUNT_MAX)]


class BookedLaplace(WireRequest):
    """Laplace noise of scale (L1 sensitivity) / epsilon."""

    mechanism: Literal["laplace"]
    epsilon: Epsilon
    count: BookedCount = 1

    def release(self) -> external_releases.ExternalRelease:
        return external_releases.ExternalLaplace(self.epsilon)


class BookedGaussian(WireRequest):
    """Gaussian noise; `noise_multiplier` is its standard deviation over the L2 sensitivity. Only
    accounts that count (epsilon, delta) need a `delta`."""

    mechanism: Literal["gaussian"]
    noise_multiplier: BookedAmount
    delta: Delta | None = None
    count: BookedCount = 1

    def release(self) -> external_releases.ExternalRelease:
        return external_releases.ExternalGaussian(self.noise_multiplier, self.delta)


class BookedZcdp(WireRequest):
    """Any rho-zCDP release. Only accounts that count (epsilon, delta) need a `delta`."""

    mechanism: Literal["zcdp"]
    rho: BookedAmount
    delta: Delta | None = None
    count: BookedCount = 1

    def release(self) -> external_releases.ExternalRelease:
        return external_releases.ExternalZcdp(self.rho, self.delta)


class BookedGeneric(WireRequest):
    """Any (epsilon, delta)-private release."""

    mechanism: Literal["generic"]
    epsilon: Epsilon
    delta: Delta | None = None
    count: BookedCount = 1

    def release(self) -> external_releases.ExternalRelease:
        return external_releases.ExternalGeneric(self.epsilon, self.delta or Decimal(0))


class BookedRandomizedResponse(WireRequest):
    """Randomised response over a public list of categories; `delta` is the probability that it
    reveals its input outright."""

    mechanism: Literal["randomized_response"]
    epsilon: Epsilon
    categories: Annotated[int, Field(ge=2, le=1_000_000)] = 2
    delta: Delta | None = None
    count: BookedCount = 1

    def release(self) -> external_releases.ExternalRelease:
        return external_releases.ExternalRandomizedResponse(
            self.epsilon, self.categories, self.delta
        )


class BookedLeakyInput(WireRequest):
    """A release that reveals its input with probability `delta`, and otherwise nothing."""

    mechanism: Literal["leaky_input"]
    delta: Delta
    count: BookedCount = 1

    def release(self) -> external_releases.ExternalRelease:
        return external_releases.ExternalLeakyInput(self.delta)


class _Named(TypedDict):
    """Only the name, so that an unknown mechanism is reported as an error of that field."""

    mechanism: Literal[
        "laplace", "gaussian", "zcdp", "generic", "randomized_response", "leaky_input"
    ]


_NAMED = TypeAdapter(_Named)


def _known(value: Any) -> Any:
    _NAMED.validate_python(value)
    return value


BookedEvent = Annotated[
    BookedLaplace
    | BookedGaussian
    | BookedZcdp
    | BookedGeneric
    | BookedRandomizedResponse
    | BookedLeakyInput,
    Field(discriminator="mechanism"),
    BeforeValidator(_known),
]


class LossesRequest(WireRequest):
    """Releases that were made elsewhere from the same data. They are booked on the account of
    everybody, and on that of `holder` if one is named."""

    events: Annotated[list[BookedEvent], Field(min_length=1, max_length=100)]
    holder: Annotated[str, Field(min_length=1, max_length=200)] = "*"
    reason: Reason = None


class BookedResponse(BaseModel):
    """The ledger entry that records the losses, and the charged holders."""

    entry: int
    holders: list[str]


@router.post(
    "/v1/datasets/{dataset}/losses",
    **documented(
        "book_losses",
        "Book losses from releases made elsewhere",
        BookedResponse,
        status=201,
        request=LossesRequest,
        example={
            "events": [{"mechanism": "gaussian", "noise_multiplier": 20, "count": 4}],
            "reason": "tables of the printed yearbook",
        },
        extra_problems=problems(404),
        idempotent=True,
    ),
)
def book_losses(
    deps: ServicesDep,
    principal: Admin,
    dataset: str,
    parsed: Annotated[Parsed[LossesRequest], Depends(body(LossesRequest))],
) -> Response:
    """These losses have happened, so they count even past the limit; an account past its limit
    admits nothing more. One entry records all of them."""
    booking = parsed.value
    events_declared = [
        ReportedReleases(
            each.release(), each.count, json.loads(each.model_dump_json(exclude_none=True))
        )
        for each in booking.events
    ]
    entry, holders = deps.book_losses(
        principal,
        dataset=dataset,
        holder=booking.holder,
        events=events_declared,
        reason=booking.reason,
        request=parsed.request_key and f"{principal.analyst_id}/{parsed.request_key}",
        body=parsed.hash,
    )
    return json_response({"entry": entry, "holders": holders}, status=201)
