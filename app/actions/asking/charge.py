"""Steps shared by all charged actions: plan, charge, and reply only with stored text.

The order of the steps is the guarantee. Nothing before the charge reads data. Nothing after it
changes the price. The reply is the stored text, read back after its commit.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from app.access import Principal, Role
from app.accounting.loss import Loss
from app.actions.asking.readiness import DatasetReadiness
from app.actions.scheduling.planning_threads import PlanningThreads
from app.data.card import Dataset
from app.errors import (
    AppError,
    QuestionForfeited,
    QuestionVoided,
    StillRunning,
)
from app.fault_points import crash_point
from app.ledger.leaving import Leaving
from app.ledger.orders import (
    Charged,
    ChargeOrder,
    ForfeitOrder,
    PreparedAnswer,
    RecordOrder,
    Settled,
    StaleCatalogue,
    State,
    VoidOrder,
)
from app.names import new_id
from app.planning.cells import ChargedCells
from app.planning.request import Question
from app.planning.stream_request import Opening
from app.ports.ledger import Catalogue, Grant, Ledger
from app.ports.telemetry import Observer

FORFEITED = (
    "The question was charged but could not be answered. It never will be under this "
    "Idempotency-Key, and what was charged stays charged."
)
VOIDED = (
    "The prepared data were gone, or the question was cancelled in time: nothing was read and the "
    "charge was given back. Ask again with a new Idempotency-Key."
)
STALE_TRIES = 5
COUNTED = {State.ANSWERED: "answers", State.FORFEITED: "forfeits", State.VOIDED: "voids"}


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """One request: key of the analyst, content, request key and body."""

    token: str | None
    question: Question | Opening
    text: str  # canonical text of the body
    body_hash: str
    request_key: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A stored answer: every delivery sends these very bytes."""

    text: str
    replayed: bool
    reused: bool
    book_id: str | None = None  # if known here; otherwise the request names the dataset


class Priced(Protocol):
    """The part of a plan that a charge needs."""

    @property
    def loss(self) -> Loss: ...

    @property
    def theorem(self) -> str: ...

    @property
    def digest(self) -> str: ...

    @property
    def charged_cells(self) -> ChargedCells: ...

    @property
    def cells_shown(self) -> list[Any] | None: ...

    @property
    def record(self) -> dict[str, Any]: ...


P = TypeVar("P", bound=Priced)
Made = TypeVar("Made", bound=Priced, covariant=True)
Answering = Callable[[Principal, Dataset, P], PreparedAnswer | None]


class Plans(Protocol[Made]):
    """Makes plans, or returns cached ones."""

    def plan(
        self,
        analyst_id: str,
        question: Any,
        dataset: Dataset,
        text: str,
        currencies: frozenset[str],
    ) -> Made: ...

    def kept(
        self, analyst_id: str, dataset: Dataset, text: str, currencies: frozenset[str]
    ) -> Made | None: ...


@dataclass(frozen=True, slots=True)
class OpenCharge(Generic[P]):
    """A durable charge with its order and plan: the engine may be queried."""

    order: ChargeOrder
    plan: P
    dataset: Dataset
    charge: Charged


class SettledCharge(NamedTuple):
    """A charge that was settled before, or that was answered by its own commit."""

    book_id: str
    outcome: Settled


