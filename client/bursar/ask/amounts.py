"""Amounts of loss: numbers, exact decimal texts, and how people read them."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from operator import index
from typing import TYPE_CHECKING, Any, SupportsFloat, TypeAlias

from bursar.errors import BadQuestion

if TYPE_CHECKING:
    from bursar.bodies import Privacy

Amount: TypeAlias = str | SupportsFloat  # also decimals, fractions and numpy's numbers


def wire_amount(amount: object) -> float | str:
    """An amount as JSON has it. Decimals and texts keep every digit.

    Fractions and numpy's scalars become plain numbers.
    """
    if isinstance(amount, str):
        return str(amount)
    plain = _number(amount)
    if plain is None or not isfinite(plain):
        raise BadQuestion(
            f"{amount!r:.60} is no amount.", hint="Give a number, or a decimal text such as '0.1'."
        )
    return str(amount) if isinstance(amount, Decimal) else plain


def wire_count(count: object, name: str) -> int:
    """A whole number as JSON has it."""
    plain = _number(count)
    if plain is None or not isfinite(plain) or plain != int(plain):
        raise BadQuestion(f"{name} is a whole number, not {count!r:.60}.")
    return int(plain)


def _number(value: Any) -> float | None:
    if isinstance(value, (str, bool)) or type(value).__name__ == "bool_":
        return None
    try:
        return int(index(value))
    except TypeError:
        pass
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def privacy_of(
    *,
    epsilon: Amount | None = None,
    delta: Amount | None = None,
    rho: Amount | None = None,
    within: Amount | None = None,
    confidence: float | None = None,
) -> "Privacy":
    """The price, or the accuracy: exactly one of epsilon, rho and within."""
    prices = {"epsilon": epsilon, "rho": rho, "half_width": within}
    chosen = {name: wire_amount(value) for name, value in prices.items() if value is not None}
    if len(chosen) != 1:
        raise BadQuestion(
            "Say what the question may cost, or how exact it must be.",
            hint="Give exactly one of epsilon=0.1, rho=0.01 and within=50.",
        )
    privacy: dict[str, Any] = dict(chosen)
    if delta is not None:
        privacy["delta"] = wire_amount(delta)
    if within is not None:
        privacy["confidence"] = 0.95 if confidence is None else confidence
    return privacy  # type: ignore[return-value]  # the names are those of Privacy


@dataclass(frozen=True)
class Loss:
    """A privacy loss, or what is left of a budget. An amount that does not apply is None."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    mu: float | None = None

    @classmethod
    def read(cls, members: Mapping[str, Any] | None) -> "Loss | None":
        if members is None:
            return None
        return cls(*(members.get(name) for name in ("epsilon", "delta", "rho", "mu")))

    def __str__(self) -> str:
        shown = [("ε", self.epsilon), ("δ", self.delta), ("ρ", self.rho), ("μ", self.mu)]
        parts = [f"{name} {short(value)}" for name, value in shown if value]
        return ", ".join(parts) or "nothing"


def short(value: float | None) -> str:
    """A number as people read it: three significant digits."""
    if value is None:
        return "–"
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
