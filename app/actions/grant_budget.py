"""Grant a budget, or change it: an analyst's, or everybody's together."""

from dataclasses import dataclass
from decimal import Decimal

from app.access import Principal, Role
from app.accounting import COMPOSITION_RULES
from app.accounting.loss import Loss
from app.accounting.rounding import ATTO, PICO, limit_units
from app.errors import Invalid
from app.interfaces import Budgets, Datasets, People
from app.ledger.account import EVERYBODY
from app.ledger.records import Budget
from app.names import folded


@dataclass(slots=True)
class GrantBudget:
    budgets: Budgets
    datasets: Datasets
    people: People

    def __call__(
        self,
        principal: Principal,
        *,
        dataset: str,
        holder: str,
        currency: str,
        epsilon: Decimal,
        delta: Decimal,
        expected_version: int | None,
        must_be_new: bool,
        must_exist: bool,
        reason: str | None,
    ) -> tuple[Budget, bool]:
        principal.must_be(Role.ADMIN)
        found = self.datasets.find(dataset)
        shown = EVERYBODY
        if holder != EVERYBODY:
            analyst = self.people.find(holder)
            shown = analyst.name
            if analyst.role is not Role.ANALYST:
                raise Invalid.field("/holder", "an analyst, or * for everybody together")
        rule = COMPOSITION_RULES[currency]
        if delta and not rule.spends_delta:
            raise Invalid.field("/delta", f"a {currency} account has no delta: leave it out")
        if not delta and rule.spends_delta:
            raise Invalid.field("/delta", f"a {currency} account needs a delta above 0")
        account, new = self.budgets.grant(
            principal.name,
            found,
            folded(shown),
            shown,
            currency=currency,
            limit=Loss(limit_units(epsilon, PICO), limit_units(delta, ATTO)),
            expected_version=expected_version,
            must_be_new=must_be_new,
            must_exist=must_exist,
            reason=reason,
        )
        return Budget(found.name, account), new
