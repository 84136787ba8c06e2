"""Optimal composition of events for which only epsilon and delta are known.

Theorem: Kairouz, Oh and Viswanath 2015, Theorem 3.3, and Murtagh and Vadhan 2016: the worst events
are randomised responses, whose losses are +epsilon_i or -epsilon_i; the delta of the whole is the
sum of P (1 - exp(epsilon - loss)) over the outcomes whose loss is above epsilon. Events of equal
epsilon follow a binomial law, so k of them have k + 1 outcomes. Parameters must be fixed in
advance.
Rounding: the outcomes of largest loss, with total probability below 1e-16 of the requested delta,
count as if their loss were infinite.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Context, Decimal, localcontext
from math import prod
from typing import NamedTuple

from app.accounting.calculator.event_list import Composition
from app.accounting.calculator.figures import Bound, DoesNotApply
from app.accounting.calculator.log_factorial import log_binomial
from app.accounting.precise import CONTEXT

THEOREM = "optimal: worst randomised responses (Kairouz, Oh and Viswanath 2015)"
OUTCOMES_MAX = 200_000  # limit on outcomes counted one by one
EPSILON_MAX = 10**6
_WORK = Context(prec=60, Emax=CONTEXT.Emax, Emin=CONTEXT.Emin)
_SMALL = Decimal("1e-16")
_ABOVE = 1 + Decimal("1e-25")

# Losses from the largest down, each with its probability; infinite ones first.
Outcomes = Iterable[tuple[Decimal, Decimal]]


def epsilon_at(composition: Composition, delta: Decimal) -> Bound:
    left = composition.delta_left(delta)
    with localcontext(_WORK):
        return Bound(_epsilon(_outcomes(composition, left), left))


def delta_at(composition: Composition, epsilon: Decimal) -> Bound:
    with localcontext(_WORK):
        # The delta is not known yet, so the tail is cut below any delta that would be shown.
        value = _delta(_outcomes(composition, Decimal("1e-50")), epsilon)
    return Bound(composition.delta_with_failure(value))


def _outcomes(composition: Composition, delta: Decimal) -> Outcomes:
    counts: dict[Decimal, int] = defaultdict(int)
    for event, count in composition.parts:
        if event.epsilon is None:
            raise DoesNotApply(f"a {event.name} event has no epsilon of its own")
        if event.epsilon > EPSILON_MAX:
            raise DoesNotApply(f"an epsilon above {EPSILON_MAX}")
        if event.epsilon > 0:
            counts[event.epsilon] += count
    if not counts:
        return []
    if len(counts) == 1:
        ((epsilon, count),) = counts.items()
        return _equal(epsilon, count, delta)
    return _different(counts)


def _equal(epsilon: Decimal, count: int, delta: Decimal) -> Iterator[tuple[Decimal, Decimal]]:
    """The binomial law of the number of flipped responses among `count`, from none upwards."""
    return _binomial(epsilon, count, _first_that_counts(epsilon, count, delta * _SMALL))


def _binomial(epsilon: Decimal, count: int, first: int) -> Iterator[tuple[Decimal, Decimal]]:
    odds = (-epsilon).exp()
    chance = _chance(epsilon, count, first)
    if first > 0:
        # Going down from `first`, each chance falls by at least this ratio: a geometric series.
        ratio = first / ((count - first + 1) * odds)
        yield Decimal("Infinity"), chance * ratio / (1 - ratio) * _ABOVE
    for flipped in range(first, count + 1):
        if flipped - first > OUTCOMES_MAX:
            raise DoesNotApply("too many events: their outcomes cannot be counted one by one")
        yield epsilon * (count - 2 * flipped), chance * _ABOVE
        chance *= odds * (count - flipped) / (flipped + 1)


def _chance(epsilon: Decimal, count: int, flipped: int) -> Decimal:
    log = log_binomial(count, flipped) - flipped * epsilon
    return (log - count * (1 + (-epsilon).exp()).ln()).exp()


def _first_that_counts(epsilon: Decimal, count: int, mass: Decimal) -> int:
    """A number of flips; all smaller numbers together have a probability below `mass`."""
    if count <= 2000:
        return 0
    low, high = 0, int(count / (1 + epsilon.exp()))  # chances rise up to the mode
    while low < high:
        middle = (low + high + 1) // 2
        if _chance(epsilon, count, middle) * middle <= mass:
            low = middle
        else:
            high = middle - 1
    return low


def _different(counts: dict[Decimal, int]) -> Outcomes:
    """All outcomes of several epsilons; exact decimals merge equal losses."""
    losses = {Decimal(0): Decimal(1)}
    counted = 0  # over all steps: coinciding losses keep each of them small
    for epsilon, count in sorted(counts.items(), key=lambda group: group[1]):
        counted += len(losses) * (count + 1)
        if counted > OUTCOMES_MAX:
            different = prod(number + 1 for number in counts.values())
            raise DoesNotApply(
                f"{len(counts)} different epsilons have {different:.0e} outcomes, too many"
                if different < 10**300
                else f"{len(counts)} different epsilons have too many outcomes"
            )
        together: dict[Decimal, Decimal] = defaultdict(Decimal)
        group = list(_binomial(epsilon, count, 0))
        for loss, chance in losses.items():
            for more, factor in group:
                together[loss + more] += chance * factor
        losses = together
    return sorted(losses.items(), reverse=True)


def _delta(outcomes: Outcomes, epsilon: Decimal) -> Decimal:
    for upper in _going_down(outcomes):
        if upper.end <= epsilon:
            return max(Decimal(0), upper.mass - upper.weight * (epsilon - upper.end).exp())
    return Decimal(0)


def _epsilon(outcomes: Outcomes, delta: Decimal) -> Decimal:
    for upper in _going_down(outcomes):
        if upper.mass - upper.weight > delta:
            return upper.end + ((upper.mass - delta) / upper.weight).ln()
    return Decimal(0)


class _Upper(NamedTuple):
    """The losses above `end`.

    Between it and the next loss above, delta(epsilon) = mass - exp(epsilon - end) weight."""

    end: Decimal
    mass: Decimal
    weight: Decimal


def _going_down(outcomes: Outcomes) -> Iterator[_Upper]:
    """Each segment of delta(epsilon) between two losses, down to epsilon 0."""
    mass = weight = Decimal(0)
    before = step = falls = Decimal(0)
    for loss, chance in outcomes:
        end = max(loss, Decimal(0))
        if weight:
            # steps are often equal, and an exponential is the slowest operation
            if before - end != step:
                step = before - end
                falls = (-step).exp()
            weight *= falls
        if loss.is_finite():
            yield _Upper(end, mass, weight)
            if loss <= 0:
                return
            weight += chance
        mass += chance
        before = end
