"""What the ledger shows of itself: budgets under a dataset's name, and questions asked."""

from dataclasses import dataclass

from app.data.card import Card
from app.ledger.account import Account
from app.ledger.orders import State


@dataclass(frozen=True, slots=True)
class Budget:
    """An account under the name of a dataset it covers, with that dataset's card."""

    dataset: str
    account: Account
    card: Card


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """One question of the history."""

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
    progress: tuple[int, int] | None = None  # step and steps of a run that tells them
    cancel_asked_at: int | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """What a list of questions or of entries is narrowed to; None leaves a list as it is."""

    holder: str | None = None  # the folded holder of an account, of entries
    kind: str | None = None
    status: str | None = None  # as it is told, of questions
    since: int | None = None  # microseconds since 1970


EVERYTHING = Search()
