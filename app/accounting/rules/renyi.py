"""`renyi` accounts: a divergence adds up at every public order, each with its own limit.

Theorem: Feldman and Zrnic 2021 (also Lecuyer 2021): at one order fixed in advance, stopping before
the sum of divergences exceeds a limit is a valid filter. Each order of the grid gets a share of
delta when the account is granted, and the limit that goes with it. A charge is admitted while some
order is within its limit (`curved.py` has the proof). Most of delta is on the order that suits the
grant; `order` of the grant names another, for queries of another profile.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from typing_extensions import override

from app.accounting.curves.conversion import renyi_limit
from app.accounting.curves.curve_units import pure_at
from app.accounting.curves.orders import ORDERS, PLACES
from app.accounting.loss import Loss
from app.accounting.precise import INFINITE, decimal, units_down
from app.accounting.rules.curved import CurveRule, best_order, weights
from app.accounting.rules.spending import Spend
from app.accounting.rules.terms import AccountTerms, GrantTerms
from app.accounting.units import PICO
from app.errors import Invalid

THEOREM = (
    "Feldman and Zrnic 2021: Renyi privacy filter, at each order with its own share of delta; "
    "Canonne, Kamath and Steinke 2020, Proposition 12: conversion"
)


class RenyiRule(CurveRule):
    """Stop rule with one path for each public order."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("renyi", THEOREM, (0,) * (2 + len(ORDERS)))

    @override
    def paths(self, loss: Loss) -> Spend:
        return loss.curve

    @override
    def path_limits(
        self, grant: GrantTerms, conversion: Decimal, star: str | None
    ) -> tuple[Decimal, Spend, str]:
        for name in ("rho", "mu"):
            if getattr(grant, name) is not None:
                raise Invalid.field(f"/{name}", "a renyi account does not use it: grant an epsilon")
        if grant.epsilon is None:
            raise Invalid.field("/epsilon", "a renyi account needs an epsilon")
        chosen = star is None and grant.order is not None
        if grant.order is not None:
            requested = next(
                (t for t, i in PLACES.items() if ORDERS[i] == Fraction(grant.order)), None
            )
            if requested is None:
                raise Invalid.field("/order", "must be one of the public orders")
            if star not in (None, requested):
                raise Invalid.field("/order", f"{star}: the order is fixed after the first spend")
            star = requested
        star = star or best_order(grant.epsilon, conversion)
        limits = tuple(
            units_down(renyi_limit(grant.epsilon, decimal(order), weight * conversion))
            for order, weight in zip(ORDERS, weights(star), strict=True)
        )
        # a stored order may have no room left after its limit is lowered
        if chosen and limits[PLACES[star]] < 0:
            raise Invalid.field(
                "/order", "must be an order at which epsilon and delta leave a positive limit"
            )
        return grant.epsilon, limits, star

    @override
    def divergences(self, total: Spend) -> Spend:
        return total[2:]

    @override
    def pure_cost(self, path: int) -> tuple[Callable[[float], float], Callable[[int], int]]:
        a = float(ORDERS[path])

        def roughly(e: float) -> float:
            tails = math.log1p(math.exp((1 - 2 * a) * e)) - math.log1p(math.exp(-e))
            return e + tails / (a - 1)

        return roughly, lambda units: pure_at(units, path)

    @override
    def own_units(self, spend: Spend, terms: AccountTerms) -> dict[str, float | None]:
        """Divergence at the order that got most of delta."""
        assert terms.order is not None
        units = max(0, spend[2 + PLACES[terms.order]])
        divergence = None if units >= INFINITE else units / PICO
        return {"order": float(terms.order), "renyi": divergence}
