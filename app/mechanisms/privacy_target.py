"""Privacy or accuracy that a query requests; a mechanism is prepared from it."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from app.accounting.loss import Loss


def _always(loss: Loss) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class GradientDescentParameters:
    """Parameters of gradient descent. None selects the public default."""

    steps: int | None = None
    clipping_norm: float | None = None
    learning_rate: float | None = None
    sampling_rate: float | None = None
    expected_rows: int | None = None


@dataclass(frozen=True, slots=True)
class ProposedBoundParameters:
    """Parameters of propose-test-release. None selects the public default."""

    bound: float | None = None  # upper bound on local sensitivity; None: the mechanism chooses one
    test_share: Fraction | None = None
    proposal_share: Fraction | None = None


@dataclass(frozen=True, slots=True)
class SmoothSensitivityParameters:
    """Noise law and parameters for smooth sensitivity. None selects the value with least noise."""

    noise: str | None = None
    beta: float | None = None
    gamma: float | None = None
    degrees: int | None = None
    sigma: float | None = None
    interval_epsilon: Decimal | None = None  # the part of epsilon that pays for an interval


@dataclass(frozen=True, slots=True)
class PrivacyTarget:
    """Requested privacy or accuracy: exactly one of epsilon, rho, half_width; delta is optional."""

    epsilon: Decimal | None = None
    delta: Decimal | None = None
    rho: Decimal | None = None
    half_width: float | None = None
    confidence: float = 0.95  # confidence of the half width
    noise: str | None = None  # name of the noise law, if the analyst chose one
    descent: GradientDescentParameters = GradientDescentParameters()
    proposal: ProposedBoundParameters | None = (
        None  # None unless the analyst chose propose_test_release
    )
    bound_share: Fraction | None = None  # share of a noisy bound; None: public default
    ordered: bool | None = None  # for a stable value; None unless the analyst set it
    smooth: SmoothSensitivityParameters | None = (
        None  # None unless the analyst chose smooth sensitivity
    )
    # true if every account that will pay can count this loss
    payable: Callable[[Loss], bool] = _always


class CannotServe(Exception):
    """Raised when a mechanism cannot meet the request; the argument is the reason, shown to
    people."""


class UnsupportedShape(CannotServe):
    """Raised when a mechanism does not serve this kind of query."""
