"""Losses of external releases, described by their mechanism and count.

Accounts by basic composition can count Gaussian and zCDP releases only as an (epsilon, delta). For
them the owner must state a delta, at which the releases together are converted once.
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from app.accounting.curves.conversion import epsilon_of_rho
from app.accounting.curves.gaussian import epsilon_at
from app.accounting.curves.orders import ORDERS
from app.accounting.loss import Loss
from app.accounting.losses import gaussian_loss, generic_loss, laplace_loss, zcdp_loss
from app.accounting.precise import CONTEXT, decimal, units_up
from app.accounting.units import ATTO, PICO, cost_units


@dataclass(frozen=True, slots=True)
class ExternalLaplace:
    """Continuous Laplace noise of scale (L1 sensitivity) / epsilon."""

    epsilon: Decimal

    def loss(self, count: int) -> Loss:
        return laplace_loss(cost_units(self.epsilon, PICO)).times(count)


@dataclass(frozen=True, slots=True)
class ExternalGeneric:
    """Any (epsilon, delta)-private mechanism."""

    epsilon: Decimal
    delta: Decimal

    def loss(self, count: int) -> Loss:
        units = cost_units(self.epsilon, PICO), cost_units(self.delta, ATTO)
        return generic_loss(*units).times(count)


@dataclass(frozen=True, slots=True)
class ExternalZcdp:
    """Any rho-zCDP mechanism."""

    rho: Decimal
    delta: Decimal | None

    def loss(self, count: int) -> Loss:
        rho = Fraction(self.rho) * count
        if self.delta is None:
            return zcdp_loss(rho)
        epsilon = units_up(epsilon_of_rho(decimal(rho), self.delta))
        return zcdp_loss(rho, (epsilon, cost_units(self.delta, ATTO)))


@dataclass(frozen=True, slots=True)
class ExternalGaussian:
    """Gaussian noise; the multiplier is its standard deviation over the L2 sensitivity."""

    noise_multiplier: Decimal
    delta: Decimal | None

    def loss(self, count: int) -> Loss:
        together = gaussian_loss(Fraction(self.noise_multiplier)).times(count)
        if self.delta is None:
            return together
        # n equal releases are one of sqrt(n) times their mu: squares add up.
        with localcontext(CONTEXT):
            mu = Decimal(count).sqrt() / self.noise_multiplier * (1 + Decimal("1e-38"))
        epsilon = units_up(epsilon_at(self.delta, mu))
        return together.replace(epsilon=epsilon, delta=cost_units(self.delta, ATTO))


@dataclass(frozen=True, slots=True)
class ExternalRandomizedResponse:
    """Randomised response over categories; the true one has odds exp(epsilon).

    With probability delta the true category is shown. Counted as any (epsilon, delta)-private
    mechanism."""

    epsilon: Decimal
    categories: int
    delta: Decimal | None

    def loss(self, count: int) -> Loss:
        return ExternalGeneric(self.epsilon, self.delta or Decimal(0)).loss(count)


@dataclass(frozen=True, slots=True)
class ExternalLeakyInput:
    """Shows its input with probability delta, and otherwise nothing."""

    delta: Decimal

    def loss(self, count: int) -> Loss:
        units = cost_units(self.delta, ATTO)
        nothing = (0,) * len(ORDERS)
        return Loss(0, units, 0, units, 0, 0, nothing).times(count)


ExternalRelease = (
    ExternalLaplace
    | ExternalGeneric
    | ExternalZcdp
    | ExternalGaussian
    | ExternalRandomizedResponse
    | ExternalLeakyInput
)
