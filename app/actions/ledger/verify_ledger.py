"""Verify the ledger: its anchors, its chains and totals, and every row against its entry."""

from dataclasses import dataclass
from typing import Protocol

from app.ledger.anchor_comparison import ALTERED, BEHIND, LACKS, AnchorComparison
from app.ledger.chain import SYSTEM_BOOK
from app.ledger.verification.report import Finding, Report
from app.ledger.verification.verify import verify
from app.ports.ledger import History


class Standing(Protocol):
    def compare(self) -> AnchorComparison:
        """Compare with all anchors; stops charging if the ledger lacks entries they saw."""
        ...


@dataclass(slots=True)
class VerifyLedger:
    history: History
    standing: Standing

    def __call__(self) -> tuple[Report, AnchorComparison]:
        compared = self.standing.compare()
        report = verify(self.history.snapshot(None, stored=True))
        if compared.stopped:
            behind = [Finding(book, None, None, LACKS) for book in compared.books]
            report.findings[:0] = [Finding(SYSTEM_BOOK, None, None, BEHIND), *behind]
        if compared.altered:
            report.findings.insert(0, Finding(SYSTEM_BOOK, None, None, ALTERED))
        if compared.other_ledgers:
            report.not_covered["anchors of other ledgers"] = compared.other_ledgers
        return report, compared
