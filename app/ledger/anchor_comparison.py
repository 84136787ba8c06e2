"""Comparison of a ledger with its anchors, and the result of booking a difference."""

from dataclasses import dataclass

BEHIND = (
    "the ledger is behind its anchors: it was restored from an older copy, or changed; nothing is "
    "charged until an administrator books the difference"
)
LACKS = "it lacks entries that its anchor has seen"
ALTERED = "the ledger's row and its entries disagree on whether charging is stopped"


@dataclass(frozen=True, slots=True)
class AnchorComparison:
    """Result of comparing the ledger with its anchors."""

    stopped: bool  # charging is stopped
    points: int  # number of points compared
    books: tuple[str, ...]  # books with missing entries that nobody has reconciled yet
    answers: int  # missing answers, at least one for each affected chain
    other_ledgers: int  # number of other ledgers with anchors in the same folders
    altered: bool = False  # the row that stops charging contradicts the entries


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """Result of booking the difference: what was added to the ledger, and what was ended."""

    books: int  # number of books that got the missing spend
    accounts: int
    forfeited: int  # number of open charges and asks
    streams_closed: int
