"""Selection of a public outcome by scores of range R: the code shared by the selection mechanisms.

Cost: let d be the distance of a score to the best. Noise or coins of rate epsilon / R make a choice
epsilon-private. They depend only on differences of scores, and neighbours move two scores apart by
at most R (`queries/shapes/selection.py`). k successive choices, each among the outcomes that are
left, have epsilon / k each.
Error: with probability 1 - alpha the choice is at most (R / epsilon) ln(N / alpha) below the best
of N, as P(choice is below by r) <= N exp(-epsilon r / R). For k choices the same bound holds for
all together, each against the best that is left, with epsilon / k for epsilon and alpha / k for
alpha.
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
from app.mechanisms.expected_error import ErrorUnit, ExpectedError
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
    """Selection mechanism: its sampler, its price, and its distance below the best."""

    kind: str
    theorem: str
    pick: Pick
    loss: Callable[[int, int], Loss]  # maps units of epsilon and the number of choices to the loss
    rho: Callable[[int, int], int]  # maps the same two to units of rho
    # Maps R / epsilon, the number of outcomes and alpha to the distance below the best.
    regret: Callable[[float, int, float], float]
    noise: str | None = None  # name of the noise, if the analyst chose one


def tail_bound(scale: float, outcomes: int, alpha: float) -> float:
    """Error bound (R / epsilon) ln(N / alpha); McSherry and Talwar 2007, and McKenna and Sheldon
    2020."""
    return scale * math.log(outcomes / alpha)


@dataclass(frozen=True, slots=True)
class SelectionRelease(OneTally):
    """Prepared selection: mechanism, outcomes and price."""

    law: SelectionMechanism
    shape: SelectionShape
    loss: Loss
    rank: int | None  # the target rank, for queries that have one
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
        """The outcome, or a list of outcomes in the order of choice; never a score."""
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

    def _shown(self, index: int) -> Any:
        outcome = self.shape.outcomes[index]
        return outcome.isoformat() if isinstance(outcome, datetime.date) else outcome

    def describe(self) -> dict[str, Any]:
        description: dict[str, Any] = {
            "kind": self.law.kind,
            "outcomes": len(self.shape.outcomes),
            "score_range": float(self.shape.score_range / self.shape.steps),
            "scale": float(1 / (self.rate * self.shape.steps)),
        }
        if self.law.noise is not None:
            description["noise"] = self.law.noise
        if self.shape.picks is not None:
            description["choices"] = self.shape.picks
        if self.rank is not None:
            description["rank"] = self.rank
        return description

    def ledger_entry(self) -> dict[str, Any]:
        return {
            "mechanism": self.law.kind,
            "outcomes": len(self.shape.outcomes),
            "score_range": str(self.shape.score_range),
            "choices": self.shape.picks or 1,
            **({} if self.law.noise is None else {"noise": self.law.noise}),
            **({} if self.rank is None else {"rank": self.rank}),
        }

    def expected_error(self, confidence: float, rows: int | None = None) -> ExpectedError:
        steps = _regret(self.law, self.shape, self.loss.epsilon, confidence)
        measured: ErrorUnit = "ranks" if self.shape.error == "rank_error" else "score"
        return ExpectedError(steps / float(self.shape.steps), measured)

    @property
    def standard_deviations(self) -> tuple[float, ...]:
        return (_regret(self.law, self.shape, self.loss.epsilon, self.confidence),)


def prepare_by(
    law: SelectionMechanism, shape: SelectionShape, target: PrivacyTarget
) -> SelectionRelease:
    """Prepare the selection for the requested epsilon, rho or distance.

    It costs the requested epsilon, or at most the requested rho. For a distance it costs the
    least epsilon whose choice is that near to the best."""
    if target.epsilon is not None:
        epsilon = cost_units(target.epsilon, PICO)
    elif target.rho is not None:
        epsilon = _epsilon_within(law, limit_units(target.rho, PICO), shape.picks or 1)
    else:
        assert target.half_width is not None
        epsilon = _epsilon_for(law, shape, target.half_width, target.confidence)
    if _rate(shape, epsilon) > RATE_MAX:
        if target.epsilon is None:
            raise CannotServe("the accuracy is so high that there would be no noise at all")
        raise Invalid.field("/privacy/epsilon", "too large: there would be no noise at all")
    error = _regret(law, shape, epsilon, target.confidence)
    return SelectionRelease(
        law=law,
        shape=shape,
        loss=law.loss(epsilon, shape.picks or 1),
        rank=None if shape.rank is None else shape.rank(error),
        confidence=target.confidence,
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
    """The largest epsilon, in units, whose rho is at most `rho` units."""

    def fits(epsilon: int) -> bool:
        return law.rho(epsilon, picks) <= rho

    if not fits(1):
        raise CannotServe("the rho is too small for any selection")
    return largest_satisfying(fits, 1, EPSILON_UNITS_MAX, _near(law, rho / PICO, picks) * PICO)


def _near(law: SelectionMechanism, rho: float, picks: int) -> float:
    """Approximate epsilon at which `picks` choices have this rho.

    Secant steps on logarithms, which are almost straight."""

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
    """The least epsilon whose error bound is within the distance; the bound falls with epsilon."""
    steps = distance * float(shape.steps)

    def too_far(epsilon: int) -> bool:
        return _regret(law, shape, epsilon, confidence) > steps

    if too_far(EPSILON_UNITS_MAX):
        raise CannotServe("no selection with noise reaches this distance to the best")
    return largest_satisfying(too_far, 0, EPSILON_UNITS_MAX) + 1 if too_far(1) else 1
