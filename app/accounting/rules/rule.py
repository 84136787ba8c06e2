"""Interface of a currency: how it reads losses, and when an account stops."""

from typing import Protocol

from app.accounting.loss import Loss
from app.accounting.rules.spending import Spend
from app.accounting.rules.terms import AccountTerms, GrantTerms


class Rule(Protocol):
    """A stop rule, valid for an analyst who picks each query after the earlier answers.

    `total` is always the spend with the candidate in it, in the rule's own vector."""

    @property
    def currency(self) -> str: ...

    @property
    def theorem(self) -> str: ...

    @property
    def nothing(self) -> Spend:
        """The spend of a new account."""
        ...

    def freeze(self, grant: GrantTerms, star: str | None = None) -> AccountTerms:
        """The terms of a grant. Raises Invalid, with the field, if it cannot be granted.

        `star` is the order of an account that has spends already; the account keeps it."""
        ...

    def read(self, loss: Loss) -> Spend:
        """Cost of a release in this currency."""
        ...

    def can_pay(self, cost: Spend) -> bool:
        """True if some account of this currency could pay for it."""
        ...

    def pays(self, loss: Loss) -> bool:
        """The same for a loss, without evaluating more of it than needed."""
        ...

    def admits(self, total: Spend, terms: AccountTerms) -> bool: ...

    def used(self, total: Spend, terms: AccountTerms) -> float:
        """Used fraction of the limit, from 0 to 1; above 1 it admits nothing."""
        ...

    def promise_spent(self, total: Spend, terms: AccountTerms) -> tuple[int, int]:
        """An epsilon and a delta that hold for the spend, at all times together."""
        ...

    def times(self, total: Spend, cost: Spend, terms: AccountTerms) -> int:
        """Number of times that the same cost would still be admitted."""
        ...

    def largest_epsilon(self, total: Spend, terms: AccountTerms) -> int:
        """The largest pure query, in units, that would still be admitted."""
        ...

    def own_units(self, spend: Spend, terms: AccountTerms) -> dict[str, float | None]:
        """The spend, or the rest of the limits, in the units of the currency."""
        ...

    def left(self, total: Spend, terms: AccountTerms) -> Spend:
        """The rest of each limit, never below zero."""
        ...
