"""Loss of many steps of discrete Gaussian noise on Poisson samples, plus one zCDP release.

Renyi divergences of adaptive steps add up at every order (Mironov 2017, Proposition 1);
`sampled.py` has the divergence of one step. Sampling does not reduce rho. So the loss has none, and
accounts that add up rho cannot pay it.
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

# Every order gives a valid epsilon; the least over these is used.
_LOOKED_AT = tuple(
    decimal(order) for order in sorted({*ORDERS, *(Fraction(whole) for whole in range(2, 65))})
)


@dataclass(frozen=True, slots=True)
class SampledSteps:
    """Sampled steps; `multiplier` is the noise over the largest norm of one row's contribution."""

    steps: int
    rate: Decimal
    multiplier: Decimal
    replaced: bool  # true if a row is replaced, false if it is added or removed
    rho: Decimal = Decimal(0)  # rho of an additional zCDP release

    def divergence(self, order: Decimal) -> Decimal:
        step = replaced_discrete_gaussian if self.replaced else sampled_discrete_gaussian
        with localcontext(CONTEXT):
            return self.steps * step(self.rate, self.multiplier, order) + self.rho * order

    def epsilon(self, delta: Decimal) -> Decimal:
        """The least epsilon over the orders in _LOOKED_AT."""
        return min(self._epsilon(index, delta) for index in range(len(_LOOKED_AT)))

    def epsilon_from(self, delta: Decimal, index: int) -> tuple[Decimal, int]:
        """A valid epsilon and the index of its order, by descent from one order.

        It is nearly the least, in far less time."""
        here = self._epsilon(index, delta)
        for way in (-1, 1):
            while 0 <= index + way < len(_LOOKED_AT):
                there = self._epsilon(index + way, delta)
                if there >= here:
                    break
                here, index = there, index + way
        return here, index

    def _epsilon(self, index: int, delta: Decimal) -> Decimal:
        order = _LOOKED_AT[index]
        return epsilon_at(self.divergence(order), order, delta)

    def loss(self, promise: tuple[int, int]) -> Loss:
        return Loss(*promise, curve=lambda: renyi_curves.on_grid(self.divergence))
