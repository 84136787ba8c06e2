"""Basic composition: losses add up, and an account stops before their sum exceeds its limit.

Theorem: Dwork, McSherry, Nissim and Smith (2006) for fixed parameters; Rogers, Roth, Ullman and
Vadhan (2016), Theorem 5.1, for an analyst who picks each query and its epsilon and delta after
seeing the earlier answers: refusing the first charge that would exceed the limit is a valid filter.
Assumes: every charge is the true loss of its release under the dataset's neighbouring relation.
Rounding: exact integers; nothing is rounded here.
"""

from dataclasses import dataclass

from app.accounting.loss import Loss
from app.accounting.precise import INFINITE
from app.accounting.rules.spending import Spend
from app.accounting.rules.terms import AccountTerms, GrantTerms
from app.accounting.units import ATTO, PICO, limit_units
from app.errors import Invalid

THEOREM = "Rogers, Roth, Ullman and Vadhan 2016, Theorem 5.1: basic composition as a privacy filter"


@dataclass(frozen=True, slots=True)
class BasicRule:
    """Stop rule of `pure` and `approximate` accounts; a spend is (epsilon, delta)."""

    currency: str
    spends_delta: bool
    theorem: str = THEOREM
    nothing: Spend = (0, 0)

    def freeze(self, grant: GrantTerms, star: str | None = None) -> AccountTerms:
        for name in ("rho", "mu", "failure_delta", "order"):
            if getattr(grant, name) is not None:
                raise Invalid.field(
                    f"/{name}", f"{self.currency} accounts do not use it: leave it out"
                )
        if grant.epsilon is None:
            raise Invalid.field("/epsilon", f"{self.currency} accounts need an epsilon")
        if grant.delta and not self.spends_delta:
            raise Invalid.field("/delta", f"{self.currency} accounts have no delta: leave it out")
        if not grant.delta and self.spends_delta:
            raise Invalid.field("/delta", f"{self.currency} accounts need a delta above 0")
        epsilon = min(limit_units(grant.epsilon, PICO), INFINITE - 1)
        limits = epsilon, limit_units(grant.delta, ATTO)
        return AccountTerms(*limits, limits)

    def read(self, loss: Loss) -> Spend:
        return loss.epsilon, loss.delta

    def can_pay(self, cost: Spend) -> bool:
        return cost[0] < INFINITE and (self.spends_delta or cost[1] == 0)

    def pays(self, loss: Loss) -> bool:
        return self.can_pay(self.read(loss))

    def admits(self, total: Spend, terms: AccountTerms) -> bool:
        return total[0] <= terms.limits[0] and total[1] <= terms.limits[1]

    def left(self, total: Spend, terms: AccountTerms) -> Spend:
        epsilon, delta = terms.limits
        return max(0, epsilon - total[0]), max(0, delta - total[1])

    def largest_epsilon(self, total: Spend, terms: AccountTerms) -> int:
        return self.left(total, terms)[0] if self.admits(total, terms) else 0

    def used(self, total: Spend, terms: AccountTerms) -> float:
        pairs = zip(total, terms.limits, strict=True)
        return max(have / of if of else float(have > 0) for have, of in pairs)

    def promise_spent(self, total: Spend, terms: AccountTerms) -> tuple[int, int]:
        return total[0], total[1]

    def times(self, total: Spend, cost: Spend, terms: AccountTerms) -> int:
        if not self.admits(total, terms):
            return 0
        left = zip(self.left(total, terms), cost, strict=True)
        return min((have // price for have, price in left if price), default=INFINITE)

    def own_units(self, spend: Spend, terms: AccountTerms) -> dict[str, float | None]:
        return {}
