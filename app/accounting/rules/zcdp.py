"""`zcdp` accounts: rho adds up, and an account stops before it passes its limit.

Theorem: Whitehouse, Ramdas, Rogers and Wu 2023: stopping before the sum of rho passes a limit is a
valid filter for zCDP under adaptively chosen questions and rho; with failures, Rogers et al. 2023.
All orders hold at once, so the limit is the tight conversion over all of them
(`conversion.rho_limit`). A pure question costs e tanh(e/2) (`curves.pure_rho`); with e^2/2 and the
classical conversion this is the fully adaptive advanced composition of the same paper.
Assumes: releases one after another, each priced by a rho that bounds it at every order.
"""

import math
from collections.abc import Callable
from decimal import Decimal

from typing_extensions import override

from app.accounting.curves.conversion import epsilon_of_rho, rho_limit
from app.accounting.curves.curve_units import pure_rho
from app.accounting.curves.orders import QUARTERS
from app.accounting.loss import Loss
from app.accounting.precise import INFINITE, units_down, units_up
from app.accounting.rules.curved import CurveRule, best_order
from app.accounting.rules.spending import Spend
from app.accounting.rules.terms import GrantTerms, Terms
from app.accounting.units import PICO, limit_units
from app.errors import Invalid

THEOREM = (
    "Whitehouse, Ramdas, Rogers and Wu 2023: zCDP privacy filter; "
    "Canonne, Kamath and Steinke 2020, Proposition 12: conversion"
)


class ConcentratedRule(CurveRule):
    """One path: rho."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("zcdp", THEOREM, (0, 0, 0))

    @override
    def paths(self, loss: Loss) -> Spend:
        return (loss.rho,)

    @override
    def path_limits(
        self, wish: GrantTerms, conversion: Decimal, star: str | None
    ) -> tuple[Decimal, Spend, str]:
        for name in ("mu", "order"):
            if getattr(wish, name) is not None:
                raise Invalid.field(f"/{name}", "a zcdp account has none: leave it out")
        if (wish.epsilon is None) == (wish.rho is None):
            raise Invalid.field("/epsilon", "a zcdp account is granted either epsilon or rho")
        if wish.rho is not None:
            epsilon = Decimal(units_up(epsilon_of_rho(wish.rho, conversion))) / PICO
            limit = limit_units(wish.rho, PICO)
        else:
            assert wish.epsilon is not None
            epsilon = wish.epsilon
            limit = max(0, units_down(rho_limit(epsilon, conversion)))
        return epsilon, (limit,), star or best_order(epsilon, conversion)

    @override
    def divergences(self, total: Spend) -> Spend:
        return tuple(min(INFINITE, -(-total[2] * quarters // 4)) for quarters in QUARTERS)

    @override
    def pure_cost(self, path: int) -> tuple[Callable[[float], float], Callable[[int], int]]:
        return (
            lambda e: e * math.tanh(e / 2),
            pure_rho,
        )

    @override
    def own_units(self, spend: Spend, terms: Terms) -> dict[str, float | None]:
        return {"rho": None if spend[2] >= INFINITE else spend[2] / PICO}
