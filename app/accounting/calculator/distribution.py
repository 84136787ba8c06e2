"""Privacy loss distributions, through the optional package dp-accounting, imported at first use.

Theorem: Koskela, Jälkö and Honkela 2020; Zhu, Dong and Wang 2022 (dominating pairs compose, also
for adaptive answers, if the parameters are fixed in advance). The accountant of dp-accounting 0.6.0
is not used, for three defects: it forgets the count of randomised responses, treats NaN and
negative costs as zero, and doubles Gaussian sensitivity under replace_one. This module uses only
single distributions made from checked numbers, and composes them itself. It rejects a result that
is not finite. Losses are rounded up to a grid no coarser than 1e-4.
Assumes: Laplace noise on one number.
Rounding: floats are moved to the safe side by hand. Fourier transforms err by about 1e-16 for each
composed event. A margin well above is subtracted from the delta, and a delta too small for the
margin is refused.
"""

import math
from decimal import ROUND_CEILING, Decimal
from importlib import import_module
from typing import Any

from app.accounting.calculator.event_list import GRID, Composition
from app.accounting.calculator.events import (
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    Pure,
    RandomizedResponse,
    SampledGaussian,
)
from app.accounting.calculator.figures import Bound, DoesNotApply
from app.accounting.calculator.renyi import converted_epsilon

THEOREM = "privacy loss distribution (Zhu, Dong and Wang 2022; computed by dp-accounting)"
NOT_INSTALLED = "the package dp-accounting is not installed: pip install 'bursar-server[pld]'"
DISCRETISATION_MAX = Decimal("1e-4")
DISTINCT_MAX = 10
COUNT_MAX = 10**6
CELLS_MAX = 400_000  # limit on the cells of all single distributions, and of the composed one
_CELLS_AIM = 200_000
_MARGIN, _MARGIN_EACH = Decimal("1e-12"), Decimal("3e-14")
STEPS_MAX = 10_000  # steps of discrete Laplace noise; beyond, only its epsilon is used
_WIDTH_MIN = Decimal("1e-12")
_STAGE = 16  # compositions at once; for more, the package would allocate far too much memory
_ULP = 1e-15


def epsilon_at(composition: Composition, delta: Decimal) -> Bound:
    composition.delta_left(delta)  # raises if no delta is left
    margin = _margin(composition)
    if margin * 10 > delta:
        raise DoesNotApply(
            "the delta is too small, or there are too many events, for float Fourier transforms"
        )
    composed, interval = _composed(composition)
    value = composed.get_epsilon_for_delta(float((delta - margin) * (1 - Decimal(_ULP))))
    return _checked(value, interval, least=0.0, most=math.inf)


def delta_at(composition: Composition, epsilon: Decimal) -> Bound:
    if composition.failure >= 1:
        return Bound(Decimal(1), exact=True)
    composed, interval = _composed(composition)
    value = float(composed.get_delta_for_epsilon(_down(epsilon))) + float(_margin(composition))
    return _checked(min(value, 1.0), interval, least=0.0, most=1.0)


def _margin(composition: Composition) -> Decimal:
    return _MARGIN + _MARGIN_EACH * composition.event_count


def _checked(value: float, interval: float, *, least: float, most: float) -> Bound:
    if not least <= value <= most or not math.isfinite(value):  # false for NaN
        raise DoesNotApply("the distribution gives no finite bound")
    return Bound(Decimal(value) * (1 + Decimal(_ULP)), extras={"discretisation": interval})


def _composed(composition: Composition) -> tuple[Any, float]:
    _must_be_small(composition)
    interval = _interval(composition)
    package = _package()
    composed = None
    for event, count in composition.parts:
        part = _self_composed(_distribution(package, event, interval), count)
        composed = part if composed is None else composed.compose(part)
    return composed, interval


def _package() -> Any:
    try:
        return import_module("dp_accounting.pld.privacy_loss_distribution")
    except ImportError:
        raise DoesNotApply(NOT_INSTALLED) from None


def _must_be_small(composition: Composition) -> None:
    if len(composition.parts) > DISTINCT_MAX:
        raise DoesNotApply(f"more than {DISTINCT_MAX} different events")
    if composition.event_count > COUNT_MAX:
        raise DoesNotApply(f"more than {COUNT_MAX} events")
    for event, _ in composition.parts:
        if isinstance(event, DiscreteGaussian):
            raise DoesNotApply("the distribution of discrete Gaussian noise depends on the steps")
        if not isinstance(event, Gaussian | Pure):
            raise DoesNotApply(f"a {event.name} event has no distribution")
    if composition.sampled and composition.neighbours == "replace_one":
        raise DoesNotApply("amplification by Poisson sampling is for add_remove only")


