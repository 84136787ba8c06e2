"""Answer a query: plan, charge, query the engine, store the answer, and only then reply.

`charge.py` keeps this order, which the privacy guarantee needs. This file does the work of a
charge.
"""

import asyncio
import re
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from app.access import Principal
from app.actions.asking.charge import (
    ChargedAction,
    OpenCharge,
    QueryRequest,
    Reply,
    SettledCharge,
)
from app.actions.asking.engine_data import EngineData
from app.actions.asking.leased_run import LeasedRun, kept_alive
from app.actions.asking.readiness import DatasetReadiness
from app.actions.scheduling.background import Background
from app.actions.scheduling.planning_threads import PlanningThreads
from app.actions.scheduling.slots import STORE_SECONDS, Slot, Slots, Turn
from app.caches import owned_by
from app.data.card import Dataset
from app.errors import AppError, EngineFailed, EngineUnavailable, StillRunning, TooManyRunning
from app.fault_points import crash_point
from app.ledger.leaving import Leaving
from app.ledger.orders import Charged, PreparedAnswer, RecordOrder, VoidOrder
from app.mechanisms.answer_json import ENCODER
from app.mechanisms.noise.additive import AdditiveRelease
from app.mechanisms.release import RandomSource
from app.planning.duration import slot_seconds
from app.planning.plan import Plan, Planner
from app.ports.engines import Engine, Engines
from app.ports.ledger import Catalogue, Ledger
from app.ports.telemetry import UNOBSERVED, Observer

