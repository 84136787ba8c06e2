"""`zcdp` accounts: rho adds up, and an account stops before it exceeds its limit.

Theorem: Whitehouse, Ramdas, Rogers and Wu 2023: stopping before the sum of rho exceeds a limit is a
valid filter for zCDP under adaptively chosen queries and rho; with failures, Rogers et al. 2023.
All orders hold at once, so the limit is the tight conversion over all of them
(`conversion.rho_limit`). A pure query costs e tanh(e/2) (`renyi_curves.pure_rho`); with e^2/2 and
the classical conversion this is the fully adaptive advanced composition of the same paper.
Assumes: sequential releases, each priced by a rho that bounds it at every order.
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
from app.accounting.rules.terms import AccountTerms, GrantTerms
from app.accounting.units import PICO, limit_units
from app.errors import Invalid

THEOREM = (
    "Whitehouse, Ramdas, Rogers and Wu 2023: zCDP privacy filter; "
    "Canonne, Kamath and Steinke 2020, Proposition 12: conversion"
)


class ConcentratedRule(CurveRule):
    """Stop rule with one path: rho."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("zcdp", THEOREM, (0, 0, 0))

    @override
    def paths(self, loss: Loss) -> Spend:
        return (loss.rho,)

    @override
    def path_limits(
        self, grant: GrantTerms, conversion: Decimal, star: str | None
    ) -> tuple[Decimal, Spend, str]:
        for name in ("mu", "order"):
            if getattr(grant, name) is not None:
                raise Invalid.field(f"/{name}", "a zcdp account does not use it: leave it out")
        if (grant.epsilon is None) == (grant.rho is None):
            raise Invalid.field("/epsilon", "a zcdp account needs exactly one of epsilon and rho")
        if grant.rho is not None:
            epsilon = Decimal(units_up(epsilon_of_rho(grant.rho, conversion))) / PICO
            limit = limit_units(grant.rho, PICO)
        else:
            assert grant.epsilon is not None
            epsilon = grant.epsilon
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
    def own_units(self, spend: Spend, terms: AccountTerms) -> dict[str, float | None]:
        return {"rho": None if spend[2] >= INFINITE else spend[2] / PICO}
