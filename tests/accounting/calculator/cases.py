"""Short constructors for compositions, and functions to compute them."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from app.accounting.calculator.compose import ACCOUNTANTS, compose
from app.accounting.calculator.event_list import Composition
from app.accounting.calculator.events import (
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Generic,
    Laplace,
    Pure,
    RandomizedResponse,
    SampledGaussian,
)

Counted = tuple[Event, int]
EXACT_ACCOUNTANTS = [name for name in ACCOUNTANTS if name != "pld"]


def laplace(e: str) -> Event:
    return Laplace(Decimal(e))


def pure(e: str) -> Event:
    return Pure(Decimal(e))


def gaussian(multiplier: str) -> Event:
    return Gaussian(Decimal(multiplier))


def sampled(multiplier: str, rate: str) -> Event:
    return SampledGaussian(Decimal(multiplier), Decimal(rate))


def response(e: str, categories: int = 2) -> Event:
    return RandomizedResponse(Decimal(e), categories)


def generic(e: str, delta: str) -> Event:
    return Generic(Decimal(e), Decimal(delta))


def concentrated(rho: str) -> Event:
    return Concentrated(Decimal(rho))


def discrete_laplace(e: str, steps: int = 1) -> Event:
    return DiscreteLaplace(Decimal(e), steps)


def discrete_gaussian(multiplier: str) -> Event:
    return DiscreteGaussian(Decimal(multiplier))


def exponential(e: str) -> Event:
    return Exponential(Decimal(e))


def results(
    events: Iterable[Counted],
    accountants: Iterable[str] = tuple(EXACT_ACCOUNTANTS),
    *,
    delta: str | None = None,
    epsilon: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    composed: dict[str, Any] = compose(
        Composition.of(events, **more),
        accountants,
        delta=None if delta is None else Decimal(delta),
        epsilon=None if epsilon is None else Decimal(epsilon),
    )["results"]
    return composed


def epsilon(event: Event, count: int, accountant: str, delta: str = "1e-6", **more: Any) -> float:
    shown = results([(event, count)], [accountant], delta=delta, **more)[accountant]
    assert "unavailable" not in shown, shown
    return float(shown["epsilon"])


def how_many_fit(event: Event, accountant: str, target: float, delta: str = "1e-6") -> int:
    """The largest count with an epsilon of at most the target."""
    fits, over = 0, 1
    while epsilon(event, over, accountant, delta) <= target:
        fits, over = over, 2 * over
    while over - fits > 1:
        middle = (fits + over) // 2
        if epsilon(event, middle, accountant, delta) <= target:
            fits = middle
        else:
            over = middle
    return fits
