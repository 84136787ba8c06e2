"""Withdraw a dataset's name, to correct a wrong person, neighbouring relation or card.

If nothing was ever charged to its book, the name and its prepared rows are deleted, and the data
may be registered again. Otherwise the name closes and the book stays, because a loss cannot be
undone.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from app.access import Principal, Role
from app.actions.datasets.clear_versions import ClearVersions


class Withdrawal(Enum):
    """Outcome of a withdrawal."""

    WITHDRAWN = "withdrawn"
    CLOSED = "closed"


DETAILS = {
    Withdrawal.WITHDRAWN: "Nothing was ever charged for these data: the name is free, and the data "
    "may be registered again.",
    Withdrawal.CLOSED: "Something was charged for these data: the name is closed, and the spent "
    "budget stays spent.",
}


class Withdrawals(Protocol):
    def withdraw(
        self, actor: str, name: str, *, reason: str | None, request: str | None, body: str
    ) -> Withdrawal:
        """Withdraw a name. Raises NotFound. A repeated request has the outcome of the first."""
        ...


@dataclass(slots=True)
class WithdrawDataset:
    withdrawals: Withdrawals
    clear_versions: ClearVersions

    def __call__(
        self,
        principal: Principal,
        *,
        name: str,
        reason: str | None,
        request: str | None,
        body: str,
    ) -> Withdrawal:
        principal.must_be(Role.ADMIN)
        outcome = self.withdrawals.withdraw(
            principal.name, name, reason=reason, request=request, body=body
        )
        if outcome is Withdrawal.WITHDRAWN:
            self.clear_versions()
        return outcome
