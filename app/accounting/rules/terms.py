"""What was promised to an account when it was granted, and the limits frozen from it."""

import json
from dataclasses import asdict, dataclass
from decimal import Decimal

from app.accounting.precise import INFINITE
from app.accounting.rules.spending import Spend


@dataclass(frozen=True, slots=True)
class GrantTerms:
    """A grant as it is asked for; which members it needs is the currency's business."""

    epsilon: Decimal | None = None
    delta: Decimal = Decimal(0)
    rho: Decimal | None = None
    mu: Decimal | None = None
    failure_delta: Decimal | None = None  # of delta, kept for releases that may fail
    order: Decimal | None = None  # the order that gets most of delta


@dataclass(frozen=True, slots=True)
class Terms:
    """(epsilon, delta) is the promise. A spend is admitted against `limits`, number by number as
    the rule says; a limit of -1 admits nothing. All in units, frozen."""

    epsilon: int
    delta: int
    limits: Spend
    conversion: int = 0  # the part of delta that pays for tails; the rest is limits[1]
    order: str | None = None  # of the grid, with most of the conversion's delta

    def __post_init__(self) -> None:
        told = (self.epsilon, self.delta, self.conversion)
        if not all(0 <= units < INFINITE for units in told):
            raise ValueError("a promise is non-negative and fits 64 bits")
        if not all(-1 <= units < INFINITE for units in self.limits):
            raise ValueError("limits fit 64 bits")

    def text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> "Terms":
        said = json.loads(text)
        return cls(**{**said, "limits": tuple(said["limits"])})
