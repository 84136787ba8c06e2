"""Composition of a list of events: equal events merged and sorted, for one neighbouring relation
and one group size.

All parameters are fixed before the first answer; the accountants here may assume this.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from decimal import Decimal, localcontext
from typing import Literal

from app.accounting.calculator.events import (
    Event,
    Pure,
    RandomizedResponse,
    SampledGaussian,
)
from app.accounting.calculator.figures import EXACT, DoesNotApply
from app.accounting.curves.orders import ORDERS
from app.accounting.precise import CONTEXT, decimal

Neighbours = Literal["add_remove", "replace_one"]
GRID = tuple(decimal(order) for order in ORDERS)
SAMPLED_MAX = 50  # limit on distinct sampled events: each takes a sum of thousands of terms
CURVE_POINTS_MAX = 8000  # values of one event's curve at one order, each up to half a millisecond
# rounding error of one event's curve times (order - 1), generously bounded
_ROUNDING = Decimal("1e-32")


@dataclass(frozen=True, slots=True)
class Composition:
    parts: tuple[tuple[Event, int], ...]
    neighbours: Neighbours = "add_remove"
    group_size: int = 1
    orders: tuple[Decimal, ...] = GRID
    _curve: dict[Decimal, Decimal] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        events: Iterable[tuple[Event, int]],
        *,
        neighbours: Neighbours = "add_remove",
        group_size: int = 1,
        orders: Iterable[Decimal] | None = None,
    ) -> "Composition":
        merged: Counter[Event] = Counter()
        with localcontext(CONTEXT):
            for event, count in events:
                seen, copies = _event_under_relation(event, neighbours).for_group(group_size)
                merged[seen] += count * copies
        parts = sorted(merged.items(), key=lambda part: (part[0].name, *astuple(part[0])))
        orders_requested = GRID if orders is None else tuple(orders)
        return cls(tuple(parts), neighbours, group_size, orders_requested)

    @property
    def event_count(self) -> int:
        return sum(count for _, count in self.parts)

    @property
    def failure_sum(self) -> Decimal:
        with localcontext(EXACT):
            return sum((event.failure * count for event, count in self.parts), Decimal(0))

    @property
    def failure(self) -> Decimal:
        """The probability that any generic event fails: 1 - prod (1 - delta_i), rounded up."""
        most = self.failure_sum
        if most < Decimal("1e-12"):  # the product is no better, and cancels
            return most
        if any(event.failure >= 1 for event, _ in self.parts):
            return Decimal(1)
        logs = (count * (1 - event.failure).ln() for event, count in self.parts)
        return min(most, 1 - sum(logs, Decimal(0)).exp() + Decimal("1e-25"))

    def delta_left(self, delta: Decimal) -> Decimal:
        """The part of the requested delta that is left for the conversion.

        Let d be the probability that any generic event fails. The whole is (epsilon, d + (1 - d)
        x)-private if the part that does not fail is (epsilon, x)-private. This is sound because
        the deltas are fixed in advance."""
        failure = self.failure
        if failure >= delta:
            raise DoesNotApply("the deltas of the generic events use up the requested delta")
        return (delta - failure) / (1 - failure) * (1 - Decimal("1e-25"))

    def delta_with_failure(self, delta: Decimal) -> Decimal:
        """The inverse: delta of the whole from that of the part that does not fail."""
        failure = self.failure
        return failure + (1 - failure) * min(Decimal(1), delta)

    def pure_sum(self) -> Decimal:
        """The sum of the epsilons; every event must have one."""
        with localcontext(EXACT):
            total = Decimal(0)
            for event, count in self.parts:
                if event.epsilon is None:
                    raise DoesNotApply(f"a {event.name} event has no epsilon of its own")
                total += event.epsilon * count
            return total

    def rho(self) -> Decimal:
        return sum((event.rho() * count for event, count in self.parts), Decimal(0))

    def renyi(self, order: Decimal) -> Decimal:
        """The composed curve at one order."""
        if order not in self._curve:
            self._must_have_a_curve()
            total = Decimal(0)
            for event, count in self.parts:
                total += event.renyi(order) * count
            self._curve[order] = total + _ROUNDING * self.event_count / (order - 1)
        return self._curve[order]

    @property
    def sampled(self) -> bool:
        return any(isinstance(event, SampledGaussian) for event, _ in self.parts)

    def affords_curve_at(self, orders: int) -> bool:
        """True if this number of orders is affordable; curves that are straight lines cost
        nothing."""
        pure = sum(isinstance(event, Pure) for event, _ in self.parts)
        sampled = sum(isinstance(event, SampledGaussian) for event, _ in self.parts)
        return (pure + 4 * sampled) * orders <= CURVE_POINTS_MAX

    def _must_have_a_curve(self) -> None:
        if not self.sampled:
            return
        if self.neighbours == "replace_one":
            raise DoesNotApply("amplification by Poisson sampling is for add_remove only")
        if sum(isinstance(event, SampledGaussian) for event, _ in self.parts) > SAMPLED_MAX:
            raise DoesNotApply(f"more than {SAMPLED_MAX} different sampled events")


def _event_under_relation(event: Event, neighbours: Neighbours) -> Event:
    """Reduce randomised response to its epsilon under add_remove.

    Its curve covers only replaced answers. (An absent person must answer too, with a fixed
    value.)"""
    if isinstance(event, RandomizedResponse) and neighbours == "add_remove":
        return Pure(event.epsilon)
    return event
