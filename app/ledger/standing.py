"""How a ledger compares with its anchors, and what became of a difference."""

from dataclasses import dataclass

BEHIND = (
    "the ledger is behind its anchors: it was restored from an older copy, or changed; nothing is "
    "charged until an administrator books the difference"
)
LACKS = "it lacks entries that its anchor has seen"


@dataclass(frozen=True, slots=True)
class Compared:
    """What the anchors say of the ledger."""

    stopped: bool  # nothing is charged
    points: int  # that were compared
    books: tuple[str, ...]  # that lack what their anchors have seen, until it is booked
    answers: int  # that are missing, of each chain at least
    other_ledgers: int  # whose anchors lie in the same folders


@dataclass(frozen=True, slots=True)
class Booked:
    """What became of the difference."""

    books: int
    accounts: int
    forfeited: int  # charges and asks that were open
    streams_closed: int
