"""Smooth sensitivity: a statistic of ranks with noise scaled to how much the table at hand bears.

Theorem: Nissim, Raskhodnikova and Smith 2007, see `calibrated_noise.py` for what each noise bears
and `rank_bound.py` for S. Assumes what `queries/shapes/ranks/shape.py` says of neighbours. The
price is fixed from epsilon, delta or rho alone; S, and so the scale of the noise, depends on rows
and is never told: there is no interval, unless a part of epsilon is spent on telling S with noise
(`scale_disclosure.py`), and no half width can be promised. What is told is rounded to a public grid
and clamped to what the statistic can be: post-processing.
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
from app.mechanisms.smooth_sensitivity.release import ScaledRelease
from app.mechanisms.smooth_sensitivity.scale_disclosure import Disclosure
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
# Whose exact numbers take long: left out where another is surely less by what it comes to about.
ABOUT = {approximate_noise.GAUSSIAN: approximate_noise.gaussian_even}
SURELY = 0.99
OF_NOISE = {  # which noises a parameter belongs to
    "gamma": {pure_noise.CAUCHY},
    "degrees": {pure_noise.STUDENT},
    "sigma": {
        zcdp_noise.LAPLACE_LOG_NORMAL,
        zcdp_noise.UNIFORM_LOG_NORMAL,
        zcdp_noise.ARSINH_NORMAL,
    },
}
GRID_BITS = 30  # the bounds are at least about 2^30 steps of the grid apart


def prepare(shape: RankShape, asked: PrivacyTarget) -> "SmoothRelease":
    if shape.candidates:
        raise Invalid.field("/query/candidates", "none: smooth sensitivity answers with any value")
    if asked.half_width is not None:
        raise CannotServe(f"no half width can be promised: {DEPENDS}")
    moves = 1 if shape.fixed else shape.moves
    return SmoothRelease(*scaled_noise(asked, moves, alone=shape.alone), shape)


def scaled_noise(
    asked: PrivacyTarget, moves: int, *, alone: bool
) -> tuple[CalibratedNoise, Disclosure | None]:
    """The noise, and what tells its scale if that is paid for; `alone` where nothing else would
    answer the question."""
    told = _interval_units(asked)
    noise = _noise(asked, moves, told, alone=alone)
    return noise, Disclosure(told, noise.beta) if told else None


def _interval_units(asked: PrivacyTarget) -> int:
    """What is spent on an interval, of epsilon."""
    if asked.smooth is None or asked.smooth.interval_epsilon is None:
        return 0
    if asked.epsilon is None or asked.smooth.interval_epsilon >= asked.epsilon:
        raise Invalid.field(f"{POINTER}/interval_epsilon", "a part of the epsilon of the question")
    return cost_units(asked.smooth.interval_epsilon, PICO)


def _noise(asked: PrivacyTarget, moves: int, spent: int, *, alone: bool) -> CalibratedNoise:
    wish = asked.smooth
    if wish is None:
        # Beside a choice it is shown for what it is, with the noise that is most often the best.
        usual = SmoothSensitivityParameters(noise=pure_noise.STUDENT, degrees=2)
        wish = SmoothSensitivityParameters() if alone else usual
    names = _names(wish)
    wish = replace(wish, interval_epsilon=None)
    budget = _budget(asked, moves, spent)
    found: list[CalibratedNoise] = []
    reasons: list[Exception] = []
    for name in sorted(names, key=lambda name: name in ABOUT):
        try:
            if name in ABOUT and len(names) > 1:
                bar = ABOUT[name](budget, wish) * SURELY
                if any(each.even < bar and asked.payable(each.loss) for each in found):
                    continue
            found.append(NOISES[name](budget, wish))
        except (CannotServe, Invalid) as why:
            reasons.append(why)
        except ArithmeticError as why:
            unborne = Invalid.field(f"{POINTER}/beta", "smaller: no noise bears it at this loss")
            reasons.append(why if wish.beta is None else unborne)
    if not found:
        raise reasons[0]
    return min([each for each in found if asked.payable(each.loss)] or found, key=_even)


def _even(noise: CalibratedNoise) -> float:
    return noise.even


def _names(wish: SmoothSensitivityParameters) -> list[str]:
    names = list(NOISES) if wish.noise is None else [wish.noise]
    for parameter, owners in OF_NOISE.items():
        if getattr(wish, parameter) is not None:
            names = [name for name in names if name in owners]
            if not names:
                rule = f"only with the noise {' or '.join(sorted(owners))}"
                raise Invalid.field(f"{POINTER}/{parameter}", rule)
    return names


def _budget(asked: PrivacyTarget, moves: int, spent: int) -> NoiseBudget:
    if asked.epsilon is not None:
        epsilon = cost_units(asked.epsilon, PICO) - spent
        if epsilon < 1:
            raise Invalid.field(
                f"{POINTER}/interval_epsilon", "a part of the epsilon of the question"
            )
        if epsilon > EPSILON_MAX * PICO:
            raise Invalid.field("/privacy/epsilon", f"at most {EPSILON_MAX}, or there is no noise")
        if asked.delta is None:
            return NoiseBudget(epsilon, None, None, moves)
        delta = cost_units(asked.delta, ATTO)
        within = units_down(rho_limit(Decimal(epsilon) / PICO, Decimal(delta) / ATTO))
        rho = Fraction(within, PICO) if within > 0 else None
        return NoiseBudget(epsilon, (epsilon, delta), rho, moves)
    assert asked.rho is not None
    units = limit_units(asked.rho, PICO)
    if not 0 < units <= EPSILON_MAX**2 * PICO // 2:
        rule = f"at least 1e-12 and at most {EPSILON_MAX**2 // 2}"
        raise Invalid.field("/privacy/rho", rule)

    def fits(epsilon: int) -> bool:
        return pure_rho(epsilon) <= units

    near = pure_epsilon_near(units / PICO) * PICO
    pure = largest_satisfying(fits, 1, EPSILON_MAX * PICO, near) if fits(1) else None
    return NoiseBudget(pure, None, Fraction(units, PICO), moves)


class Reading(NamedTuple):
    """What the answer is made of."""

    windows: tuple[Window, ...]
    total: int | None  # of the values between two ranks


@dataclass(frozen=True, slots=True)
class SmoothRelease(ScaledRelease):
    """A statistic of ranks and the noise that goes on it."""

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
        """How many bits the grid of answers has below a step of the column."""
        return max(0, GRID_BITS - self.shape.width.bit_length())

    def read(self, data: DataReader) -> Reading:
        windows = self.shape.windows(data.steps, data.exact, self.reach + 1)
        total = None
        if self.shape.statistic == "mean_between":
            total = sum_between(self.shape, windows, data.exact)
        return Reading(windows, total)

    def answer(
        self, exact: Reading, noise: RandomSource, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        smooth = smooth_bound(self.shape, exact.windows, self.noise.beta)
        steps = self.noise.release(centre_of(self.shape, exact), smooth, self.finer, noise)
        value = Fraction(steps) / 2**self.finer
        interval = None
        if self.disclosure is not None:
            # Half a step of the grid more, for what was rounded.
            half = self.disclosure.half_width(smooth, self.noise, confidence, noise)
            reach = Fraction(min(half, 1e300)) + Fraction(1, 2)
            figure = Estimate(*map(self._told, (value, value - reach, value + reach)))
            interval = figure.interval(confidence)
        return {"value": self._told(value), "interval": interval}

    def _told(self, steps: Fraction) -> float:
        """In the column's own unit, clamped to what the statistic can be."""
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


def centre_of(shape: RankShape, exact: Reading) -> Fraction:
    """The statistic without noise, in steps."""
    windows = exact.windows
    places = [rule(window.count) for rule, window in zip(shape.ranks, windows, strict=True)]
    if shape.statistic == "mean_between":
        assert exact.total is not None
        return Fraction(exact.total, places[1] - places[0] + 1)
    values = [window[place] for window, place in zip(windows, places, strict=True)]
    return Fraction(values[-1] - (values[0] if shape.statistic == "distance" else 0))
