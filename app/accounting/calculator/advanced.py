"""Advanced composition: the fully adaptive filter, and the older formula next to it.

Theorem: Whitehouse, Ramdas, Rogers and Wu 2023, Theorem 1: while S = sum epsilon_i^2 keeps S/2 +
sqrt(2 S ln(1/d)) <= epsilon and sum delta_i <= delta - d, all answers together are (epsilon,
delta)-private. The next query and its epsilon may be chosen adaptively. It is the zCDP filter with
rho = epsilon^2 / 2 and the classical conversion. So an event without an epsilon of its own enters
with 2 rho in the place of epsilon^2.

Older formula: Dwork, Rothblum and Vadhan 2010, which needs all parameters in advance: sum epsilon_i
(exp(epsilon_i) - 1) + sqrt(2 ln(1/d) sum epsilon_i^2).
"""

from decimal import Decimal

from app.accounting.calculator.concentrated import unsampled
from app.accounting.calculator.event_list import Composition
from app.accounting.calculator.figures import (
    Bound,
    DoesNotApply,
    delta_number,
    epsilon_number,
)

THEOREM = "advanced: fully adaptive filter (Whitehouse, Ramdas, Rogers and Wu 2023)"
_IN_ADVANCE = "parameters fixed in advance (Dwork, Rothblum and Vadhan 2010)"
_EXPONENT_MAX = 10**6


def epsilon_at(composition: Composition, delta: Decimal) -> Bound:
    left = delta - composition.failure_sum
    if left <= 0:
        raise DoesNotApply("the deltas of the generic events use up the requested delta")
    squares = _squares(composition)
    root = (-2 * left.ln() * squares).sqrt()
    extras = {}
    drift = _drift(composition)
    if drift is not None:
        shown = {"epsilon": epsilon_number(drift + root), "delta": delta_number(delta, exact=True)}
        extras = {"fixed_in_advance": {**shown, "theorem": _IN_ADVANCE}}
    return Bound(squares / 2 + root, extras=extras, notes=unsampled(composition))


def delta_at(composition: Composition, epsilon: Decimal) -> Bound:
    squares, failure = _squares(composition), composition.failure_sum
    value = failure + _tail(epsilon - squares / 2, squares)
    extras = {}
    drift = _drift(composition)
    if drift is not None:
        older = failure + _tail(epsilon - drift, squares)
        shown = {"epsilon": epsilon_number(epsilon, exact=True), "delta": delta_number(older)}
        extras = {"fixed_in_advance": {**shown, "theorem": _IN_ADVANCE}}
    return Bound(value, extras=extras, notes=unsampled(composition))


def _squares(composition: Composition) -> Decimal:
    total = Decimal(0)
    for event, count in composition.parts:
        square = 2 * event.rho() if event.epsilon is None else event.epsilon * event.epsilon
        total += square * count
    return total


def _drift(composition: Composition) -> Decimal | None:
    """sum epsilon_i (exp(epsilon_i) - 1), or None where the older formula does not apply."""
    total = Decimal(0)
    for event, count in composition.parts:
        if event.epsilon is None or event.epsilon > 100:
            return None
        total += event.epsilon * (event.epsilon.exp() - 1) * count
    return total


def _tail(excess: Decimal, squares: Decimal) -> Decimal:
    """exp(-x^2 / (2 S)): the probability that the loss exceeds its drift by more than x."""
    if squares == 0:
        return Decimal(0) if excess >= 0 else Decimal(1)
    if excess <= 0:
        return Decimal(1)
    return (-min(excess * excess / (2 * squares), Decimal(_EXPONENT_MAX))).exp()
