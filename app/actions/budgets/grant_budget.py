"""Grant a budget, or change it: an analyst's, a group's, or everybody's together."""

from dataclasses import dataclass

from app.access import GROUP, Principal, Role
from app.accounting.rules.terms import GrantTerms
from app.errors import Invalid
from app.ledger.account import EVERYBODY
from app.ledger.precondition import Precondition
from app.ledger.records import Budget
from app.names import folded
from app.ports.ledger import Budgets
from app.ports.registry import Analysts, Datasets


@dataclass(slots=True)
class GrantBudget:
    budgets: Budgets
    datasets: Datasets
    people: Analysts

    def __call__(
        self,
        principal: Principal,
        *,
        dataset: str,
        holder: str,
        currency: str,
        wish: GrantTerms,
        precondition: Precondition,
        reason: str | None,
    ) -> tuple[Budget, bool]:
        """Grant what is wished. Returns the budget, and whether its account is new."""
        principal.must_be(Role.ADMIN)
        found_dataset = self.datasets.find(dataset)
        shown = EVERYBODY
        if holder.startswith(GROUP):
            shown = GROUP + self.people.group(holder.removeprefix(GROUP))
        elif holder != EVERYBODY:
            analyst = self.people.find(holder)
            shown = analyst.name
            if analyst.role is not Role.ANALYST:
                raise Invalid.field("/holder", "an analyst, group:name, or * for everybody")
        account, new = self.budgets.grant(
            principal.name,
            found_dataset,
            folded(shown),
            shown,
            currency=currency,
            wish=wish,
            precondition=precondition,
            reason=reason,
        )
        return Budget(found_dataset.name, account, found_dataset.card), new
