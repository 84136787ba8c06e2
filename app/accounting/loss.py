"""A privacy loss in the units of the ledger, readable by every currency."""

from dataclasses import dataclass

from app.accounting.rounding import ATTO, PICO, UNITS_MAX, wire


@dataclass(frozen=True, slots=True)
class Loss:
    """What a release costs, or what an account has spent: (epsilon, delta) by basic composition.

    epsilon counts 1e-12 and delta 1e-18; both are non-negative and fit 64 bits.
    """

    epsilon: int
    delta: int = 0

    def __post_init__(self) -> None:
        if not (0 <= self.epsilon <= UNITS_MAX and 0 <= self.delta <= UNITS_MAX):
            raise ValueError("a loss is non-negative and fits 64 bits")

    def __add__(self, other: "Loss") -> "Loss":
        return Loss(self.epsilon + other.epsilon, self.delta + other.delta)

    def minus(self, other: "Loss") -> "Loss":
        """What is left of this after the other, never below zero."""
        return Loss(max(0, self.epsilon - other.epsilon), max(0, self.delta - other.delta))

    def within(self, limit: "Loss") -> bool:
        return self.epsilon <= limit.epsilon and self.delta <= limit.delta

    def wire(self) -> dict[str, float | str]:
        return wire("epsilon", self.epsilon, PICO) | wire("delta", self.delta, ATTO)
