"""What is handed to the ledger's writer, and what it hands back: the charge protocol as data.

States of a charge: charged(attempt) -> answered | forfeited | voided. Taking over an abandoned
attempt raises the attempt; only the holder of the current one may store, forfeit or void. Whoever
cancels leaves a mark, which the holder sees at its next look; only of an attempt that has vanished
is the charge forfeited in its place.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from app.access import holder_of
from app.accounting.loss import Loss
from app.errors import AppError
from app.ledger.balance import Cells
from app.ledger.leaving import AT_ONCE, Leaving
from app.ledger.stream_orders import NewStream, StreamOrder, StreamOutcome


class State(StrEnum):
    CHARGED = "charged"
    ANSWERED = "answered"
    FORFEITED = "forfeited"
    VOIDED = "voided"


ATTEMPTS_MAX = 3


def reuse_key(analyst_id: str, version_id: str, plan_digest: str) -> str:
    """The same plan of the same analyst on the same version has one answer."""
    return f"{analyst_id}/{version_id}/{plan_digest}"


@dataclass(frozen=True, slots=True)
class PreparedAnswer:
    """An answer for which nothing has to be read: it is stored by the commit that charges for it,
    so that there is the charge with its answer or neither (decision 0003)."""

    answer: Callable[["Charged"], str]  # drawn once, however often the batch is tried
    grid_seconds: float


class ChargeOrder(NamedTuple):
    """Pay for one plan in every account it touches, or in none."""

    charge_id: str
    analyst_id: str
    holders: tuple[str, ...]  # the analyst's account and groups', beside the one of everybody
    actor: str
    request_key: str
    body_hash: str
    dataset_id: str
    dataset_name: str
    version_id: str
    book_id: str
    plan_digest: str
    loss: Loss
    cells: Cells
    cells_shown: list[Any] | None
    question: str  # canonical text of the question
    record: dict[str, Any]  # mechanism and parameters, for the entry
    theorem: str  # that the mechanism's price relies on
    fresh: bool
    refusal: AppError | None  # why nothing new may be charged; what is stored is told all the same
    catalogue: int  # the state of people and datasets that this order was planned on
    lease_seconds: float
    at_once: PreparedAnswer | None = None

    @property
    def request(self) -> str:
        return f"{self.analyst_id}/{self.request_key}"

    @property
    def reuse_key(self) -> str:
        return reuse_key(self.analyst_id, self.version_id, self.plan_digest)


@dataclass(frozen=True, slots=True)
class RecordOrder:
    """Store the answer, if the attempt is still current."""

    charge_id: str
    attempt: int
    answer: str
    leaving: Leaving = AT_ONCE
    stream: NewStream | None = None  # stored with the answer of its opening


@dataclass(frozen=True, slots=True)
class ForfeitOrder:
    """The engine was asked and failed: the charge stays, and there will be no answer."""

    charge_id: str
    attempt: int
    leaving: Leaving = AT_ONCE


@dataclass(frozen=True, slots=True)
class VoidOrder:
    """The engine was never asked: give the charge back, as a new entry."""

    charge_id: str
    attempt: int
    book_id: str
    holders: tuple[str, ...]  # those that have paid, everybody among them
    loss: Loss
    cells: Cells
    reason: str
    leaving: Leaving = AT_ONCE


@dataclass(frozen=True, slots=True)
class ProgressOrder:
    """A run is alive: note how far it is and renew its lease, if the attempt is current."""

    charge_id: str
    attempt: int
    step: int | None  # None, both, of a run that tells no steps
    steps: int | None
    lease_seconds: float
    grid_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CancelOrder:
    """Somebody does not want the answer any more. What is at work ends as of the next point of its
    time grid, and what is stored as of that point or before it stands."""

    charge_id: str
    analyst_id: str | None  # who must have asked; None is an administrator


QuestionOrder = ChargeOrder | RecordOrder | ForfeitOrder | VoidOrder | ProgressOrder | CancelOrder
Order = QuestionOrder | StreamOrder


class Charged(NamedTuple):
    """The charge is durable and this caller holds the attempt: the engine may be asked."""

    charge_id: str
    attempt: int
    version_id: str
    charged: str  # JSON object: the answer's members `charged`, `theorem` and `receipt`

    def payers(self) -> tuple[str, ...]:
        """The holders whose accounts have paid, everybody among them."""
        shown = [account["holder"] for account in json.loads(self.charged)["charged"]["accounts"]]
        return tuple(map(holder_of, shown))


class Settled(NamedTuple):
    """The charge is in a final state, read back from the store after the commit."""

    charge_id: str
    state: State
    answer: str | None
    replayed: bool = False
    reused: bool = False
    wait_seconds: float = 0.0  # until the point of the grid at which it may be told


@dataclass(frozen=True, slots=True)
class StaleCatalogue:
    """People or datasets have changed since the order was planned: plan again."""

    catalogue: int


@dataclass(frozen=True, slots=True)
class LeaseRenewed:
    """Is the attempt still the current one? If not, the run has nothing left to do."""

    held: bool
    cancelled_in_seconds: float | None = None  # until it is to end; None if nobody has cancelled


@dataclass(frozen=True, slots=True)
class Cancelling:
    """The mark is made; what becomes of the charge is told on its time grid."""

    charge_id: str


Outcome = Charged | Settled | StaleCatalogue | LeaseRenewed | Cancelling | StreamOutcome
