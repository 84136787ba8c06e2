"""What every charged action shares: plan, charge, and speak only of what is stored.

The order is the promise. Nothing before the charge reads data; nothing after it changes the price;
what is sent is what was stored, read back after its commit.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

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
from app.ports import Catalogue, Grant, Ledger

FORFEITED = (
    "The question was charged but could not be answered. It never will be under this "
    "Idempotency-Key, and what was charged stays charged."
)
VOIDED = (
    "The prepared data were gone, or the question was cancelled in time: nothing was read and the "
    "charge was given back. Ask again with a new Idempotency-Key."
)
STALE_TRIES = 5


@dataclass(frozen=True, slots=True)
class QueryRequest:
    """One request: whose key asks what, under which request key, with which body."""

    token: str | None
    question: Question | Opening
    text: str  # canonical text of the body
    body_hash: str
    request_key: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A stored answer: these very bytes are what every delivery sends."""

    text: str
    replayed: bool
    reused: bool


class Priced(Protocol):
    """A plan as a charge needs it."""

    @property
    def loss(self) -> Loss: ...

    @property
    def theorem(self) -> str: ...

    @property
    def digest(self) -> str: ...

    @property
    def pinning(self) -> ChargedCells: ...

    @property
    def cells_shown(self) -> list[Any] | None: ...

    @property
    def record(self) -> dict[str, Any]: ...


P = TypeVar("P", bound=Priced)
Made = TypeVar("Made", bound=Priced, covariant=True)
Answering = Callable[[Principal, Dataset, P], PreparedAnswer | None]


class Plans(Protocol[Made]):
    """Makes plans, or has them at hand."""

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
    """A durable charge and what was charged for: the engine may be asked."""

    order: ChargeOrder
    plan: P
    dataset: Dataset
    charge: Charged


class ChargedAction(Generic[P]):
    """One request under one charge. What is done for it is of each kind its own."""

    ledger: Ledger
    catalogue: Catalogue
    readiness: DatasetReadiness
    planner: Plans[P]
    planning: PlanningThreads
    lease_seconds: float
    release_grid_seconds: float

    async def _begin(
        self, asked: QueryRequest, at_once: Answering[P] | None = None
    ) -> OpenCharge[P] | Settled:
        """Charge, or find what was stored before; raises the refusal. What can be answered at once
        is stored with its charge."""
        crash_point("F1")
        for _ in range(STALE_TRIES):
            principal = await self.catalogue.principal(asked.token)
            principal.must_be(Role.ANALYST)
            number = self.catalogue.number
            # Before anything that takes time: without a grant nothing shows that a name is known.
            grant = await self.catalogue.grant(asked.question.dataset, principal.holders)
            dataset = grant.dataset
            if self.catalogue.number != number:  # both must be of one state
                continue
            order, plan = await self._order(principal, asked, grant, at_once)
            outcome = await self.ledger.submit(order)
            if not isinstance(outcome, StaleCatalogue):
                break
            self.catalogue.forget(outcome.catalogue)
        else:
            raise StillRunning("People or datasets keep changing.", retry_after_seconds=1)
        if isinstance(outcome, Settled):
            return outcome
        assert isinstance(outcome, Charged)
        return OpenCharge(order, plan, dataset, outcome)

    async def _refusal(self, principal: Principal, dataset: Dataset, plan: P) -> AppError | None:
        """Why nothing new may be charged for this plan now."""
        return await self.readiness.refusal(dataset)

    async def _order(
        self,
        principal: Principal,
        asked: QueryRequest,
        grant: Grant,
        at_once: Answering[P] | None,
    ) -> tuple[ChargeOrder, P]:
        number, dataset = self.catalogue.number, grant.dataset
        analyst_id, currencies = principal.analyst_id, grant.currencies
        plan = self.planner.kept(analyst_id, dataset, asked.text, currencies)
        if plan is None:
            make = partial(
                self.planner.plan, analyst_id, asked.question, dataset, asked.text, currencies
            )
            plan = await self.planning.run(analyst_id, make)
        order = ChargeOrder(
            charge_id=new_id("q"),
            analyst_id=principal.analyst_id,
            holders=principal.holders,
            actor=principal.name,
            request_key=asked.request_key,
            body_hash=asked.body_hash,
            dataset_id=dataset.id,
            dataset_name=dataset.name,
            version_id=dataset.version.id,
            book_id=dataset.book_id,
            plan_digest=plan.digest,
            loss=plan.loss,
            cells=plan.pinning.cells,
            cells_shown=plan.cells_shown,
            question=asked.text,
            record=plan.record,
            theorem=plan.theorem,
            fresh=asked.question.fresh,
            refusal=await self._refusal(principal, dataset, plan),
            catalogue=number,
            lease_seconds=self.lease_seconds,
            at_once=None if at_once is None else at_once(principal, dataset, plan),
        )
        return order, plan

    async def _forfeit(self, charge: Charged, leaving: Leaving) -> Reply:
        return await self._settled(ForfeitOrder(charge.charge_id, charge.attempt, leaving))

    async def _settled(self, order: RecordOrder | ForfeitOrder | VoidOrder) -> Reply:
        """What depends on rows leaves at a public time; the store shows nothing of it before."""
        outcome = await self.ledger.submit(order)
        assert isinstance(outcome, Settled)
        return await reply_when_visible(outcome)


async def reply_when_visible(outcome: Settled) -> Reply:
    """When its point of the grid has come."""
    if outcome.wait_seconds:
        await asyncio.sleep(outcome.wait_seconds)
    return reply_from(outcome)


def reply_from(outcome: object) -> Reply:
    """What is told of a settled request."""
    assert isinstance(outcome, Settled)
    match outcome.state:
        case State.ANSWERED:
            assert outcome.answer is not None
            return Reply(outcome.answer, outcome.replayed, outcome.reused)
        case State.FORFEITED:
            raise QuestionForfeited(FORFEITED, id=outcome.charge_id, retryable=False)
        case State.VOIDED:
            raise QuestionVoided(VOIDED, id=outcome.charge_id, retryable=False)
        case State.CHARGED:  # another attempt has taken over and is not done
            raise StillRunning(
                "Another attempt is answering.",
                retry_after_seconds=1,
                charge_id=outcome.charge_id,
            )
