"""Orders to the ledger's writer, and their outcomes: the charge protocol as data.

States of a charge: charged(attempt) -> answered | forfeited | voided. Taking over an abandoned
attempt raises the attempt number. Only the holder of the current attempt may store, forfeit or
void. A cancellation leaves a mark, which the holder sees when it next renews its lease. The writer
itself forfeits the charge only if the attempt has vanished.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from app.access import holder_of
from app.accounting.loss import Loss
from app.errors import AppError
from app.ledger.balance import CellIndices
from app.ledger.leaving import AT_ONCE, Leaving
from app.ledger.stream_orders import NewStream, StreamOrder, StreamOutcome


class State(StrEnum):
    CHARGED = "charged"
    ANSWERED = "answered"
    FORFEITED = "forfeited"
    VOIDED = "voided"


ATTEMPTS_MAX = 3


def reuse_key(analyst_id: str, version_id: str, plan_digest: str) -> str:
    """Key of an answer: one analyst, one version and one plan have one answer."""
    return f"{analyst_id}/{version_id}/{plan_digest}"


@dataclass(frozen=True, slots=True)
class PreparedAnswer:
    """An answer that needs no read, stored by the commit that charges for it.

    So the charge exists with its answer, or neither does (decision 0003).
    """

    answer: Callable[["Charged"], str]  # draws once, even if the batch is tried again
    grid_seconds: float


class ChargeOrder(NamedTuple):
    """Charge one plan to every account it touches, or to none."""

    charge_id: str
    analyst_id: str
    holders: tuple[str, ...]  # the analyst and their groups; everybody is always charged too
    actor: str
    request_key: str
    body_hash: str
    dataset_id: str
    dataset_name: str
    version_id: str
    book_id: str
    plan_digest: str
    loss: Loss
    cells: CellIndices
    cells_shown: list[Any] | None
    question: str  # canonical text of the request
    record: dict[str, Any]  # mechanism and parameters, for the entry
    theorem: str  # justifies the mechanism's price
    fresh: bool
    refusal: AppError | None  # why nothing new may be charged; a stored answer is still returned
    catalogue: int  # catalogue number that this order was planned under
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
    """Store the answer if the attempt is still current."""

    charge_id: str
    attempt: int
    answer: str
    leaving: Leaving = AT_ONCE
    stream: NewStream | None = None  # stored with the answer of its opening


@dataclass(frozen=True, slots=True)
class ForfeitOrder:
    """Forfeit: the engine was queried and failed. The charge stays, and there will be no answer."""

    charge_id: str
    attempt: int
    leaving: Leaving = AT_ONCE


@dataclass(frozen=True, slots=True)
class VoidOrder:
    """Void: the engine was never queried. A new entry refunds the charge."""

    charge_id: str
    attempt: int
    book_id: str
    holders: tuple[str, ...]  # all that have paid, including everybody
    loss: Loss
    cells: CellIndices
    reason: str
    leaving: Leaving = AT_ONCE


@dataclass(frozen=True, slots=True)
class ProgressOrder:
    """Renew the lease of a run and store its progress, if the attempt is current."""

    charge_id: str
    attempt: int
    step: int | None  # None, as is `steps`, for a run without steps
    steps: int | None
    lease_seconds: float
    grid_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CancelOrder:
    """Cancel a query. A running one ends at its next time-grid point.

    An answer stored as of that point or earlier remains.
    """

    charge_id: str
    analyst_id: str | None  # must own the query; None for an administrator


QuestionOrder = ChargeOrder | RecordOrder | ForfeitOrder | VoidOrder | ProgressOrder | CancelOrder
WriterOrder = QuestionOrder | StreamOrder


class Charged(NamedTuple):
    """The charge is durable and this caller holds the attempt: it may query the engine."""

    charge_id: str
    attempt: int
    version_id: str
    charged: str  # JSON object: the answer's members `charged`, `theorem` and `receipt`

    def payers(self) -> tuple[str, ...]:
        """Holders whose accounts have paid, including everybody."""
        shown = [account["holder"] for account in json.loads(self.charged)["charged"]["accounts"]]
        return tuple(map(holder_of, shown))


class Settled(NamedTuple):
    """The charge is in a final state, read back after the commit."""

    charge_id: str
    state: State
    answer: str | None
    replayed: bool = False
    reused: bool = False
    wait_seconds: float = 0.0  # until the time-grid point at which it may be shown


@dataclass(frozen=True, slots=True)
class StaleCatalogue:
    """People or datasets have changed since the order was planned: plan again."""

    catalogue: int


@dataclass(frozen=True, slots=True)
class LeaseRenewed:
    """Whether the attempt is still current; if not, the run has nothing left to do."""

    held: bool
    cancelled_in_seconds: float | None = None  # until the run must end; None: not cancelled


@dataclass(frozen=True, slots=True)
class Cancelling:
    """The cancellation is marked; the charge's final state is shown on its time grid."""

    charge_id: str


Outcome = Charged | Settled | StaleCatalogue | LeaseRenewed | Cancelling | StreamOutcome
