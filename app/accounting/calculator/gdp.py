"""Gaussian accountant: mu^2 adds up, and (epsilon, delta) follow exactly.

Theorem: Dong, Roth and Su 2019, Corollary 3.3; a pure event enters with the mu of the worst one.
"""

from decimal import Decimal

from app.accounting.calculator.concentrated import unsampled
from app.accounting.calculator.event_list import Composition
from app.accounting.calculator.figures import Bound, DoesNotApply, epsilon_number
from app.accounting.curves import gaussian

THEOREM = "Gaussian: mu^2 adds up, exact conversion (Dong, Roth and Su 2019)"


def epsilon_at(composition: Composition, delta: Decimal) -> Bound:
    mu = _mu(composition)
    value = gaussian.epsilon_at(composition.delta_left(delta), mu)
    return Bound(value, extras={"mu": epsilon_number(mu, exact=True)}, notes=unsampled(composition))


def delta_at(composition: Composition, epsilon: Decimal) -> Bound:
    mu = _mu(composition)
    value = composition.delta_with_failure(gaussian.delta_at(epsilon, mu))
    return Bound(value, extras={"mu": epsilon_number(mu, exact=True)}, notes=unsampled(composition))


def _mu(composition: Composition) -> Decimal:
    total = Decimal(0)
    for event, count in composition.parts:
        mu = event.mu()
        if not mu.is_finite():
            raise DoesNotApply("an event's epsilon is too large for a bound in mu")
        total += mu * mu * count
    return total.sqrt() * (1 + Decimal("1e-30"))