def _interval(composition: Composition) -> float:
    """The grid of losses: as fine as a bounded number of cells allows, and no coarser than 1e-4."""
    widths = [(_width(event), count) for event, count in composition.parts]
    single = sum((width for width, _ in widths), Decimal(0))
    most = sum((width * count for width, count in widths), Decimal(0))
    tail = Decimal("1e-16")
    likely = min(converted_epsilon(composition.renyi(order), order, tail) for order in GRID)
    width = max(single, min(most, 2 * likely), _WIDTH_MIN)
    if width > CELLS_MAX * DISCRETISATION_MAX:
        raise DoesNotApply("the loss is too large for a grid of 1e-4")
    cells = max(_CELLS_AIM // len(composition.parts), _CELLS_AIM // 4)
    interval = min(DISCRETISATION_MAX, width / cells)
    steps = [_step(event) for event, _ in composition.parts]
    exact = [step for step in steps if step]
    if exact:  # the smallest losses that are atoms then lie on the grid
        in_step = (min(exact) / interval).to_integral_value(ROUND_CEILING)
        return min(_up(min(exact) / in_step), float(DISCRETISATION_MAX))
    return float(interval)


def _width(event: Event) -> Decimal:
    """The range of one event's losses; for a Gaussian except with probability exp(-50)."""
    return 22 * event.mu() if event.epsilon is None else 2 * event.epsilon


def _step(event: Event) -> Decimal | None:
    """The unit that divides all losses of a discrete mechanism, or None."""
    match event:
        case Laplace() | Concentrated():
            return None
        case DiscreteLaplace() if event.steps <= STEPS_MAX:
            return event.epsilon / event.steps
        case _:
            return event.epsilon


def _distribution(package: Any, event: Event, interval: float) -> Any:
    options = {"pessimistic_estimate": True, "value_discretization_interval": interval}
    match event:
        case Laplace():
            return package.from_laplace_mechanism(1 / _up(event.epsilon), **options)
        case SampledGaussian():
            rate = min(_up(event.sampling_rate), 1.0)
            deviation = _down(event.parameter)
            return package.from_gaussian_mechanism(deviation, sampling_prob=rate, **options)
        case Gaussian():
            return package.from_gaussian_mechanism(_down(event.parameter), **options)
        case Pure():
            masses = _masses(event, Decimal(interval))
            return package.PrivacyLossDistribution.create_from_rounded_probability(
                {cell: float(mass) for cell, mass in masses.items()},
                min(_up(event.failure), 1.0),
                interval,
                symmetric=True,
            )
        case _:
            raise DoesNotApply(f"a {event.name} event has no distribution")


def _masses(event: Pure, interval: Decimal) -> dict[int, Decimal]:
    """Distribution of a discrete loss, with its step raised to a whole number of cells.

    With the larger step the mechanism has less noise, so the true one is a post-processing of
    it."""
    step = _step(event)
    if not step:  # epsilon 0: only the leak remains
        return {0: 1 - event.failure}
    cells = int((step / interval).to_integral_value(ROUND_CEILING))
    step = cells * interval
    p = (-step).exp()
    if isinstance(event, RandomizedResponse):
        law = {1: Decimal(1), 0: p * (event.categories - 2), -1: p}
    elif isinstance(event, DiscreteLaplace) and event.steps <= STEPS_MAX:
        d = event.steps
        law = {d: Decimal(1), -d: p**d}
        law |= {d - 2 * x: (1 - p) * p**x for x in range(1, d)}
    else:
        law = {1: 1 - event.failure, -1: p * (1 - event.failure)}
    total = sum(law.values()) / (1 - event.failure)
    return {cells * loss: mass / total for loss, mass in law.items() if mass}


def _self_composed(distribution: Any, count: int) -> Any:
    """Compose the distribution `count` times with itself, in stages of at most sixteen."""
    composed = None
    while count:
        count, rest = divmod(count, _STAGE)
        if rest:
            part = distribution.self_compose(rest) if rest > 1 else distribution
            composed = part if composed is None else composed.compose(part)
        if count:
            distribution = distribution.self_compose(_STAGE)
    return composed


def _up(value: Decimal) -> float:
    return math.nextafter(float(value), math.inf) if value else 0.0


def _down(value: Decimal) -> float:
    return math.nextafter(float(value), 0.0)
