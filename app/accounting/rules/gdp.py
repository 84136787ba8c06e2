"""`gdp` accounts: squares of mu add up, and an account stops before they exceed its limit.

Theorem: Smith and Thakurta 2022, Koskela, Tobaben and Honkela 2023: stopping before the sum of mu^2
exceeds a limit is a valid filter for Gaussian differential privacy under adaptively chosen queries;
Dong, Roth and Su 2019, Balle and Wang 2018: the exact conversion to (epsilon, delta). Tight for
Gaussian noise. A pure query costs the mu of `gaussian.pure_mu`. Discrete Gaussian noise has no
exact mu and cannot be paid here.
"""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from statistics import NormalDist

from typing_extensions import override

from app.accounting.curves import quick_units
from app.accounting.curves.gaussian import epsilon_at, mu_within, pure_mu
from app.accounting.curves.orders import QUARTERS
from app.accounting.loss import Loss
from app.accounting.precise import CONTEXT, INFINITE, units_down, units_up
from app.accounting.rules.curved import CurveRule, best_order
from app.accounting.rules.spending import Spend
from app.accounting.rules.terms import AccountTerms, GrantTerms
from app.accounting.units import PICO, limit_units
from app.errors import Invalid

THEOREM = (
    "Smith and Thakurta 2022, Koskela, Tobaben and Honkela 2023: Gaussian privacy filter; "
    "Dong, Roth and Su 2019: conversion"
)
MU_MAX = 3000  # its square and its epsilon fit 64 bits
_NORMAL = NormalDist()
_QUICK_BELOW = Decimal(30)  # beyond, floats cannot resolve a unit of so large a square


class GaussianRule(CurveRule):
    """Stop rule with one path: the square of mu."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("gdp", THEOREM, (0, 0, 0))

    @override
    def paths(self, loss: Loss) -> Spend:
        return (loss.mu_squared,)

    @override
    def path_limits(
        self, grant: GrantTerms, conversion: Decimal, star: str | None
    ) -> tuple[Decimal, Spend, str]:
        for name in ("rho", "order"):
            if getattr(grant, name) is not None:
                raise Invalid.field(f"/{name}", "a gdp account does not use it: leave it out")
        if (grant.epsilon is None) == (grant.mu is None):
            raise Invalid.field("/epsilon", "a gdp account needs exactly one of epsilon and mu")
        with localcontext(CONTEXT):
            if grant.mu is not None:
                if grant.mu > MU_MAX:
                    raise Invalid.field("/mu", f"must be at most {MU_MAX}")
                epsilon = Decimal(units_up(epsilon_at(conversion, grant.mu))) / PICO
                limit = limit_units(grant.mu * grant.mu, PICO)
            else:
                assert grant.epsilon is not None
                epsilon = grant.epsilon
                limit = max(0, units_down(mu_within(epsilon, conversion) ** 2))
        return epsilon, (limit,), star or best_order(epsilon, conversion)

    @override
    def divergences(self, total: Spend) -> Spend:
        """N(0, 1) against N(mu, 1) has divergence a mu^2 / 2 at order a."""
        return tuple(min(INFINITE, -(-total[2] * quarters // 8)) for quarters in QUARTERS)

    @override
    def pure_cost(self, path: int) -> tuple[Callable[[float], float], Callable[[int], int]]:
        return _pure_roughly, lambda units: pure_mu_squared(Decimal(units) / PICO)

    @override
    def own_units(self, spend: Spend, terms: AccountTerms) -> dict[str, float | None]:
        return {"mu": None if spend[2] >= INFINITE else math.sqrt(spend[2] / PICO)}


def pure_mu_squared(e: Decimal) -> int:
    """Units of mu^2 for a pure mechanism: by floats, where these can decide them."""
    if (
        Decimal(0) < e <= _QUICK_BELOW
        and (near := quick_units.pure_mu_squared(float(e))) is not None
    ):
        quick = quick_units.units_above(0, near)
        if quick is not None:
            return quick
    mu = pure_mu(e)
    with localcontext(CONTEXT):
        return units_up(mu * mu)


def _pure_roughly(e: float) -> float:
    if e > 30:
        return math.inf
    return (2 * _NORMAL.inv_cdf(1 / (1 + math.exp(-e)))) ** 2
