"""Terms of an account: the promise made at its grant, and the limits frozen from it."""

import json
from dataclasses import asdict, dataclass
from decimal import Decimal

from app.accounting.precise import INFINITE
from app.accounting.rules.spending import Spend


@dataclass(frozen=True, slots=True)
class GrantTerms:
    """Requested terms of a grant; the currency decides which members it needs."""

    epsilon: Decimal | None = None
    delta: Decimal = Decimal(0)
    rho: Decimal | None = None
    mu: Decimal | None = None
    failure_delta: Decimal | None = None  # part of delta reserved for releases that may fail
    order: Decimal | None = None  # the order that gets most of delta


@dataclass(frozen=True, slots=True)
class AccountTerms:
    """Frozen terms in units; (epsilon, delta) is the promise.

    The rule admits a spend against `limits`, number by number; a limit of -1 admits nothing."""

    epsilon: int
    delta: int
    limits: Spend
    conversion: int = 0  # the part of delta that pays for tails; the rest is limits[1]
    order: str | None = None  # order of the grid with most of the conversion's delta

    def __post_init__(self) -> None:
        promised = (self.epsilon, self.delta, self.conversion)
        if not all(0 <= units < INFINITE for units in promised):
            raise ValueError("a promise must be non-negative and fit 64 bits")
        if not all(-1 <= units < INFINITE for units in self.limits):
            raise ValueError("limits must fit 64 bits")

    def text(self) -> str:
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str) -> "AccountTerms":
        members = json.loads(text)
        return cls(**{**members, "limits": tuple(members["limits"])})
