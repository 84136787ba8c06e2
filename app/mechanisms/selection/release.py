"""Choosing a public outcome by scores of range R: what the selection mechanisms share.

Cost: with d the distance of a score to the best, noise or coins of rate epsilon / R make a choice
epsilon-private, because all of them depend on differences of scores only and neighbours move two
scores apart by at most R (`queries/shapes/selection.py`). k choices one after the other, each among
the outcomes that are left, have epsilon / k each. Error: with probability 1 - alpha the choice is
at most (R / epsilon) ln(N / alpha) below the best of N, as P(choice is below by r) <= N
exp(-epsilon r / R). For k choices each is so near to the best that is left, all together, with
epsilon / k for epsilon and alpha / k for alpha.
Rounding: epsilon is the charged integer, and rates are exact fractions of it.
"""

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from typing_extensions import override

from app.accounting.loss import Loss
from app.accounting.units import PICO, cost_units, limit_units
from app.data.card import Card
from app.errors import Invalid
from app.mechanisms.privacy_target import CannotServe, PrivacyTarget
from app.mechanisms.release import OneTally, RandomSource
from app.mechanisms.selection.samplers import Pick
from app.mechanisms.unit_search import EPSILON_UNITS_MAX, largest_satisfying
from app.queries import Query
from app.queries.shapes.selection import SelectionShape
from app.queries.tally import Exact, Tally

RATE_MAX = 1000  # above, one step below the best has probability exp(-1000): no noise at all


@dataclass(frozen=True, slots=True)
class SelectionMechanism:
    """A way to choose: how an outcome is drawn, what it costs, and how far below the best it is."""

    kind: str
    theorem: str
    pick: Pick
    loss: Callable[[int, int], Loss]  # of the units of epsilon and the number of choices
    rho: Callable[[int, int], int]  # in units, of the same two
    # How far below the best a choice is, of R / epsilon, the number of outcomes, and alpha.
    regret: Callable[[float, int, float], float]
    noise: str | None = None  # as the analyst named it


def tail_bound(scale: float, outcomes: int, alpha: float) -> float:
    """(R / epsilon) ln(N / alpha); McSherry and Talwar 2007, and McKenna and Sheldon 2020."""
    return scale * math.log(outcomes / alpha)


