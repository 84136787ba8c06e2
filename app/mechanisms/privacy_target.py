"""How much privacy, or how much accuracy, a question asks for: a mechanism is prepared from it."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from app.accounting.loss import Loss


def _always(loss: Loss) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Descent:
    """How gradient descent is to go; what is None has a public default."""

    steps: int | None = None
    clipping_norm: float | None = None
    learning_rate: float | None = None
    sampling_rate: float | None = None
    expected_rows: int | None = None


@dataclass(frozen=True, slots=True)
class Proposal:
    """What propose-test-release is to be tried with; what is None has a public default."""

    bound: float | None = None  # on the local sensitivity; None to have one chosen
    test_share: Fraction | None = None
    proposal_share: Fraction | None = None


@dataclass(frozen=True, slots=True)
class SmoothWish:
    """Which noise goes on a smooth sensitivity, and how; what is None is chosen for least noise."""

    noise: str | None = None
    beta: float | None = None
    gamma: float | None = None
    degrees: int | None = None
    sigma: float | None = None
    interval_epsilon: Decimal | None = None  # the part of epsilon that buys an interval


@dataclass(frozen=True, slots=True)
class Asked:
    """One of epsilon, rho and half_width is given; a delta may go with any of them."""

    epsilon: Decimal | None = None
    delta: Decimal | None = None
    rho: Decimal | None = None
    half_width: float | None = None
    confidence: float = 0.95  # of the half width
    noise: str | None = None  # as it was named
    descent: Descent = Descent()
    proposal: Proposal | None = None  # None unless propose_test_release was asked for
    bound_share: Fraction | None = None  # of a noisy bound; None for a public default
    ordered: bool | None = None  # of a stable value; None unless it was asked for
    smooth: SmoothWish | None = None  # given where smooth sensitivity was asked for
    payable: Callable[[Loss], bool] = _always  # can every account that will pay count this loss?


class CannotServe(Exception):
    """This mechanism cannot give what was asked for; the argument says why, for people."""


class OtherShape(CannotServe):
    """This mechanism is for other kinds of questions."""