WITHHELD = re.compile(r'\{"id":"[^"]*","status":"withheld",')
INLINE_GROUPS_MAX = 16
UNREAD = "cancelled before any data were read"


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Public limits on durations and counts."""

    answer_seconds: float  # after this the caller gets a reply to come back; the work continues
    engine_seconds: float  # after this a query may read no more data
    learning_seconds: float  # the same, for a run of many steps
    running_max: int = 1000  # queries running or waiting; more are refused
    running_each: int = 100  # the same, for one analyst
    slot_factor: float = 1.0  # slowness of this machine: a multiple of the reference machine's time


@dataclass(frozen=True, slots=True)
class Accepted:
    """The query is charged and still running; `text` is the reply meanwhile."""

    id: str
    text: str


@dataclass(slots=True)
class AnswerQuery(ChargedAction[Plan]):
    ledger: Ledger
    catalogue: Catalogue
    engines: Engines
    readiness: DatasetReadiness
    noise: RandomSource
    planner: Planner
    planning: PlanningThreads
    slots: Slots
    background: Background
    lease_seconds: float
    limits: AnswerLimits
    release_grid_seconds: float = 0.0
    observer: Observer = UNOBSERVED

    async def __call__(
        self, request: QueryRequest, wait_seconds: float | None = None
    ) -> Reply | Accepted:
        """Return the answer if it may be shown before the caller's or our own patience ends.

        Longer work continues in the background, even if the caller leaves.
        """
        patience = self.limits.answer_seconds
        if wait_seconds is not None:
            patience = min(patience, wait_seconds)

        def at_once(principal: Principal, dataset: Dataset, plan: Plan) -> PreparedAnswer | None:
            return self._at_once(principal, dataset, plan, patience)

        try:
            begun = await self._begin(request, at_once)
        except StillRunning as running:
            if wait_seconds is None or running.charge_id is None:
                raise
            return accepted(running.charge_id, running.charged)
        if isinstance(begun, SettledCharge):
            return await self._reply(begun.outcome, begun.book_id)
        crash_point("F4")
        if self.release_grid_seconds < patience:
            exact = self._cached_exact(begun)
            if exact is not None:
                return await self._answer_here(begun, exact)
        work = self.background.start(self._answer(begun), begun.order.analyst_id)
        if patience > 0:
            await asyncio.wait([work], timeout=patience)
        return (
            work.result() if work.done() else accepted(begun.charge.charge_id, begun.charge.charged)
        )

    @override
    async def _refusal(self, principal: Principal, dataset: Dataset, plan: Plan) -> AppError | None:
        if len(self.background) >= self.limits.running_max:
            return TooManyRunning("Too many questions are being answered; nothing was charged.")
        if self.background.of(principal.analyst_id) >= self.limits.running_each:
            return TooManyRunning(
                f"You have {self.limits.running_each} questions running or waiting: ask again when "
                "one is answered. Nothing was charged."
            )
        return await ChargedAction._refusal(self, principal, dataset, plan)

    @property
    def _soon(self) -> Leaving:
        """Leave at the next time-grid point: for results that took no private time."""
        return Leaving(self.release_grid_seconds)

    def _at_once(
        self, principal: Principal, dataset: Dataset, plan: Plan, patience: float
    ) -> PreparedAnswer | None:
        """Prepare an answer that the charging commit can store, if one is possible.

        The noise must not depend on data, and the analyst must have paid to read the exact result
        before. Then neither the time it takes nor a crash during it reveals anything, and one
        commit is as safe as two (decision 0003).
        """
        grid = self.release_grid_seconds
        if not isinstance(plan.release, AdditiveRelease) or grid >= patience:
            return None
        exact = self._remembered(dataset, plan, principal.analyst_id)
        return None if exact is None else PreparedAnswer(SingleDraw(plan, exact, self.noise), grid)

    def _cached_exact(self, begun: OpenCharge[Plan]) -> Any:
        if begun.charge.version_id != begun.dataset.version.id:
            return None
        return self._remembered(begun.dataset, begun.plan, begun.order.analyst_id)

    def _remembered(self, dataset: Dataset, plan: Plan, analyst_id: str) -> Any:
        """Exact result read for this analyst before, if drawing from it is fast."""
        release = plan.release
        if not release.is_instant or release.tally.group_count() > INLINE_GROUPS_MAX:
            return None
        engine = self.engines.engine(dataset.source.engine)
        return engine.cached(dataset, release.tally, analyst_id)

    async def _answer_here(self, begun: OpenCharge[Plan], exact: Any) -> Reply:
        crash_point("F5")
        try:
            answer = self._noisy(begun, exact)
        except Exception:  # noqa: BLE001  # a second draw would be a choice between two answers
            return await self._lose(begun, self._soon)
        with self.observer.span("record"):
            return await self._record(begun, answer, self._soon)

    async def _answer(self, begun: OpenCharge[Plan]) -> Reply:
        """Answer in a slot, under a lease that is renewed; only the current attempt may settle."""
        charge, plan = begun.charge, begun.plan
        if charge.version_id != begun.dataset.version.id:  # an earlier attempt used another version
            return await self._lose(begun, self._soon)
        run, slot = self._run(plan), self._slot(begun)
        if self.release_grid_seconds:
            run.progress = slot.progress
        try:
            async with kept_alive(
                run, self.ledger, charge, self.lease_seconds, self.release_grid_seconds
            ):
                return await self._answer_in_slot(begun, run, slot)
        finally:
            slot.abandon()
            self.slots.report(slot, plan.question.query.kind)

    async def _answer_in_slot(
        self, begun: OpenCharge[Plan], run: LeasedRun, slot: Slot | Turn
    ) -> Reply:
        """Run the query in its slot.

        The public slot alone decides whether a cancelled query is refunded: no row is read before
        the slot begins.
        """
        if not await run.unless_cancelled(slot.begun):
            return await self._give_back(begun, UNREAD, self._soon)
        work = slot.start(lambda: self._ask(begun, run))
        leaving = Leaving(self.release_grid_seconds, slot.first_seconds(self.release_grid_seconds))
        if not await run.unless_cancelled(work):
            if slot.withdraw():
                return await self._give_back(begun, UNREAD, self._soon)
            return await self._lose(begun, self._soon)
        if not await self._until_it_may_be_stored(begun, run, slot, leaving):
            return await self._lose(begun, self._soon)
        try:
            answer = work.result()
        except EngineUnavailable:
            reason = "the prepared data were gone; none was read"
            return await self._give_back(begun, reason, leaving)
        except Exception:  # noqa: BLE001  # data may have been read: a second draw would be a choice
            return await self._lose(begun, leaving)
        return await self._record(begun, answer, leaving)

    async def _until_it_may_be_stored(
        self, begun: OpenCharge[Plan], run: LeasedRun, slot: Slot | Turn, leaving: Leaving
    ) -> bool:
        """Wait for the last grid step before the reply may leave; False if cancelled meanwhile.

        A stored answer cannot be cancelled. If it were stored as soon as the work is done, the
        duration of the work would decide between answer and cancellation.
        """
        if not leaving.first_seconds:
            return True
        run.done = True  # its lease is still renewed, and a cancellation is still noticed
        taken = slot.seconds_since_arrival()
        rung = leaving.rung(taken)
        slot.overran = leaving.overran(taken)
        spare = max(leaving.grid_seconds, STORE_SECONDS)
        return rung - spare <= taken or await run.unless_cancelled(seconds=rung - spare - taken)

    def _slot(self, begun: OpenCharge[Plan]) -> Slot | Turn:
        release, dataset = begun.plan.release, begun.dataset
        seconds = slot_seconds(
            release.work, dataset.card, dataset.source.engine, self.limits.slot_factor
        )
        stepped = release.steps is not None
        return self.slots.arrive(begun.order.analyst_id, seconds, stepped=stepped)

    def _run(self, plan: Plan) -> LeasedRun:
        steps, limits = plan.release.steps, self.limits
        if steps is not None:
            return LeasedRun(steps, limits.learning_seconds)
        return LeasedRun(None, limits.engine_seconds, quiet_seconds=limits.engine_seconds)

    def _ask(self, begun: OpenCharge[Plan], run: LeasedRun) -> str:
        run.checkpoint(0)
        dataset, release = begun.dataset, begun.plan.release
        engine = self.engines.engine(dataset.source.engine)
        self._must_be_there(engine, dataset)
        crash_point("F5")
        with (
            owned_by(begun.order.analyst_id),
            engine.stoppable(run),
            EngineData(engine, dataset, begun.order.analyst_id, run) as data,
        ):
            return self._noisy(begun, release.read(data))

    async def _record(self, begun: OpenCharge[Plan], answer: str, leaving: Leaving) -> Reply:
        charge = begun.charge
        return await self._settled(RecordOrder(charge.charge_id, charge.attempt, answer, leaving))

    async def _lose(self, begun: OpenCharge[Plan], leaving: Leaving) -> Reply:
        return await self._forfeit(begun.charge, leaving)

    async def _give_back(self, begun: OpenCharge[Plan], reason: str, leaving: Leaving) -> Reply:
        """Refund the charge: this attempt read nothing. An earlier, vanished attempt may have."""
        order, charge = begun.order, begun.charge
        if charge.attempt > 1:
            return await self._lose(begun, leaving)
        return await self._settled(
            VoidOrder(
                charge.charge_id,
                charge.attempt,
                order.book_id,
                charge.payers(),
                order.loss,
                order.cells,
                reason=reason,
                leaving=leaving,
            )
        )

    def _must_be_there(self, engine: Engine, dataset: Dataset) -> None:
        if engine.is_missing(dataset):
            raise EngineUnavailable("The prepared data are gone; nothing was read.")

    def _noisy(self, begun: OpenCharge[Plan], exact: Any) -> str:
        crash_point("F6")
        answer = begun.plan.answer(exact, self.noise)
        crash_point("F7")
        return answer_text(begun.charge, begun.plan, answer)


@dataclass(slots=True)
class SingleDraw:
    """An answer drawn once from a cached exact result.

    A batch whose commit failed is decided again. It gets the answer drawn before, or the same
    failure.
    """

    plan: Plan
    exact: Any
    noise: RandomSource
    _begun: bool = False
    _answer: dict[str, Any] | None = None

    def __call__(self, charge: Charged) -> str:
        if not self._begun:
            self._begun = True
            crash_point("F6")
            self._answer = self.plan.answer(self.exact, self.noise)
            crash_point("F7")
        if self._answer is None:
            raise EngineFailed("There is no answer, and there will be none.")
        return answer_text(charge, self.plan, self._answer)


def accepted(charge_id: str, charged: str) -> Accepted:
    """Reply for a running query: the same bytes each time, and nothing depends on data."""
    return Accepted(charge_id, f'{{"id":"{charge_id}","status":"running",{charged[1:]}')


def answer_text(charge: Charged, plan: Plan, answer: dict[str, Any]) -> str:
    """JSON of an answer: written once, stored, and sent as stored.

    The members fixed by the charge come last, as the text committed with it. A release that may be
    withheld states its status.
    """
    value, interval = ENCODER.encode(answer["value"]), ENCODER.encode(answer["interval"])
    more = "".join(
        f'"{name}":{ENCODER.encode(answer[name])},'
        for name in ("bound", "padding")
        if name in answer
    )
    return (
        f'{{"id":"{charge.charge_id}","status":"{answer.get("status", "answered")}",'
        f'"value":{value},"mechanism":{plan.mechanism_text},"interval":{interval},'
        f"{more}{charge.charged[1:]}"
    )


def status_of(text: str) -> str:
    """Status of a stored answer."""
    return "withheld" if WITHHELD.match(text) else "answered"
