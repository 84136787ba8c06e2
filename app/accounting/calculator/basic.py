"""Basic composition: epsilons and deltas add up.

Theorem: Dwork, McSherry, Nissim and Smith 2006; with adaptively chosen parameters, Rogers, Roth,
Ullman and Vadhan 2016. An event without an epsilon of its own (Gaussian noise, zCDP) gets an equal
share of the remaining delta, and its epsilon at that share.
"""

from decimal import Decimal

from app.accounting.calculator.concentrated import epsilon_of
from app.accounting.calculator.event_list import Composition
from app.accounting.calculator.events import DiscreteGaussian, Event, Gaussian, SampledGaussian
from app.accounting.calculator.figures import Bound, DoesNotApply
from app.accounting.curves import gaussian

THEOREM = "basic: epsilons and deltas add up (Dwork, McSherry, Nissim and Smith 2006)"
SHARED = "the delta left is shared equally among the events that have no epsilon of their own"

SHARERS_MAX = 200  # different events that share delta: each takes milliseconds


def epsilon_at(composition: Composition, delta: Decimal) -> Bound:
    failure = composition.failure_sum
    if failure > delta:
        raise DoesNotApply("the deltas of the generic events sum to more than the requested delta")
    shares = sum(count for event, count in composition.parts if event.epsilon is None)
    if shares == 0:
        return Bound(composition.pure_sum(), exact=True, delta=failure)
    if sum(event.epsilon is None for event, _ in composition.parts) > SHARERS_MAX:
        raise DoesNotApply(f"more than {SHARERS_MAX} different events without an epsilon")
    share = (delta - failure) / shares * (1 - Decimal("1e-25"))
    if share == 0:
        raise DoesNotApply("the deltas of the generic events use up the requested delta")
    # A sample has a smaller loss only where a neighbour has a row more or less.
    amplifies = composition.neighbours == "add_remove"
    total = Decimal(0)
    for event, count in composition.parts:
        own = event.epsilon
        total += count * (_epsilon_at_share(event, share, amplifies) if own is None else own)
    return Bound(total, notes=(SHARED,))


def delta_at(composition: Composition, epsilon: Decimal) -> Bound:
    if composition.pure_sum() > epsilon:
        raise DoesNotApply("the epsilons sum to more than the requested epsilon")
    return Bound(composition.failure_sum, exact=True)


def _epsilon_at_share(event: Event, delta: Decimal, amplifies: bool) -> Decimal:
    if isinstance(event, DiscreteGaussian) or not isinstance(event, Gaussian):
        return epsilon_of(event.rho(), delta)[0]
    if not isinstance(event, SampledGaussian) or not amplifies:
        return gaussian.epsilon_at(delta, event.mu())
    # A sample of rate q of an (e, d)-private event is (ln(1 + q (exp(e) - 1)), q d)-private.
    rate = event.sampling_rate
    inner = gaussian.epsilon_at(delta / rate, event.mu()) if delta < rate else Decimal(0)
    if inner > 10**6:
        return inner
    return (1 + rate * (inner.exp() - 1)).ln()
