"""Shared stop rule of `zcdp`, `renyi` and `gdp` accounts.

A spend is (pure, failure, *paths): the sum of pure losses, the sum of failure probabilities, and
one running divergence for each path. The limits have the same shape. A charge is admitted if the
failures stay within their limit, and the pure sum or some path stays within its own.

Soundness for an adaptive analyst. The limit of each path is frozen at the grant, such that the
interaction which stops before that path exceeds it is (epsilon, w delta_conversion)-private. The
weights w of the paths add up to 1. Our interaction coincides with it on every transcript on which
the path is still within its limit, because sums only grow. Split any event by the first such path
and add up: (epsilon, delta_conversion). Transcripts whose pure sum is within epsilon have a loss of
at most epsilon everywhere. They need no delta, so the pure sum is a free alternative to the paths.
Failures add at most the sum of their probabilities. `zcdp` and `gdp` have one path, of weight 1. To
split delta again afterwards, or to give every path the whole of it, is not sound
(tests/accounting/rules/test_adaptive_adversary.py shows both).

Theorem of the odometer (`promise_spent`): for every order a, exp((a-1)(L - R(a))) is a nonnegative
supermartingale that begins at 1 (Feldman and Zrnic 2021; Whitehouse et al. 2023). By Ville's
inequality L <= R(a) + ln(1 / (w_a delta)) / (a-1) at all times together, except with probability
w_a delta. The least of these over the orders holds except with probability delta.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import lru_cache
from operator import add, le

from app.accounting.curves.conversion import renyi_limit
from app.accounting.curves.orders import ORDERS, PLACES
from app.accounting.loss import Loss
from app.accounting.precise import CONTEXT, INFINITE, decimal, units_up
from app.accounting.rules.spending import Spend
from app.accounting.rules.terms import AccountTerms, GrantTerms
from app.accounting.units import ATTO, PICO, limit_units
from app.errors import Invalid

FAILURE_SHARE = 1000  # by default 1/1000 of delta is reserved for releases that may fail
# share of the conversion's delta for the order that suits the grant best
STAR_WEIGHT = Decimal("0.95")


@dataclass(frozen=True, slots=True)
class CurveRule(ABC):
    """Reads losses as (pure, failure, *paths); subclasses define the paths."""

    currency: str
    theorem: str
    nothing: Spend

    # Defined by each currency

    @abstractmethod
    def paths(self, loss: Loss) -> Spend: ...

    @abstractmethod
    def path_limits(
        self, grant: GrantTerms, conversion: Decimal, star: str | None
    ) -> tuple[Decimal, Spend, str]:
        """The promised epsilon, the limit of each path, and the order with most of delta.

        The order is `star` if given, otherwise the one that suits the grant best."""

    @abstractmethod
    def divergences(self, total: Spend) -> Spend:
        """The spend as Renyi divergences at the public orders."""

    @abstractmethod
    def pure_cost(self, path: int) -> tuple[Callable[[float], float], Callable[[int], int]]:
        """Cost of a pure query on a path: approximately, from an epsilon; and exactly, from
        units."""

    @abstractmethod
    def own_units(self, spend: Spend, terms: AccountTerms) -> dict[str, float | None]: ...

    # Shared by all currencies

    def freeze(self, grant: GrantTerms, star: str | None = None) -> AccountTerms:
        if not grant.delta:
            raise Invalid.field("/delta", f"a {self.currency} account needs a delta above 0")
        delta = limit_units(grant.delta, ATTO)
        if grant.failure_delta is None:
            failure = delta // FAILURE_SHARE
        else:
            failure = limit_units(grant.failure_delta, ATTO)
        if not 0 <= failure < delta:
            raise Invalid.field("/failure_delta", "must be less than delta: it is a part of delta")
        conversion = Decimal(delta - failure) / ATTO
        epsilon, limits, order = self.path_limits(grant, conversion, star)
        promised = limit_units(epsilon, PICO)
        if promised >= INFINITE and grant.epsilon is None:
            name = "mu" if grant.rho is None else "rho"
            raise Invalid.field(f"/{name}", "too large: its epsilon must be at most 9223372")
        promised = min(promised, INFINITE - 1)
        return AccountTerms(
            epsilon=promised,
            delta=delta,
            limits=(promised, failure, *limits),
            conversion=delta - failure,
            order=order,
        )

    def read(self, loss: Loss) -> Spend:
        return loss.pure, loss.failure, *self.paths(loss)

    def can_pay(self, cost: Spend) -> bool:
        return min(cost[0], *cost[2:]) < INFINITE

    def pays(self, loss: Loss) -> bool:
        return loss.pure < INFINITE or self.can_pay(self.read(loss))

    def admits(self, total: Spend, terms: AccountTerms) -> bool:
        limits = terms.limits
        return total[1] <= limits[1] and (
            total[0] <= limits[0] or any(map(le, total[2:], limits[2:]))
        )

    def left(self, total: Spend, terms: AccountTerms) -> Spend:
        pairs = zip(terms.limits, total, strict=True)
        return tuple([of - have if of > have else 0 for of, have in pairs])

    def used(self, total: Spend, terms: AccountTerms) -> float:
        if not any(total):
            return 0.0
        ways = [(total[0], terms.limits[0]), *zip(total[2:], terms.limits[2:], strict=True)]
        nearest = min((have / of for have, of in ways if of > 0), default=1.0)
        failed = total[1] / terms.limits[1] if terms.limits[1] else float(total[1] > 0)
        return max(nearest, failed)

    def promise_spent(self, total: Spend, terms: AccountTerms) -> tuple[int, int]:
        assert terms.order is not None
        offsets = _offsets(terms.order, terms.conversion)
        reading: int = min(map(add, self.divergences(total), offsets))
        if total[0] <= reading:  # the pure sum holds without any delta
            return total[0], total[1]
        return min(INFINITE, reading), total[1] + terms.conversion

    def times(self, total: Spend, cost: Spend, terms: AccountTerms) -> int:
        if not self.admits(total, terms):
            return 0
        ways = list(zip(total, cost, terms.limits, strict=True))
        counts = [
            (of - have) // price if price else INFINITE
            for have, price, of in (ways[0], *ways[2:])
            if have <= of
        ]
        have, price, of = ways[1]
        fails = (of - have) // price if price else INFINITE
        return max(0, min(max(counts), fails))

    def largest_epsilon(self, total: Spend, terms: AccountTerms) -> int:
        """The largest epsilon over all ways, each approximated and then checked exactly."""
        if not self.admits(total, terms):
            return 0
        best = max(0, terms.limits[0] - total[0])
        for path, (have, of) in enumerate(zip(total[2:], terms.limits[2:], strict=True)):
            if have <= of:
                best = max(best, self._largest_on(path, of - have, best))
        return best

    def _largest_on(self, path: int, left: int, at_least: int) -> int:
        roughly, exactly = self.pure_cost(path)
        room = left / PICO
        low, high = at_least / PICO, max(1.0, 2 * at_least / PICO)
        if roughly(low) > room:
            return 0
        while roughly(high) <= room and high < 1e6:
            low, high = high, 2 * high
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if roughly(middle) <= room else (low, middle)
        units = int(low * (1 - 1e-9) * PICO)
        return units if units > 0 and exactly(units) <= left else 0


def best_order(epsilon: Decimal, conversion: Decimal) -> str:
    """The order that suits Gaussian-like queries best: it has the largest limit for its cost."""
    with localcontext(CONTEXT):
        best = max(ORDERS, key=lambda a: renyi_limit(epsilon, decimal(a), conversion) / decimal(a))
    return next(text for text, place in PLACES.items() if ORDERS[place] == best)


def weights(star: str) -> tuple[Decimal, ...]:
    """Shares of the conversion's delta: they add up to 1 and are frozen with the star."""
    with localcontext(CONTEXT):
        rest = (1 - STAR_WEIGHT) / (len(ORDERS) - 1)
        return tuple(STAR_WEIGHT if order == star else rest for order in PLACES)


@lru_cache(maxsize=4096)
def _offsets(star: str, conversion: int) -> Spend:
    """Amounts that the odometer adds to the divergence of each order."""
    with localcontext(CONTEXT):
        delta = Decimal(conversion) / ATTO
        return tuple(
            units_up(-(weight * delta).ln() / (decimal(order) - 1))
            for order, weight in zip(ORDERS, weights(star), strict=True)
        )