class ChargedAction(Generic[P]):
    """One request under one charge. Subclasses do the work that was charged for."""

    ledger: Ledger
    catalogue: Catalogue
    readiness: DatasetReadiness
    planner: Plans[P]
    planning: PlanningThreads
    lease_seconds: float
    release_grid_seconds: float
    observer: Observer

    async def _begin(
        self, request: QueryRequest, at_once: Answering[P] | None = None
    ) -> OpenCharge[P] | SettledCharge:
        """Charge, or return the stored outcome; raises the refusal.

        An answer that needs no read is stored with its charge.
        """
        crash_point("F1")
        for _ in range(STALE_TRIES):
            principal = await self.catalogue.principal(request.token)
            principal.must_be(Role.ANALYST)
            number = self.catalogue.number
            # First of all: without a grant, response times must not show that a name is known.
            grant = await self.catalogue.grant(request.question.dataset, principal.holders)
            dataset = grant.dataset
            if self.catalogue.number != number:  # both must belong to one state of the catalogue
                continue
            order, plan = await self._order(principal, request, grant, at_once)
            with self.observer.span("charge"):
                outcome = await self.ledger.submit(order)
            if not isinstance(outcome, StaleCatalogue):
                break
            self.catalogue.forget(outcome.catalogue)
        else:
            raise StillRunning("People or datasets keep changing.", retry_after_seconds=1)
        if isinstance(outcome, Settled):
            if outcome.charge_id == order.charge_id and not outcome.reused:  # answered at once
                self.observer.count("charges")
            return SettledCharge(order.book_id, outcome)
        assert isinstance(outcome, Charged)
        if outcome.attempt == 1:
            self.observer.count("charges")
        return OpenCharge(order, plan, dataset, outcome)

    async def _refusal(self, principal: Principal, dataset: Dataset, plan: P) -> AppError | None:
        """Why nothing new may be charged for this plan now, or None."""
        return await self.readiness.refusal(dataset)

    async def _order(
        self,
        principal: Principal,
        request: QueryRequest,
        grant: Grant,
        at_once: Answering[P] | None,
    ) -> tuple[ChargeOrder, P]:
        number, dataset = self.catalogue.number, grant.dataset
        analyst_id, currencies = principal.analyst_id, grant.currencies
        plan = self.planner.kept(analyst_id, dataset, request.text, currencies)
        if plan is None:
            make = partial(
                self.planner.plan, analyst_id, request.question, dataset, request.text, currencies
            )
            with self.observer.span("plan"):
                plan = await self.planning.run(analyst_id, make)
        order = ChargeOrder(
            charge_id=new_id("q"),
            analyst_id=principal.analyst_id,
            holders=principal.holders,
            actor=principal.name,
            request_key=request.request_key,
            body_hash=request.body_hash,
            dataset_id=dataset.id,
            dataset_name=dataset.name,
            version_id=dataset.version.id,
            book_id=dataset.book_id,
            plan_digest=plan.digest,
            loss=plan.loss,
            cells=plan.charged_cells.cells,
            cells_shown=plan.cells_shown,
            question=request.text,
            record=plan.record,
            theorem=plan.theorem,
            fresh=request.question.fresh,
            refusal=await self._refusal(principal, dataset, plan),
            catalogue=number,
            lease_seconds=self.lease_seconds,
            at_once=None if at_once is None else at_once(principal, dataset, plan),
        )
        return order, plan

    async def _forfeit(self, charge: Charged, leaving: Leaving) -> Reply:
        return await self._settled(ForfeitOrder(charge.charge_id, charge.attempt, leaving))

    async def _settled(self, order: RecordOrder | ForfeitOrder | VoidOrder) -> Reply:
        """Settle the charge, and reply at its public time; the store shows nothing before."""
        outcome = await self.ledger.submit(order)
        assert isinstance(outcome, Settled)
        return await self._reply(outcome)

    async def _reply(self, outcome: Settled, book_id: str | None = None) -> Reply:
        """Reply, and count, when the time-grid point of the outcome has come."""
        if outcome.wait_seconds:
            await asyncio.sleep(outcome.wait_seconds)
        count_settled(self.observer, outcome)
        return reply_from(outcome, book_id)


def count_settled(observer: Observer, outcome: Settled) -> None:
    """Count a settled charge or ask when it may be shown."""
    if outcome.replayed or outcome.reused:
        observer.count("repeats")
    elif outcome.state is not State.CHARGED:
        observer.count(COUNTED[outcome.state])


def reply_from(outcome: object, book_id: str | None = None) -> Reply:
    """The reply to a settled request, or its error."""
    assert isinstance(outcome, Settled)
    match outcome.state:
        case State.ANSWERED:
            assert outcome.answer is not None
            return Reply(outcome.answer, outcome.replayed, outcome.reused, book_id)
        case State.FORFEITED:
            raise QuestionForfeited(FORFEITED, id=outcome.charge_id, retryable=False)
        case State.VOIDED:
            raise QuestionVoided(VOIDED, id=outcome.charge_id, retryable=False)
        case State.CHARGED:  # another attempt has taken over and is still running
            raise StillRunning(
                "Another attempt is answering.",
                retry_after_seconds=1,
                charge_id=outcome.charge_id,
            )
