"""What a currency is to an account: how it reads losses, and when it stops."""

from typing import Protocol

from app.accounting.loss import Loss
from app.accounting.rules.spending import Spend
from app.accounting.rules.terms import GrantTerms, Terms


class Rule(Protocol):
    """A stop rule, valid for an analyst who picks each question after the earlier answers.

    `total` is always the spend with the candidate in it, in the rule's own vector.
    """

    @property
    def currency(self) -> str: ...

    @property
    def theorem(self) -> str: ...

    @property
    def nothing(self) -> Spend:
        """The spend of a new account."""
        ...

    def freeze(self, wish: GrantTerms, star: str | None = None) -> Terms:
        """The terms of a grant. Raises Invalid, naming the field, for what cannot be granted.

        `star` is the order that an account with spends was granted with, and keeps.
        """
        ...

    def read(self, loss: Loss) -> Spend:
        """What a release costs in this currency."""
        ...

    def can_pay(self, cost: Spend) -> bool:
        """Could any account of this currency pay for it?"""
        ...

    def pays(self, loss: Loss) -> bool:
        """The same of a loss, without working out more of it than that needs."""
        ...

    def admits(self, total: Spend, terms: Terms) -> bool: ...

    def used(self, total: Spend, terms: Terms) -> float:
        """How far the rule has come, from 0 to 1; above 1 it admits nothing."""
        ...

    def promise_spent(self, total: Spend, terms: Terms) -> tuple[int, int]:
        """An epsilon and a delta that hold for what was spent, at all times together."""
        ...

    def times(self, total: Spend, cost: Spend, terms: Terms) -> int:
        """How often the same cost would still be admitted."""
        ...

    def largest_epsilon(self, total: Spend, terms: Terms) -> int:
        """The largest pure question, in units, that would still be admitted."""
        ...

    def own_units(self, spend: Spend, terms: Terms) -> dict[str, float | None]:
        """The spend, or what is left of the limits, in the units of the currency."""
        ...

    def left(self, total: Spend, terms: Terms) -> Spend:
        """What is left of each limit, never below zero."""
        ...
