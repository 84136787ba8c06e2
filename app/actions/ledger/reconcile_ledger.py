"""Book the spends that the ledger has lost, so that it may be charged again."""

from dataclasses import dataclass
from typing import Protocol

from app.access import Principal, Role
from app.ledger.anchor_comparison import Reconciliation


class Reconciling(Protocol):
    def reconcile(self, actor: str, reason: str) -> Reconciliation:
        """Book the lost spends. Raises Conflict if the ledger is not behind its anchors."""
        ...


@dataclass(slots=True)
class ReconcileLedger:
    ledger: Reconciling

    def __call__(self, principal: Principal, *, reason: str) -> Reconciliation:
        principal.must_be(Role.ADMIN)
        return self.ledger.reconcile(principal.name, reason)
