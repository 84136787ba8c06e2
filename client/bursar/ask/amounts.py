"""Amounts of loss: numbers, exact decimal texts, and how people read them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from bursar.errors import BadQuestion

if TYPE_CHECKING:
    from bursar.bodies import Privacy

Amount: TypeAlias = int | float | str | Decimal


def wire_amount(amount: Amount) -> float | str:
    """An amount as JSON has it. Decimals and texts keep every digit."""
    return str(amount) if isinstance(amount, (str, Decimal)) else amount


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


def together(parts: Sequence[tuple[Loss, Sequence[Any] | None]]) -> Loss:
    """Loss of several parts, each with the cells that it charges.

    Parts about disjoint cells cost as much as the dearest of them, other parts as much as all.
    """
    cells = [str(cell) for _, charged in parts for cell in charged or ()]
    disjoint = all(charged for _, charged in parts) and len(cells) == len(set(cells))
    combine = max if disjoint else sum

    def total(amounts: list[float | None]) -> float | None:
        present = [amount for amount in amounts if amount is not None]
        return combine(present) if present else None

    losses = [loss for loss, _ in parts]
    return Loss(
        total([loss.epsilon for loss in losses]),
        total([loss.delta for loss in losses]),
        total([loss.rho for loss in losses]),
    )


def short(value: float | None) -> str:
    """A number as people read it: three significant digits."""
    if value is None:
        return "–"
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
