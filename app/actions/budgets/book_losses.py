"""Book losses of releases made elsewhere: on `*`, and on the account of one holder if named.

So the account of everybody, `*`, shows the true total.
These losses have happened, so they count even past the limit. An account past its limit admits
nothing more.
"""

from dataclasses import dataclass
from typing import Any

from app.access import GROUP, Principal, Role, holder_of
from app.accounting.external_releases import ExternalRelease
from app.accounting.precise import INFINITE
from app.accounting.units import ATTO
from app.errors import Invalid
from app.ledger.account import EVERYBODY
from app.ports.ledger import Budgets
from app.ports.registry import Analysts, Datasets


@dataclass(frozen=True, slots=True)
class ReportedReleases:
    """`count` equal releases, and the text that declared them."""

    release: ExternalRelease
    count: int
    declared: dict[str, Any]


@dataclass(slots=True)
class BookLosses:
    budgets: Budgets
    datasets: Datasets
    people: Analysts

    def __call__(
        self,
        principal: Principal,
        *,
        dataset: str,
        holder: str,
        events: list[ReportedReleases],
        reason: str | None,
        request: str | None,
        body: str,
    ) -> tuple[int, list[str]]:
        """Book the losses. Returns the entry's number, and the holders whose accounts took them."""
        principal.must_be(Role.ADMIN)
        found_dataset = self.datasets.find(dataset)
        shown = [EVERYBODY]
        if holder.startswith(GROUP):
            shown.append(GROUP + self.people.group(holder.removeprefix(GROUP)))
        elif holder != EVERYBODY:
            shown.append(self.people.find(holder).name)
        holders = [holder_of(name) for name in shown]
        losses = [event.release.loss(event.count) for event in events]
        failures = promised = 0
        for index, loss in enumerate(losses):
            failures += loss.failure
            promised += 0 if loss.epsilon >= INFINITE else loss.delta
            if max(failures, promised) >= ATTO:
                rule = "must, with the deltas before it, add up to less than 1"
                raise Invalid.field(f"/events/{index}/delta", rule)
        entry = self.budgets.book(
            principal.name,
            found_dataset,
            tuple(holders),
            losses=losses,
            record={"events": [event.declared for event in events]},
            reason=reason,
            request=request,
            body=body,
        )
        return entry, shown
