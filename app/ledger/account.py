"""An account: one holder's budget on one book of loss, and the rule that admits a charge."""

from dataclasses import dataclass
from typing import Any

from app.accounting import COMPOSITION_RULES
from app.accounting.basic import BasicRule
from app.accounting.loss import Loss
from app.accounting.rounding import PICO, wire
from app.errors import AccountFrozen, BudgetExhausted, Invalid

EVERYBODY = "*"
NO_GRANT = "There is no dataset of this name on which you have a budget."
TYPICAL_COUNT_EPSILON = PICO // 10  # what `questions_left` assumes a count costs: 0.1


def account_id(book_id: str, holder: str) -> str:
    """Accounts are locked in the order of this text."""
    return f"{book_id}/{holder}"


@dataclass(frozen=True, slots=True)
class Account:
    """Limit and running spend. `version` rises with every change and is the budget's ETag."""

    book_id: str
    holder: str  # folded name of an analyst, or * for everybody together
    shown: str  # the same name as its owner writes it
    currency: str
    limit: Loss
    spent: Loss
    version: int

    @property
    def id(self) -> str:
        return account_id(self.book_id, self.holder)

    @property
    def rule(self) -> BasicRule:
        return COMPOSITION_RULES[self.currency]

    @property
    def frozen(self) -> bool:
        """The limit was lowered below what is spent: nothing is admitted, nothing is altered."""
        return not self.spent.within(self.limit)

    def admit(self, cost: Loss) -> "Account":
        """The account after the charge, or a refusal that changes nothing."""
        if not self.rule.can_pay(cost):
            payers = [name for name, rule in COMPOSITION_RULES.items() if rule.can_pay(cost)]
            raise Invalid.field(
                "/privacy", f"a {self.currency} account cannot pay delta; {', '.join(payers)} can"
            )
        if self.frozen:
            raise AccountFrozen(
                f"The budget of {self.shown} is frozen: its limit is below what is spent.",
                **self._refusal(cost),
            )
        if not self.rule.admits(spent=self.spent, cost=cost, limit=self.limit):
            raise BudgetExhausted(
                f"The question costs more than the budget of {self.shown} has left.",
                **self._refusal(cost),
            )
        return self._with(self.spent + cost)

    def give_back(self, cost: Loss) -> "Account":
        return self._with(self.spent.minus(cost))

    def _with(self, spent: Loss) -> "Account":
        terms = (self.book_id, self.holder, self.shown, self.currency, self.limit)
        return Account(*terms, spent, self.version + 1)

    @property
    def remaining(self) -> Loss:
        return self.rule.remaining(spent=self.spent, limit=self.limit)

    @property
    def largest_epsilon(self) -> int:
        return self.rule.largest_epsilon(spent=self.spent, limit=self.limit)

    @property
    def used(self) -> float:
        return self.rule.used(spent=self.spent, limit=self.limit)

    @property
    def questions_left(self) -> int:
        return self.largest_epsilon // TYPICAL_COUNT_EPSILON

    def _refusal(self, cost: Loss) -> dict[str, Any]:
        return {
            "account": self.shown,
            "currency": self.currency,
            "requested": cost.wire(),
            "remaining": self.remaining.wire(),
            **wire("largest_epsilon", self.largest_epsilon, PICO),
            "retryable": False,
        }
