"""Wire models that several resources share: losses, times, pages and their cursors."""

import base64
import datetime
import json
import math
import re
from collections.abc import Collection
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal

from fastapi import Query, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from app.errors import Invalid
from app.nearest import did_you_mean
from app.planning.request import exact_amount

LIMIT_MAX = 200
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
Limit = Annotated[int, Query(ge=1, le=LIMIT_MAX, description="At most this many.")]
CursorIn = Annotated[
    str | None,
    Query(max_length=1000, description="`next_cursor` of the previous page; opaque."),
]
SinceIn = Annotated[
    str | None,
    Query(
        max_length=40,
        description="Only at this time (RFC 3339) or later.",
        examples=["2026-01-31T12:00:00Z"],
    ),
]
OrderIn = Annotated[Literal["oldest", "newest"], Query(description="Which rows come first.")]
HolderIn = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=200,
        pattern=r"^[^\x00]*$",
        description="Only for this analyst; for entries also `group:name` or `*`.",
    ),
]
Reason = Annotated[str, Field(max_length=1000)] | None


class WireRequest(BaseModel):
    """Base of requests: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class LossResponse(BaseModel):
    """Numbers, with the exact decimal text beside a number that is not exact."""

    model_config = ConfigDict(extra="forbid")

    epsilon: float | None
    delta: float | None
    epsilon_exact: str | None = None
    delta_exact: str | None = None
    rho: float | None = None
    rho_exact: str | None = None


class AmountResponse(LossResponse):
    """A loss of an account, also in its own units: rho for `zcdp`, mu for `gdp`, and for `renyi`
    the divergence at the order with most of delta."""

    mu: float | None = None
    order: float | None = None
    renyi: float | None = None


def _exact_delta(value: object) -> Decimal:
    if value == 0 and not isinstance(value, bool):
        return Decimal(0)
    amount = exact_amount(value)
    if not Decimal("1e-18") <= amount < 1:
        raise ValueError("0, or from 1e-18 to less than 1")
    return amount


DeltaOrZero = Annotated[
    Decimal, BeforeValidator(_exact_delta), Field(json_schema_extra={"examples": [1e-6, "1e-6"]})
]
Delta = Annotated[DeltaOrZero, Field(gt=0)]


def json_response(
    content: Any, *, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    return Response(text, status_code=status, headers=headers, media_type="application/json")


def price_of(charged: dict[str, Any]) -> dict[str, Any]:
    """The loss among the members that an answer states about its charge."""
    names = ("epsilon", "delta", "rho")
    return {name: value for name, value in charged.items() if name.startswith(names)}


def iso(microseconds: int | None) -> str | None:
    if microseconds is None:
        return None
    moment = _EPOCH + datetime.timedelta(microseconds=microseconds)
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,12}))?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def since_microseconds(text: str | None) -> int | None:
    """Microseconds since 1970 of a time in RFC 3339, rounded up."""
    if text is None:
        return None
    found = _TIME.fullmatch(text)
    try:
        if found:
            day, clock, fraction, zone = found.groups(default="")
            moment = datetime.datetime.fromisoformat(f"{day}T{clock}{zone.upper()}") - _EPOCH
            exact = Fraction(moment // datetime.timedelta(microseconds=1))
            return math.ceil(exact + Fraction(f"0.{fraction or 0}") * 1_000_000)
    except (ValueError, OverflowError):
        pass
    rule = "an RFC 3339 time such as 2026-01-31T12:00:00Z; in a URL write + as %2B"
    raise Invalid.field("/since", rule)


def known_kind(kind: str | None, known: Collection[str]) -> str | None:
    """The kind; raises Invalid with the nearest known kind if it is unknown."""
    if kind is not None and kind not in known:
        rule = f"one of {', '.join(known)}{did_you_mean(kind, known)}"
        raise Invalid.field("/kind", rule)
    return kind


def cursor_text(*place: str | int) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def cursor_place(cursor: str | None, *kinds: type) -> tuple[Any, ...] | None:
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        parts = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        if isinstance(parts, list) and [type(part) for part in parts] == list(kinds):
            whole = [part for part in parts if isinstance(part, int)]
            texts = [part for part in parts if isinstance(part, str)]
            if all(abs(part) < 2**63 for part in whole) and "\x00" not in "".join(texts):
                "".join(texts).encode()
                return tuple(parts)
    except (ValueError, RecursionError):
        pass
    raise Invalid.field("/cursor", "the `next_cursor` of a previous page")
