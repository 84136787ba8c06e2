"""Book losses of releases made elsewhere, so that the account of everybody is the true total.

They have happened: they count whatever the limit is, and an account they take past its limit admits
nothing more.
"""

from dataclasses import dataclass
from typing import Any

from app.access import GROUP, Principal, Role
from app.accounting.outside import Release
from app.errors import Invalid
from app.interfaces import Budgets, Datasets, People
from app.ledger.account import EVERYBODY
from app.names import folded


@dataclass(frozen=True, slots=True)
class Told:
    """So many equal releases, and how they were told."""

    release: Release
    count: int
    said: dict[str, Any]


@dataclass(slots=True)
class BookLosses:
    budgets: Budgets
    datasets: Datasets
    people: People

    def __call__(
        self,
        principal: Principal,
        *,
        dataset: str,
        holder: str,
        told: list[Told],
        reason: str | None,
        request: str | None,
        body: str,
    ) -> tuple[int, list[str]]:
        """The number of the entry, and the holders it was booked on: everybody, and the one."""
        principal.must_be(Role.ADMIN)
        found = self.datasets.find(dataset)
        holders = [EVERYBODY]
        if holder.startswith(GROUP):
            holders.append(GROUP + folded(self.people.group(holder.removeprefix(GROUP))))
        elif holder != EVERYBODY:
            holders.append(folded(self.people.find(holder).name))
        losses = [each.release.loss(each.count) for each in told]
        total = losses[0]
        for loss in losses[1:]:
            total = total + loss
        if total.failure >= 10**18:
            raise Invalid.field("/events", "deltas that add up to less than 1")
        entry = self.budgets.book(
            principal.name,
            found,
            tuple(holders),
            loss=total,
            record={"events": [each.said for each in told]},
            reason=reason,
            request=request,
            body=body,
        )
        return entry, holders
