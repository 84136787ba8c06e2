"""The calculator: what events cost together, and how large they may be."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel, BeforeValidator, Field

from app.accounting.calculator.compose import compose
from app.accounting.calculator.event_list import Composition, Neighbours
from app.accounting.calculator.inverse import Target, solve
from app.api.calculator_events import AnyEvent, AnyTarget, EpsilonOrZero, EventDelta
from app.api.http.json_body import Parsed, body
from app.api.http.openapi import documented
from app.api.http.principal import Anyone
from app.api.http.wire import WireRequest, json_response
from app.errors import Invalid
from app.planning.request import exact_amount

router = APIRouter(tags=["accounting"])

EVENTS_MAX = 1000
ORDERS_MAX = 100
GROUP_SIZE_MAX = 10**6
AccountantName = Literal["basic", "advanced", "optimal", "zcdp", "renyi", "gdp", "pld"]
ALL: tuple[AccountantName, ...] = (
    *("basic", "advanced", "optimal", "zcdp", "renyi", "gdp", "pld"),
)
# One calculation at a time in each worker process. A long one delays other calculations, and slows
# charges only by its share of one thread.
_CALCULATOR = ThreadPoolExecutor(max_workers=1, thread_name_prefix="calculator")


def _order(value: object) -> Decimal:
    rule = "more than 1, at most 1000000, with at most 9 decimals"
    amount = exact_amount(value)
    exponent = amount.normalize().as_tuple().exponent
    if not 1 < amount <= 10**6 or not isinstance(exponent, int) or exponent < -9:
        raise ValueError(rule)
    return amount


RenyiOrder = Annotated[
    Decimal, BeforeValidator(_order), Field(json_schema_extra={"examples": [2, 9.5]})
]

Accountants = Annotated[list[AccountantName], Field(min_length=1, max_length=len(ALL))]


class ComposeRequest(WireRequest):
    """Either `events` with a `delta` (or an `epsilon`), or a `target`."""

    events: Annotated[list[AnyEvent], Field(min_length=1, max_length=EVENTS_MAX)] | None = None
    delta: EventDelta | None = None
    epsilon: EpsilonOrZero | None = None
    target: AnyTarget | None = None
    accountants: Accountants | None = None
    orders: Annotated[list[RenyiOrder], Field(min_length=1, max_length=ORDERS_MAX)] | None = None
    neighbours: Neighbours = "add_remove"
    group_size: Annotated[int, Field(ge=1, le=GROUP_SIZE_MAX)] = 1


class InAdvanceResponse(BaseModel):
    epsilon: float
    delta: float
    theorem: str


class PerEventResponse(BaseModel):
    epsilon: float | None = None
    rho: float | None = None
    noise_multiplier: float | None = None


class AccountantResponse(BaseModel):
    """An (epsilon, delta) guarantee for all events together, never too small; or the reason why
    there is none."""

    unavailable: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    theorem: str | None = None
    order: float | None = None
    rho: float | None = None
    mu: float | None = None
    discretisation: float | None = None
    fixed_in_advance: InAdvanceResponse | None = None
    per_event: PerEventResponse | None = None
    notes: list[str] | None = None


class CurveResponse(BaseModel):
    """The composed Renyi divergence at each order, except with probability `delta`."""

    orders: list[float] | None = None
    epsilon: list[float] | None = None
    delta: float | None = None
    unavailable: str | None = None


class ComposeResponse(BaseModel):
    """`best` names the accountant with the smallest bound; all bounds hold."""

    results: dict[AccountantName, AccountantResponse]
    best: AccountantName | None = None
    curve: CurveResponse | None = None


@router.post(
    "/v1/accounting/compose",
    **documented(
        "compose_events",
        "Total cost of several events",
        ComposeResponse,
        request=ComposeRequest,
        example={
            "delta": 1e-6,
            "events": [
                {"mechanism": "laplace", "epsilon": 0.1, "count": 10},
                {"mechanism": "gaussian", "noise_multiplier": 20.0, "count": 5},
                {"mechanism": "generic", "epsilon": 0.2, "delta": 1e-8, "count": 3},
            ],
            "accountants": ["basic", "advanced", "zcdp", "renyi", "gdp"],
        },
    ),
)
async def compose_events(
    principal: Anyone,
    parsed: Annotated[Parsed[ComposeRequest], Depends(body(ComposeRequest))],
) -> Response:
    """Reads no data and charges nothing. All parameters are assumed fixed in advance. With a
    `target`, returns the largest epsilon or rho, or the smallest noise multiplier, of each of
    `count` events."""
    loop = asyncio.get_running_loop()
    return json_response(await loop.run_in_executor(_CALCULATOR, _calculate, parsed.value))


def _calculate(request: ComposeRequest) -> dict[str, Any]:
    accountants = list(dict.fromkeys(request.accountants or ALL))
    if request.target is not None:
        return solve(_target(request, request.target), accountants)
    composition = _composition(request)
    return compose(composition, accountants, delta=request.delta, epsilon=request.epsilon)


def _composition(request: ComposeRequest) -> Composition:
    if request.events is None:
        raise Invalid.field("/events", "this field is needed, or a target")
    if (request.delta is None) == (request.epsilon is None):
        raise Invalid.field("/delta", "either a delta or an epsilon, not both")
    total = Decimal(0)
    for index, event in enumerate(request.events):
        if event.mechanism == "generic":
            total += event.delta * event.count
            if total > 1:
                raise Invalid.field(f"/events/{index}/delta", "deltas that sum to at most 1")
    return Composition.of(
        [(event.make(event.amount), event.count) for event in request.events],
        neighbours=request.neighbours,
        group_size=request.group_size,
        orders=request.orders,
    )


def _target(request: ComposeRequest, target: AnyTarget) -> Target:
    for name in ("events", "delta", "epsilon", "orders"):
        if getattr(request, name) is not None:
            raise Invalid.field(f"/{name}", "not allowed together with a target")
    return Target(
        epsilon=target.epsilon,
        delta=target.delta,
        count=target.count,
        parameter=target.parameter,
        make=target.make,
        neighbours=request.neighbours,
        group_size=request.group_size,
    )