@dataclass(frozen=True, slots=True)
class SelectionRelease(OneTally):
    """Which outcomes, chosen how, at what price."""

    law: SelectionMechanism
    shape: SelectionShape
    loss: Loss
    rank: int | None  # the rank aimed at, where there is one
    confidence: float

    @property
    @override
    def tally(self) -> Tally:
        return self.shape.tally

    @property
    @override
    def is_instant(self) -> bool:
        return True

    @property
    def theorem(self) -> str:
        return self.law.theorem

    @property
    def rate(self) -> Fraction:
        return _rate(self.shape, self.loss.epsilon)

    def answer(
        self, exact: Exact, noise: RandomSource, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        """The outcome, or a list of them in the order they were chosen; never a score."""
        scores = self.shape.scores(exact, self.rank or 0)
        if self.shape.picks is None:
            return {"value": self._shown(self.law.pick(scores, self.rate, noise)), "interval": None}
        left = list(range(len(scores)))
        value = []
        for _ in range(self.shape.picks):
            picked = self.law.pick(scores, self.rate, noise)
            del scores[picked]
            value.append(self._shown(left.pop(picked)))
        return {"value": value, "interval": None}

    def _shown(self, place: int) -> Any:
        outcome = self.shape.outcomes[place]
        return outcome.isoformat() if isinstance(outcome, datetime.date) else outcome

    def describe(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "kind": self.law.kind,
            "outcomes": len(self.shape.outcomes),
            "score_range": float(self.shape.score_range / self.shape.steps),
            "scale": float(1 / (self.rate * self.shape.steps)),
        }
        if self.law.noise is not None:
            told["noise"] = self.law.noise
        if self.shape.picks is not None:
            told["choices"] = self.shape.picks
        if self.rank is not None:
            told["rank"] = self.rank
        return told

    def ledger_entry(self) -> dict[str, Any]:
        return {
            "mechanism": self.law.kind,
            "outcomes": len(self.shape.outcomes),
            "score_range": str(self.shape.score_range),
            "choices": self.shape.picks or 1,
            **({} if self.law.noise is None else {"noise": self.law.noise}),
            **({} if self.rank is None else {"rank": self.rank}),
        }

    def expected_error(self, confidence: float) -> dict[str, Any]:
        steps = _regret(self.law, self.shape, self.loss.epsilon, confidence)
        return {self.shape.error: steps / float(self.shape.steps), "probability": confidence}

    @property
    def standard_deviations(self) -> tuple[float, ...]:
        return (_regret(self.law, self.shape, self.loss.epsilon, self.confidence),)


def prepare_by(
    law: SelectionMechanism, shape: SelectionShape, asked: PrivacyTarget
) -> SelectionRelease:
    """The choice that costs the asked epsilon, no more than the asked rho, or the least epsilon at
    which it is within the asked distance of the best."""
    if asked.epsilon is not None:
        epsilon = cost_units(asked.epsilon, PICO)
    elif asked.rho is not None:
        epsilon = _epsilon_within(law, limit_units(asked.rho, PICO), shape.picks or 1)
    else:
        assert asked.half_width is not None
        epsilon = _epsilon_for(law, shape, asked.half_width, asked.confidence)
    if _rate(shape, epsilon) > RATE_MAX:
        if asked.epsilon is None:
            raise CannotServe("so accurate that there would be no noise at all")
        raise Invalid.field("/privacy/epsilon", "so large that there would be no noise at all")
    error = _regret(law, shape, epsilon, asked.confidence)
    return SelectionRelease(
        law=law,
        shape=shape,
        loss=law.loss(epsilon, shape.picks or 1),
        rank=None if shape.rank is None else shape.rank(error),
        confidence=asked.confidence,
    )


def _rate(shape: SelectionShape, epsilon: int) -> Fraction:
    return Fraction(epsilon, PICO * shape.score_range * (shape.picks or 1))


def _regret(
    law: SelectionMechanism, shape: SelectionShape, epsilon: int, confidence: float
) -> float:
    alpha = (1.0 - confidence) / (shape.picks or 1)
    scale = float(1 / _rate(shape, epsilon))
    return law.regret(scale, len(shape.outcomes), alpha) * (1.0 + 1e-12)


def _epsilon_within(law: SelectionMechanism, rho: int, picks: int) -> int:
    """The largest epsilon whose rho is at most so many units."""

    def fits(epsilon: int) -> bool:
        return law.rho(epsilon, picks) <= rho

    if not fits(1):
        raise CannotServe("a rho so small that no choice is within it")
    return largest_satisfying(fits, 1, EPSILON_UNITS_MAX, _near(law, rho / PICO, picks) * PICO)


def _near(law: SelectionMechanism, rho: float, picks: int) -> float:
    """Near the epsilon of which so many choices have this rho: by secants of the logarithms, which
    are all but straight."""

    def excess(x: float) -> float:
        return math.log(law.rho(int(math.exp(x) * PICO), picks) / PICO / rho)

    x, over = (before := math.log(8.0 * rho * picks) / 2.0), (first := excess(before))
    x -= over / 2.0
    for _ in range(6):
        over = excess(x)
        if over == first or abs(over) < 1e-12:
            break
        x, before, first = x - over * (x - before) / (over - first), x, over
        x = max(-30.0, min(x, 15.0))
    return math.exp(x)


def _epsilon_for(
    law: SelectionMechanism, shape: SelectionShape, distance: float, confidence: float
) -> int:
    """The least epsilon whose bound is within the distance: it falls as epsilon grows."""
    steps = distance * float(shape.steps)

    def too_far(epsilon: int) -> bool:
        return _regret(law, shape, epsilon, confidence) > steps

    if too_far(EPSILON_UNITS_MAX):
        raise CannotServe("a distance to the best that no choice with noise is within")
    return largest_satisfying(too_far, 0, EPSILON_UNITS_MAX) + 1 if too_far(1) else 1
