"""The loss of one release, as every currency reads it.

An account adds up only what its currency counts (`rules.py`), so a loss says the same release in
several ways, each a true statement of its own:

    epsilon, delta   the promise: (epsilon, delta)-private, for basic composition
    pure, failure    except with probability `failure` the loss is at most `pure`, always
    rho              except with probability `failure`, rho-zCDP
    mu_squared       except with probability `failure`, mu-Gaussian private
    curve            except with probability `failure`, this Renyi divergence at each public order

A Gaussian release has a promise, but no pure bound and no failure: accounts that follow curves pay
its tail with the delta they were granted for conversion, and must not pay it twice (4.4 of the
accounting notes; Canonne, Kamath and Steinke 2020).
"""

from dataclasses import dataclass

from app.accounting.orders import ORDERS
from app.accounting.precise import INFINITE
from app.accounting.rounding import ATTO, PICO, wire

NO_CURVE = (INFINITE,) * len(ORDERS)


@dataclass(frozen=True, slots=True)
class Loss:
    """In units: everything counts 1e-12, but delta and failure 1e-18. INFINITE is no bound."""

    epsilon: int
    delta: int = 0
    pure: int = INFINITE
    failure: int = 0
    rho: int = INFINITE
    mu_squared: int = INFINITE
    curve: tuple[int, ...] = NO_CURVE

    def __post_init__(self) -> None:
        if not all(0 <= units <= INFINITE for units in (*self._numbers, *self.curve)):
            raise ValueError("a loss is non-negative and fits 64 bits")
        if len(self.curve) != len(ORDERS):
            raise ValueError("a curve has one value for each public order")

    def __add__(self, other: "Loss") -> "Loss":
        """Both releases, one after the other."""
        epsilon, delta, pure, failure, rho, mu_squared = map(_sum, self._numbers, other._numbers)
        curve = tuple(map(_sum, self.curve, other.curve))
        return Loss(epsilon, delta, pure, failure, rho, mu_squared, curve)

    def times(self, count: int) -> "Loss":
        """So many of the same release."""
        epsilon, delta, pure, failure, rho, mu_squared = (
            min(INFINITE, count * units) for units in self._numbers
        )
        curve = tuple(min(INFINITE, count * units) for units in self.curve)
        return Loss(epsilon, delta, pure, failure, rho, mu_squared, curve)

    @property
    def _numbers(self) -> tuple[int, int, int, int, int, int]:
        return (self.epsilon, self.delta, self.pure, self.failure, self.rho, self.mu_squared)

    def wire(self) -> dict[str, float | str | None]:
        """The promise; a release that makes none is told by its rho, and what it may fail with."""
        if self.epsilon >= INFINITE:
            failure = wire("delta", self.failure, ATTO) if self.failure else {"delta": None}
            return {"epsilon": None, **failure, **wire("rho", self.rho, PICO)}
        told = wire("epsilon", self.epsilon, PICO) | wire("delta", self.delta, ATTO)
        if self.pure >= INFINITE:
            told |= wire("rho", self.rho, PICO)
        return {**told}


def _sum(a: int, b: int) -> int:
    return min(INFINITE, a + b)
