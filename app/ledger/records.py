"""Records that the ledger shows: budgets under a dataset's name, and past queries."""

from dataclasses import dataclass
from typing import Any

from app.data.card import Card
from app.ledger.account import Account
from app.ledger.chain import Entry
from app.ledger.orders import State


@dataclass(frozen=True, slots=True)
class Budget:
    """An account under the name of a dataset that it covers, with that dataset's card."""

    dataset: str
    account: Account
    card: Card


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """One query of the history."""

    id: str
    analyst: str
    dataset: str
    state: State
    question: str
    charged: str
    answer: str | None
    reused_from: str | None
    epsilon: int
    delta: int
    created_at: int
    settled_at: int | None
    progress: tuple[int, int] | None = None  # step and steps of a run that reports them
    cancel_asked_at: int | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """Filters for a list of queries or entries; None filters nothing."""

    holder: str | None = None  # folded holder of an account; for entries
    kind: str | None = None
    status: str | None = None  # as shown to the analyst; for queries
    since: int | None = None  # microseconds since 1970


EVERYTHING = Search()


@dataclass(frozen=True, slots=True)
class AccountEntries:
    """Entries of a book that may have touched an account, in the order of the chain."""

    entries: list[Entry]
    reached: int  # no later entry was looked at
    at: int  # time of the entry `reached`
    head: str  # hash of the chain there
    at_end: bool  # the book has no later entry


@dataclass(frozen=True, slots=True)
class ChargeFacts:
    """Who was charged for what, and at which price."""

    analyst_id: str
    analyst: str
    kind: str
    is_stream: bool
    charged: dict[str, Any]  # as the answer states it
