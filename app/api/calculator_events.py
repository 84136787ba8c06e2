"""Wire models of calculator events: one for each mechanism, and each as a target."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, TypeAdapter
from typing_extensions import TypedDict, override

from app.accounting.calculator import events
from app.accounting.calculator.events import Event
from app.accounting.calculator.inverse import Parameter
from app.api.http.wire import WireRequest
from app.planning.request import Epsilon, exact_amount

COUNT_MAX = 10**12


def _between(least: str, most: str, *, zero: bool = False) -> BeforeValidator:
    low, high = Decimal(least), Decimal(most)
    rule = f"{'0, or ' if zero else ''}from {least} to {most}"

    def read(value: object) -> Decimal:
        if zero and value == 0 and not isinstance(value, bool):
            return Decimal(0)
        amount = exact_amount(value)
        if not low <= amount <= high:
            raise ValueError(rule)
        return amount

    return BeforeValidator(read)


def _probability(*, zero: bool = False) -> BeforeValidator:
    rule = f"{'0, or ' if zero else ''}more than 0 (at least 1e-300) and less than 1"

    def read(value: object) -> Decimal:
        if zero and value == 0 and not isinstance(value, bool):
            return Decimal(0)
        amount = exact_amount(value)
        if not Decimal("1e-300") <= amount < 1:
            raise ValueError(rule)
        return amount

    return BeforeValidator(read)


EventCount = Annotated[int, Field(ge=1, le=COUNT_MAX)]
Categories = Annotated[int, Field(ge=2, le=10**6)]
StepCount = Annotated[int, Field(ge=1, le=10**9)]
Multiplier = Annotated[Decimal, _between("1e-6", "1e9"), Field(json_schema_extra={"examples": [2]})]
SamplingRate = Annotated[
    Decimal, _between("1e-12", "1"), Field(json_schema_extra={"examples": [0.01]})
]
Rho = Annotated[Decimal, _between("1e-12", "1e6"), Field(json_schema_extra={"examples": [0.01]})]
EpsilonOrZero = Annotated[
    Decimal, _between("1e-12", "9223372", zero=True), Field(json_schema_extra={"examples": [0.1]})
]
EventDelta = Annotated[Decimal, _probability(), Field(json_schema_extra={"examples": [1e-6]})]
EventDeltaOrZero = Annotated[
    Decimal, _probability(zero=True), Field(json_schema_extra={"examples": [1e-8]})
]


class _Laplace(WireRequest):
    mechanism: Literal["laplace"]

    def make(self, value: Decimal) -> Event:
        return events.Laplace(value)


class _Exponential(WireRequest):
    mechanism: Literal["exponential"]

    def make(self, value: Decimal) -> Event:
        return events.Exponential(value)


class _DiscreteLaplace(WireRequest):
    mechanism: Literal["discrete_laplace"]
    sensitivity: StepCount = 1

    def make(self, value: Decimal) -> Event:
        return events.DiscreteLaplace(value, self.sensitivity)


class _RandomizedResponse(WireRequest):
    mechanism: Literal["randomized_response"]
    categories: Categories

    def make(self, value: Decimal) -> Event:
        return events.RandomizedResponse(value, self.categories)


class _Gaussian(WireRequest):
    mechanism: Literal["gaussian"]
    sampling_rate: SamplingRate | None = None

    def make(self, value: Decimal) -> Event:
        if self.sampling_rate is None or self.sampling_rate == 1:
            return events.Gaussian(value)
        return events.SampledGaussian(value, self.sampling_rate)


class _DiscreteGaussian(WireRequest):
    mechanism: Literal["discrete_gaussian"]

    def make(self, value: Decimal) -> Event:
        return events.DiscreteGaussian(value)


class _Concentrated(WireRequest):
    mechanism: Literal["zcdp"]

    def make(self, value: Decimal) -> Event:
        return events.Concentrated(value)


class _WithEpsilon(WireRequest):
    epsilon: Epsilon
    count: EventCount = 1

    @property
    def amount(self) -> Decimal:
        return self.epsilon


class _WithNoise(WireRequest):
    noise_multiplier: Multiplier
    count: EventCount = 1

    @property
    def amount(self) -> Decimal:
        return self.noise_multiplier


class LaplaceEvent(_WithEpsilon, _Laplace):
    """Laplace noise of scale (L1 sensitivity) / epsilon."""


class ExponentialEvent(_WithEpsilon, _Exponential):
    """The exponential mechanism, or Gumbel noisy max, with bounded range epsilon."""


class DiscreteLaplaceEvent(_WithEpsilon, _DiscreteLaplace):
    """Integer Laplace noise; `sensitivity` in integer steps."""


class RandomizedResponseEvent(_WithEpsilon, _RandomizedResponse):
    """One of `categories` answers; the true one is exp(epsilon) times as likely as another."""


class GaussianEvent(_WithNoise, _Gaussian):
    """Gaussian noise; the multiplier is its standard deviation over the L2 sensitivity. With a
    `sampling_rate`, it acts on a fresh secret Poisson sample."""


class DiscreteGaussianEvent(_WithNoise, _DiscreteGaussian):
    """Integer Gaussian noise."""


class ConcentratedEvent(_Concentrated):
    """Any rho-zCDP mechanism."""

    rho: Rho
    count: EventCount = 1

    @property
    def amount(self) -> Decimal:
        return self.rho


class GenericEvent(WireRequest):
    """Any (epsilon, delta)-private mechanism."""

    mechanism: Literal["generic"]
    epsilon: EpsilonOrZero
    delta: EventDeltaOrZero
    count: EventCount = 1

    @property
    def amount(self) -> Decimal:
        return self.epsilon

    def make(self, value: Decimal) -> Event:
        return events.Generic(value, self.delta)


class _Target(WireRequest):
    """Total cost allowed for all events together, and the number of events."""

    epsilon: Epsilon
    delta: EventDelta
    count: EventCount

    @property
    def parameter(self) -> Parameter:
        return "epsilon"


class _NoiseTarget(_Target):
    @property
    @override
    def parameter(self) -> Parameter:
        return "noise_multiplier"


class LaplaceTarget(_Target, _Laplace):
    """Gives the largest epsilon of each event."""


class ExponentialTarget(_Target, _Exponential):
    """Gives the largest epsilon of each event."""


class DiscreteLaplaceTarget(_Target, _DiscreteLaplace):
    """Gives the largest epsilon of each event."""


class RandomizedResponseTarget(_Target, _RandomizedResponse):
    """Gives the largest epsilon of each event."""


class GaussianTarget(_NoiseTarget, _Gaussian):
    """Gives the smallest noise multiplier."""


class DiscreteGaussianTarget(_NoiseTarget, _DiscreteGaussian):
    """Gives the smallest noise multiplier."""


class ConcentratedTarget(_Target, _Concentrated):
    """Gives the largest rho of each event."""

    @property
    @override
    def parameter(self) -> Parameter:
        return "rho"


class GenericTarget(_Target):
    """Gives the largest epsilon of each event, which is private except with `event_delta`."""

    mechanism: Literal["generic"]
    event_delta: EventDeltaOrZero

    def make(self, value: Decimal) -> Event:
        return events.Generic(value, self.event_delta)


class _Named(TypedDict):
    """Only the name, so that an unknown mechanism is reported as an error of that field."""

    mechanism: Literal[
        "laplace",
        "gaussian",
        "randomized_response",
        "exponential",
        "discrete_laplace",
        "discrete_gaussian",
        "zcdp",
        "generic",
    ]


_NAMED = TypeAdapter(_Named)


def _known(value: Any) -> Any:
    _NAMED.validate_python(value)
    return value


AnyEvent = Annotated[
    LaplaceEvent
    | GaussianEvent
    | RandomizedResponseEvent
    | ExponentialEvent
    | DiscreteLaplaceEvent
    | DiscreteGaussianEvent
    | ConcentratedEvent
    | GenericEvent,
    Discriminator("mechanism"),
    BeforeValidator(_known),
]
AnyTarget = Annotated[
    LaplaceTarget
    | GaussianTarget
    | RandomizedResponseTarget
    | ExponentialTarget
    | DiscreteLaplaceTarget
    | DiscreteGaussianTarget
    | ConcentratedTarget
    | GenericTarget,
    Discriminator("mechanism"),
    BeforeValidator(_known),
]
