"""Inverse calculator: the size of each of n equal events for a target (epsilon, delta).

The answer is the largest epsilon or rho, or the smallest noise multiplier, that the forward
calculation accepts; it refuses a value larger by one part in two thousand. Loss grows with the
parameter (or falls as noise grows) for every accountant, so bracketing is enough.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from typing import Any, Literal

from app.accounting.calculator.compose import ACCOUNTANTS, Accountant
from app.accounting.calculator.event_list import Composition, Neighbours
from app.accounting.calculator.events import Event, SampledGaussian
from app.accounting.calculator.figures import DoesNotApply, delta_number, epsilon_number
from app.accounting.precise import CONTEXT

Parameter = Literal["epsilon", "rho", "noise_multiplier"]
# Search range of each parameter.
RANGES: dict[Parameter, tuple[Decimal, Decimal]] = {
    "epsilon": (Decimal("1e-12"), Decimal("1e6")),
    "rho": (Decimal("1e-12"), Decimal("1e6")),
    "noise_multiplier": (Decimal("1e-6"), Decimal("1e9")),
}
_PRECISION, _FINE = Decimal("1.0005"), Decimal("1.0000001")
# one calculation may take a second, so it starts near the result of another accountant
_SLOW = "pld"


@dataclass(frozen=True, slots=True)
class Target:
    """Search target; `make` turns the parameter into the event that is repeated `count` times."""

    epsilon: Decimal
    delta: Decimal
    count: int
    parameter: Parameter
    make: Callable[[Decimal], Event]
    neighbours: Neighbours = "add_remove"
    group_size: int = 1


def solve(target: Target, accountants: Iterable[str]) -> dict[str, Any]:
    with localcontext(CONTEXT):
        return {"results": {name: _result(target, name) for name in accountants}}


def _result(target: Target, name: str) -> dict[str, Any]:
    accountant = ACCOUNTANTS[name]
    try:
        if name == _SLOW:
            if isinstance(target.make(Decimal(1)), SampledGaussian):
                raise DoesNotApply("the search among distributions of sampled noise takes too long")
            near = _Search(target, ACCOUNTANTS["advanced"], Decimal(2)).best()
            search = _Search(target, accountant, _PRECISION, near)
        else:
            search = _Search(target, accountant, _FINE)
        parameter = search.best()
        reached = search.epsilon(parameter)
    except DoesNotApply as reason:
        return {"unavailable": str(reason)}
    return {
        "per_event": {target.parameter: float(parameter)},
        "epsilon": float(reached),
        "delta": delta_number(target.delta, exact=True),
        "theorem": accountant.theorem,
    }


@dataclass(slots=True)
class _Search:
    target: Target
    accountant: Accountant
    precision: Decimal  # final ratio of the bracket's ends
    start: Decimal | None = None
    _seen: dict[Decimal, Decimal | DoesNotApply] = field(default_factory=dict)

    def epsilon(self, parameter: Decimal) -> Decimal:
        """The epsilon that the forward calculation shows."""
        if parameter not in self._seen:
            try:
                self._seen[parameter] = self._forward(parameter)
            except DoesNotApply as reason:
                self._seen[parameter] = reason
        seen = self._seen[parameter]
        if isinstance(seen, DoesNotApply):
            raise seen
        return seen

    def _forward(self, parameter: Decimal) -> Decimal:
        target = self.target
        composition = Composition.of(
            [(target.make(parameter), target.count)],
            neighbours=target.neighbours,
            group_size=target.group_size,
        )
        bound = self.accountant.epsilon_at(composition, target.delta)
        return Decimal(repr(epsilon_number(bound.value, exact=bound.exact)))

    def fits(self, parameter: Decimal) -> bool:
        try:
            return self.epsilon(parameter) <= self.target.epsilon
        except DoesNotApply:
            return False

    def best(self) -> Decimal:
        fits, over = self._bracket()
        while max(fits / over, over / fits) > self.precision:
            for probe in self._probes(fits, over):
                if min(fits, over) < probe < max(fits, over):
                    fits, over = (probe, over) if self.fits(probe) else (fits, probe)
        self.epsilon(over)  # raises unless it was refused for its cost
        return self._rounded(fits, over)

    def _bracket(self) -> tuple[Decimal, Decimal]:
        """A parameter that fits and one that does not."""
        least, most = RANGES[self.target.parameter]
        noisy = self.target.parameter == "noise_multiplier"
        quiet, loud = (most, least) if noisy else (least, most)
        if self.start is not None:  # near the answer: a few small steps lead past it
            step = Decimal("0.5") if noisy else Decimal(2)
            here = self.start
            while not self.fits(here) and least < here < most:
                here /= step
            while self.fits(here * step) and least < here < most:
                here *= step
            if self.fits(here) and not self.fits(here * step):
                return here, here * step
        if not self.fits(quiet):
            self.epsilon(quiet)
            raise DoesNotApply("no parameter in range meets the target")
        if self.fits(loud):
            raise DoesNotApply("every parameter in range meets the target")
        return quiet, loud

    def _probes(self, fits: Decimal, over: Decimal) -> list[Decimal]:
        """The middle of a wide bracket; in a narrow one, points on both sides of the expected
        answer.

        The loss is nearly a power of the parameter."""
        middle = (fits * over).sqrt()
        if max(fits / over, over / fits) > 100:
            return [middle]
        try:
            low, high = self.epsilon(fits), self.epsilon(over)
        except DoesNotApply:
            return [middle]
        if low <= 0 or low == high:
            return [middle]
        share = (self.target.epsilon / low).ln() / (high / low).ln()
        expected = fits * (share * (over / fits).ln()).exp()
        apart = self.precision.sqrt().sqrt()
        return [expected / apart, expected * apart, middle]

    def _rounded(self, fits: Decimal, over: Decimal) -> Decimal:
        """A short number that fits, if there is one; otherwise nine digits."""
        for digits in range(1, 8):
            for end in (over, fits):
                near = Context(prec=digits).plus(end)
                if min(fits, over) <= near <= max(fits, over):
                    if self.fits(near):
                        return near
                    break
        inwards = ROUND_FLOOR if fits < over else ROUND_CEILING
        return Context(prec=9, rounding=inwards).plus(fits)
