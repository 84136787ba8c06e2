"""Events of the calculator, and the numbers each accountant reads from them.

An event is a mechanism with its parameters under the stated neighbouring relation. `epsilon` and
`failure` state that it is (epsilon, failure)-private on its own (None: it has no such epsilon).
`rho` states that it is rho-zCDP, `mu` that it is mu-GDP, and `renyi` bounds its Renyi divergence,
each except with probability `failure`. `for_group` returns the event for a group of `size` records,
and the number of times it occurs.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, TypeAlias

from typing_extensions import override

from app.accounting.calculator.figures import DoesNotApply
from app.accounting.curves import renyi_curves
from app.accounting.curves.gaussian import pure_mu
from app.accounting.curves.sampled import sampled_gaussian

ZERO = Decimal(0)
ONE = Decimal(1)


@dataclass(frozen=True, slots=True)
class Pure:
    """Any epsilon-private mechanism; nothing else is known about it."""

    name: ClassVar[str] = "pure"
    epsilon: Decimal

    @property
    def failure(self) -> Decimal:
        return ZERO

    def rho(self) -> Decimal:
        return renyi_curves.pure_rho(self.epsilon)

    def mu(self) -> Decimal:
        return pure_mu(self.epsilon)

    def renyi(self, order: Decimal) -> Decimal:
        return renyi_curves.pure(self.epsilon, order)

    def for_group(self, size: int) -> "tuple[Event, int]":
        return type(self)(self.epsilon * size), 1


class Laplace(Pure):
    """Laplace noise of scale (L1 sensitivity) / epsilon; a group of k moves the answer k times as
    far."""

    __slots__ = ()
    name: ClassVar[str] = "laplace"

    @override
    def rho(self) -> Decimal:
        return renyi_curves.laplace_rho(self.epsilon)

    @override
    def renyi(self, order: Decimal) -> Decimal:
        return renyi_curves.laplace(self.epsilon, order)


class Exponential(Pure):
    """Exponential mechanism: bounded range. For neighbours, the logarithm of the ratio of both
    output laws takes values in an interval of length epsilon. For a group of k the length is k
    epsilon."""

    __slots__ = ()
    name: ClassVar[str] = "exponential"

    @override
    def rho(self) -> Decimal:
        return renyi_curves.bounded_range_rho(self.epsilon)

    @override
    def renyi(self, order: Decimal) -> Decimal:
        return renyi_curves.bounded_range(self.epsilon, order)


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(Pure):
    """Discrete Laplace noise on an answer that moves by at most `steps` integer steps."""

    name: ClassVar[str] = "discrete_laplace"
    steps: int

    @override
    def renyi(self, order: Decimal) -> Decimal:
        return renyi_curves.discrete_laplace(self.epsilon, Decimal(self.steps), order)

    @override
    def for_group(self, size: int) -> "tuple[Event, int]":
        return DiscreteLaplace(self.epsilon * size, self.steps * size), 1


@dataclass(frozen=True, slots=True)
class RandomizedResponse(Pure):
    """Randomised response of one person, whose true answer is replaced by another. The k persons
    of a group answer independently, so a group costs k such events."""

    name: ClassVar[str] = "randomized_response"
    categories: int

    @override
    def renyi(self, order: Decimal) -> Decimal:
        return renyi_curves.randomized_response(self.epsilon, self.categories, order)

    @override
    def for_group(self, size: int) -> "tuple[Event, int]":
        return self, size


@dataclass(frozen=True, slots=True)
class Generic(Pure):
    """(epsilon, delta)-private: epsilon-private except for an event of probability delta.

    Kairouz, Oh and Viswanath 2015. A group's delta is delta (e^(k epsilon) - 1)/(e^epsilon - 1)."""

    name: ClassVar[str] = "generic"
    delta: Decimal

    @property
    @override
    def failure(self) -> Decimal:
        return self.delta

    @override
    def mu(self) -> Decimal:
        return pure_mu(self.epsilon)

    @override
    def for_group(self, size: int) -> "tuple[Event, int]":
        if size == 1 or self.delta == 0:
            return Generic(self.epsilon * size, self.delta), 1
        grown = self.epsilon * size
        if grown > 10**6:
            return Generic(grown, ONE), 1
        if self.epsilon == 0:
            return Generic(grown, min(ONE, self.delta * size)), 1
        factor = (grown.exp() - 1) / (self.epsilon.exp() - 1) * (1 + Decimal("1e-20"))
        return Generic(grown, min(ONE, self.delta * factor)), 1


@dataclass(frozen=True, slots=True)
class Concentrated:
    """Any rho-zCDP mechanism; a group of k is k^2 rho-zCDP (Bun and Steinke 2016)."""

    name: ClassVar[str] = "zcdp"
    parameter: Decimal

    @property
    def epsilon(self) -> Decimal | None:
        return None

    @property
    def failure(self) -> Decimal:
        return ZERO

    def rho(self) -> Decimal:
        return self.parameter

    def mu(self) -> Decimal:
        raise DoesNotApply("a zcdp event has no bound in Gaussian differential privacy")

    def renyi(self, order: Decimal) -> Decimal:
        return renyi_curves.gaussian(self.rho(), order)

    def for_group(self, size: int) -> "tuple[Event, int]":
        return Concentrated(self.parameter * size * size), 1


class Gaussian(Concentrated):
    """Gaussian noise; the parameter is its standard deviation over the L2 sensitivity."""

    __slots__ = ()
    name: ClassVar[str] = "gaussian"

    @override
    def rho(self) -> Decimal:
        return 1 / (2 * self.parameter * self.parameter)

    @override
    def mu(self) -> Decimal:
        return 1 / self.parameter

    @override
    def for_group(self, size: int) -> "tuple[Event, int]":
        return type(self)(self.parameter / size), 1


class DiscreteGaussian(Gaussian):
    """Discrete Gaussian noise: the same rho bounds it (Canonne, Kamath and Steinke 2020)."""

    __slots__ = ()
    name: ClassVar[str] = "discrete_gaussian"

    @override
    def mu(self) -> Decimal:
        raise DoesNotApply("discrete Gaussian noise has no exact mu")


@dataclass(frozen=True, slots=True)
class SampledGaussian(Gaussian):
    """Gaussian noise on a fresh, secret Poisson sample.

    A sample costs no more than all rows. For rho, for mu and for groups no smaller cost is known
    than that of the noise on all rows, so that one is taken."""

    sampling_rate: Decimal

    @override
    def renyi(self, order: Decimal) -> Decimal:
        return sampled_gaussian(self.sampling_rate, self.parameter, order)

    @override
    def for_group(self, size: int) -> "tuple[Event, int]":
        return (self, 1) if size == 1 else (Gaussian(self.parameter / size), 1)


Event: TypeAlias = Pure | Concentrated
