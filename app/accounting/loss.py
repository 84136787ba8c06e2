"""Privacy loss of one release, in every currency.

An account adds up only the numbers that its currency counts (`rules/`). So a loss describes the
same release in several ways, each a true statement of its own:

    epsilon, delta   the promise: (epsilon, delta)-private, for basic composition
    pure, failure    except with probability `failure` the loss is at most `pure`, always
    rho              except with probability `failure`, rho-zCDP
    mu_squared       except with probability `failure`, mu-Gaussian private
    curve            except with probability `failure`, this Renyi divergence at each public order

A Gaussian release has a promise, but no pure bound and no failure. Accounts that follow curves pay
its tail with the delta they were granted for conversion (Canonne, Kamath and Steinke 2020,
Proposition 12), and must not pay it twice.

A curve is forty logarithms of 40 digits, which only `renyi` accounts read. It may be given as a
function, which is evaluated at the first access. The same holds for mu_squared.
"""

from collections.abc import Callable
from typing import Any

from typing_extensions import override

from app.accounting.curves.orders import ORDERS
from app.accounting.precise import INFINITE
from app.accounting.units import ATTO, PICO, wire

RenyiCurve = tuple[int, ...]
NO_CURVE: RenyiCurve = (INFINITE,) * len(ORDERS)


class Loss:
    """Immutable loss in units of 1e-12, delta and failure in units of 1e-18. INFINITE means no
    bound."""

    __slots__ = ("_curve", "_mu_squared", "delta", "epsilon", "failure", "pure", "rho")

    def __init__(
        self,
        epsilon: int,
        delta: int = 0,
        pure: int = INFINITE,
        failure: int = 0,
        rho: int = INFINITE,
        mu_squared: int | Callable[[], int] = INFINITE,
        curve: RenyiCurve | Callable[[], RenyiCurve] = NO_CURVE,
    ) -> None:
        self.epsilon, self.delta, self.pure, self.failure = epsilon, delta, pure, failure
        self.rho = rho
        self._mu_squared = mu_squared
        self._curve = curve
        _check((epsilon, delta, pure, failure, rho))
        if not callable(mu_squared):
            _check((mu_squared,))
        if not callable(curve):
            _check_curve(curve)

    @property
    def mu_squared(self) -> int:
        if callable(self._mu_squared):
            value = self._mu_squared()
            _check((value,))
            self._mu_squared = value
        return self._mu_squared

    @property
    def curve(self) -> RenyiCurve:
        if callable(self._curve):
            value = self._curve()
            _check_curve(value)
            self._curve = value
        return self._curve

    def __add__(self, other: "Loss") -> "Loss":
        """Loss of both releases in sequence."""
        epsilon, delta, pure, failure, rho = map(_sum, self._numbers, other._numbers)
        return Loss(
            *(epsilon, delta, pure, failure, rho),
            mu_squared=lambda: _sum(self.mu_squared, other.mu_squared),
            curve=lambda: tuple(map(_sum, self.curve, other.curve)),
        )

    def times(self, count: int) -> "Loss":
        """Loss of `count` equal releases."""
        epsilon, delta, pure, failure, rho = (
            min(INFINITE, count * units) for units in self._numbers
        )
        return Loss(
            *(epsilon, delta, pure, failure, rho),
            mu_squared=lambda: min(INFINITE, count * self.mu_squared),
            curve=lambda: tuple(min(INFINITE, count * units) for units in self.curve),
        )

    def replace(self, **changes: Any) -> "Loss":
        """The same loss with some numbers changed."""
        epsilon, delta, pure, failure, rho = self._numbers
        same = {"epsilon": epsilon, "delta": delta, "pure": pure, "failure": failure, "rho": rho}
        lazy = {"mu_squared": self._mu_squared, "curve": self._curve}
        return Loss(**{**same, **lazy, **changes})

    @property
    def _numbers(self) -> tuple[int, int, int, int, int]:
        return (self.epsilon, self.delta, self.pure, self.failure, self.rho)

    @property
    def _all(self) -> tuple[int, ...]:
        return (*self._numbers, self.mu_squared, *self.curve)

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Loss) and self._all == other._all

    @override
    def __hash__(self) -> int:
        return hash(self._numbers)

    @override
    def __repr__(self) -> str:
        return f"Loss{self._all}"

    def to_json(self) -> dict[str, float | str | None]:
        """The promise; a release without one is described by its rho and its failure
        probability."""
        if self.epsilon >= INFINITE:
            failure = wire("delta", self.failure, ATTO) if self.failure else {"delta": None}
            return {"epsilon": None, **failure, **wire("rho", self.rho, PICO)}
        members = wire("epsilon", self.epsilon, PICO) | wire("delta", self.delta, ATTO)
        if self.pure >= INFINITE > self.rho:
            members |= wire("rho", self.rho, PICO)
        return {**members}


def _check(numbers: tuple[int, ...]) -> None:
    if not all(0 <= units <= INFINITE for units in numbers):
        raise ValueError("a loss must be non-negative and fit 64 bits")


def _check_curve(curve: RenyiCurve) -> None:
    if len(curve) != len(ORDERS):
        raise ValueError("a curve must have one value for each public order")
    _check(curve)


def _sum(a: int, b: int) -> int:
    return min(INFINITE, a + b)
