"""Smooth sensitivity for rank statistics: noise scaled to the stability of the actual table.

Theorem: Nissim, Raskhodnikova and Smith 2007; see `calibrated_noise.py` for the noise laws and
`rank_bound.py` for S.
Assumes: the neighbours of `queries/shapes/ranks/shape.py`. The price is fixed from epsilon, delta
or rho alone. S, and so the noise scale, depends on rows and is never released. So no half width can
be promised, and there is no interval, unless a part of epsilon pays for a noisy release of S
(`scale_disclosure.py`). The answer is rounded to a public grid and clamped to the statistic's
possible values: post-processing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from app.accounting.curves.conversion import rho_limit
from app.accounting.curves.curve_units import pure_rho
from app.accounting.precise import units_down
from app.accounting.units import ATTO, PICO, cost_units, limit_units
from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.noise.laplace import pure_epsilon_near
from app.mechanisms.privacy_target import CannotServe, PrivacyTarget, SmoothSensitivityParameters
from app.mechanisms.release import DataReader, RandomSource
from app.mechanisms.smooth_sensitivity import approximate_noise, pure_noise, zcdp_noise
from app.mechanisms.smooth_sensitivity.calibrated_noise import (
    DEPENDS,
    EPSILON_MAX,
    POINTER,
    CalibratedNoise,
    NoiseBudget,
)
from app.mechanisms.smooth_sensitivity.rank_bound import rank_work, reach_of, smooth_bound
from app.mechanisms.smooth_sensitivity.scale_disclosure import Disclosure
from app.mechanisms.smooth_sensitivity.scaled_release import ScaledRelease
from app.mechanisms.unit_search import largest_satisfying
from app.mechanisms.work import Work
from app.queries import Query
from app.queries.estimates import Estimate
from app.queries.shapes.ranks.shape import RankShape
from app.queries.shapes.ranks.sum_between import sum_between
from app.queries.shapes.ranks.window import Window
from app.queries.tally import Tally

NOISES: dict[str, Callable[[NoiseBudget, SmoothSensitivityParameters], CalibratedNoise]] = {
    pure_noise.STUDENT: pure_noise.student_t,
    pure_noise.CAUCHY: pure_noise.cauchy,
    approximate_noise.LAPLACE: approximate_noise.laplace,
    approximate_noise.GAUSSIAN: approximate_noise.gaussian,
    zcdp_noise.LAPLACE_LOG_NORMAL: zcdp_noise.laplace_log_normal,
    zcdp_noise.UNIFORM_LOG_NORMAL: zcdp_noise.uniform_log_normal,
    zcdp_noise.ARSINH_NORMAL: zcdp_noise.arsinh_normal,
}
# Noise laws whose exact calibration is slow, with a fast approximation. They are skipped if another
# law is surely better by the approximation.
ABOUT = {approximate_noise.GAUSSIAN: approximate_noise.gaussian_even}
SURELY = 0.99
OF_NOISE = {  # noise laws that use each parameter
    "gamma": {pure_noise.CAUCHY},
    "degrees": {pure_noise.STUDENT},
    "sigma": {
        zcdp_noise.LAPLACE_LOG_NORMAL,
        zcdp_noise.UNIFORM_LOG_NORMAL,
        zcdp_noise.ARSINH_NORMAL,
    },
}
GRID_BITS = 30  # the bounds are at least about 2^30 steps of the grid apart


def prepare(shape: RankShape, target: PrivacyTarget) -> "SmoothRelease":
    if shape.candidates:
        raise Invalid.field(
            "/query/candidates", "must be absent: smooth sensitivity answers with any value"
        )
    if target.half_width is not None:
        raise CannotServe(f"no half width can be promised: {DEPENDS}")
    moves = 1 if shape.fixed else shape.moves
    return SmoothRelease(*scaled_noise(target, moves, alone=shape.alone), shape)


def scaled_noise(
    target: PrivacyTarget, moves: int, *, alone: bool
) -> tuple[CalibratedNoise, Disclosure | None]:
    """Calibrated noise, and the disclosure of its scale if the analyst pays for it.

    `alone` is true if no other mechanism answers the query."""
    interval_units = _interval_units(target)
    noise = _noise(target, moves, interval_units, alone=alone)
    return noise, Disclosure(interval_units, noise.beta) if interval_units else None


def _interval_units(target: PrivacyTarget) -> int:
    """Units of epsilon that pay for an interval."""
    if target.smooth is None or target.smooth.interval_epsilon is None:
        return 0
    if target.epsilon is None or target.smooth.interval_epsilon >= target.epsilon:
        raise Invalid.field(f"{POINTER}/interval_epsilon", "must be less than the query's epsilon")
    return cost_units(target.smooth.interval_epsilon, PICO)


def _noise(target: PrivacyTarget, moves: int, spent: int, *, alone: bool) -> CalibratedNoise:
    parameters = target.smooth
    if parameters is None:
        # If the analyst may choose other mechanisms, show this one with the noise that is most
        # often best.
        usual = SmoothSensitivityParameters(noise=pure_noise.STUDENT, degrees=2)
        parameters = SmoothSensitivityParameters() if alone else usual
    names = _names(parameters)
    parameters = replace(parameters, interval_epsilon=None)
    budget = _budget(target, moves, spent)
    candidates: list[CalibratedNoise] = []
    reasons: list[Exception] = []
    for name in sorted(names, key=lambda name: name in ABOUT):
        try:
            if name in ABOUT and len(names) > 1:
                bar = ABOUT[name](budget, parameters) * SURELY
                if any(
                    candidate.even < bar and target.payable(candidate.loss)
                    for candidate in candidates
                ):
                    continue
            candidates.append(NOISES[name](budget, parameters))
        except (CannotServe, Invalid) as why:
            reasons.append(why)
        except ArithmeticError as why:
            too_large = Invalid.field(
                f"{POINTER}/beta", "must be smaller: no noise supports it at this loss"
            )
            reasons.append(why if parameters.beta is None else too_large)
    if not candidates:
        raise reasons[0]
    return min(
        [candidate for candidate in candidates if target.payable(candidate.loss)] or candidates,
        key=_even,
    )


def _even(noise: CalibratedNoise) -> float:
    return noise.even


def _names(parameters: SmoothSensitivityParameters) -> list[str]:
    names = list(NOISES) if parameters.noise is None else [parameters.noise]
    for parameter, owners in OF_NOISE.items():
        if getattr(parameters, parameter) is not None:
            names = [name for name in names if name in owners]
            if not names:
                rule = f"allowed only with the noise {' or '.join(sorted(owners))}"
                raise Invalid.field(f"{POINTER}/{parameter}", rule)
    return names


def _budget(target: PrivacyTarget, moves: int, spent: int) -> NoiseBudget:
    if target.epsilon is not None:
        epsilon = cost_units(target.epsilon, PICO) - spent
        if epsilon < 1:
            raise Invalid.field(
                f"{POINTER}/interval_epsilon", "must be less than the query's epsilon"
            )
        if epsilon > EPSILON_MAX * PICO:
            raise Invalid.field(
                "/privacy/epsilon", f"must be at most {EPSILON_MAX}: above there is no noise"
            )
        if target.delta is None:
            return NoiseBudget(epsilon, None, None, moves)
        delta = cost_units(target.delta, ATTO)
        within = units_down(rho_limit(Decimal(epsilon) / PICO, Decimal(delta) / ATTO))
        rho = Fraction(within, PICO) if within > 0 else None
        return NoiseBudget(epsilon, (epsilon, delta), rho, moves)
    assert target.rho is not None
    units = limit_units(target.rho, PICO)
    if not 0 < units <= EPSILON_MAX**2 * PICO // 2:
        rule = f"must be at least 1e-12 and at most {EPSILON_MAX**2 // 2}"
        raise Invalid.field("/privacy/rho", rule)

    def fits(epsilon: int) -> bool:
        return pure_rho(epsilon) <= units

    near = pure_epsilon_near(units / PICO) * PICO
    pure = largest_satisfying(fits, 1, EPSILON_MAX * PICO, near) if fits(1) else None
    return NoiseBudget(pure, None, Fraction(units, PICO), moves)


class RankReading(NamedTuple):
    """Input of the answer."""

    windows: tuple[Window, ...]
    total: int | None  # sum of the values between two ranks


@dataclass(frozen=True, slots=True)
class SmoothRelease(ScaledRelease):
    """A rank statistic and its noise."""

    shape: RankShape

    @property
    def tally(self) -> Tally:
        return self.shape.tally

    @property
    def work(self) -> Work:
        return rank_work(self.shape, self.reach)

    @property
    def reach(self) -> int:
        return reach_of(self.shape, self.noise.beta)

    @property
    def finer(self) -> int:
        """Bits by which the grid of answers is finer than a step of the column."""
        return max(0, GRID_BITS - self.shape.width.bit_length())

    def read(self, data: DataReader) -> RankReading:
        windows = self.shape.windows(data.steps, data.exact, self.reach + 1)
        total = None
        if self.shape.statistic == "mean_between":
            total = sum_between(self.shape, windows, data.exact)
        return RankReading(windows, total)

    def answer(
        self,
        exact: RankReading,
        noise: RandomSource,
        *,
        query: Query,
        card: Card,
        confidence: float,
    ) -> dict[str, Any]:
        smooth = smooth_bound(self.shape, exact.windows, self.noise.beta)
        steps = self.noise.release(centre_of(self.shape, exact), smooth, self.finer, noise)
        value = Fraction(steps) / 2**self.finer
        interval = None
        if self.disclosure is not None:
            # Half a step of the grid more covers rounding.
            half = self.disclosure.half_width(smooth, self.noise, confidence, noise)
            reach = Fraction(min(half, 1e300)) + Fraction(1, 2)
            figure = Estimate(*map(self._in_units, (value, value - reach, value + reach)))
            interval = figure.interval(confidence)
        return {"value": self._in_units(value), "interval": interval}

    def _in_units(self, steps: Fraction) -> float:
        """Value in the column's own unit, clamped to the statistic's possible values."""
        low, high = self.shape.bounds
        if self.shape.statistic == "distance":
            low, high = 0, high - low
        inside = min(max(steps, Fraction(low)), Fraction(high))
        return float(inside / Fraction(2) ** self.shape.grid_exponent)

    def describe(self) -> dict[str, Any]:
        grid = 2.0 ** -(self.shape.grid_exponent + self.finer)
        return self.described(reach=self.reach, grid=grid)

    def ledger_entry(self) -> dict[str, Any]:
        fixed = self.shape.fixed
        return self.recorded(moves=1 if fixed else self.shape.moves, fixed=fixed)


def centre_of(shape: RankShape, exact: RankReading) -> Fraction:
    """The statistic without noise, in steps."""
    windows = exact.windows
    ranks = [rule(window.count) for rule, window in zip(shape.ranks, windows, strict=True)]
    if shape.statistic == "mean_between":
        assert exact.total is not None
        return Fraction(exact.total, ranks[1] - ranks[0] + 1)
    values = [window[rank] for window, rank in zip(windows, ranks, strict=True)]
    return Fraction(values[-1] - (values[0] if shape.statistic == "distance" else 0))
