"""The loss of many steps of discrete Gaussian noise on Poisson samples, with one release beside.

Renyi divergences of steps that each see what the ones before have said add up at every order
(Mironov 2017, Proposition 1); of one step see `sampled.py`. There is no rho in it that would be
less than without sampling, so none is told, and accounts that add up rho cannot pay.
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from app.accounting.curves import renyi_curves
from app.accounting.curves.conversion import epsilon_at
from app.accounting.curves.orders import ORDERS
from app.accounting.curves.sampled import replaced_discrete_gaussian, sampled_discrete_gaussian
from app.accounting.loss import Loss
from app.accounting.precise import CONTEXT, decimal

# Every order gives a true epsilon; these are looked at for the least.
_LOOKED_AT = tuple(
    decimal(order) for order in sorted({*ORDERS, *(Fraction(whole) for whole in range(2, 65))})
)


@dataclass(frozen=True, slots=True)
class SampledSteps:
    """`multiplier`: the noise over the largest norm of what one row adds."""

    steps: int
    rate: Decimal
    multiplier: Decimal
    replaced: bool  # is a row replaced, or is it added or removed
    rho: Decimal = Decimal(0)  # of a zCDP release beside

    def divergence(self, order: Decimal) -> Decimal:
        step = replaced_discrete_gaussian if self.replaced else sampled_discrete_gaussian
        with localcontext(CONTEXT):
            return self.steps * step(self.rate, self.multiplier, order) + self.rho * order

    def epsilon(self, delta: Decimal) -> Decimal:
        """The least over the orders that are looked at."""
        return min(self._epsilon(place, delta) for place in range(len(_LOOKED_AT)))

    def epsilon_from(self, delta: Decimal, place: int) -> tuple[Decimal, int]:
        """An epsilon that holds, found downhill from one order, and where it was found: nearly the
        least, in far less time."""
        here = self._epsilon(place, delta)
        for way in (-1, 1):
            while 0 <= place + way < len(_LOOKED_AT):
                there = self._epsilon(place + way, delta)
                if there >= here:
                    break
                here, place = there, place + way
        return here, place

    def _epsilon(self, place: int, delta: Decimal) -> Decimal:
        order = _LOOKED_AT[place]
        return epsilon_at(self.divergence(order), order, delta)

    def loss(self, promise: tuple[int, int]) -> Loss:
        return Loss(*promise, curve=lambda: renyi_curves.on_grid(self.divergence))
