"""A question as it is asked: which dataset, what, how noisy."""

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from app.accounting.rounding import PICO, UNITS_MAX
from app.queries import Query


def exact_amount(value: object) -> Decimal:
    """A loss from a JSON number or decimal text, exactly. JSON numbers arrive as Decimal or int."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        raise ValueError("a number, or a decimal text such as '0.1'")
    text = getattr(value, "text", None) or str(value)  # a JSON number keeps how it was written
    if len(text) > 60 or not set(text) <= set("0123456789.eE+-"):
        raise ValueError("a number, or a decimal text such as '0.1'")
    try:
        amount = Decimal(text)
    except ArithmeticError:
        raise ValueError("a number, or a decimal text such as '0.1'") from None
    if amount <= 0:
        raise ValueError("greater than zero")
    if isinstance(value, float) and amount != Decimal(repr(float(value))):
        raise ValueError("more digits than a JSON number holds: send it as a decimal text")
    return amount


def exact_epsilon(value: object) -> Decimal:
    amount = exact_amount(value)
    if not Decimal(1) / PICO <= amount <= Decimal(UNITS_MAX) / PICO:
        raise ValueError("between 1e-12 and 9223372")
    return amount


Epsilon = Annotated[
    Decimal,
    BeforeValidator(exact_epsilon),
    Field(json_schema_extra={"examples": [0.1, "0.1"]}),
]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Privacy(_Frozen):
    """How much loss the question may cost."""

    epsilon: Epsilon


class Mechanism(_Frozen):
    """The mechanism to use; left out, the planner takes the one with the least expected error."""

    kind: Literal["laplace"]


class Question(_Frozen):
    """One question about one dataset."""

    dataset: Annotated[str, Field(min_length=1, max_length=200)]
    query: Query
    privacy: Privacy
    mechanism: Mechanism | None = None
    confidence: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.95
    fresh: bool = False
