"""Open a stream: charged in full, exactly like a query.

The stream's secret is stored with the answer, so that one charge never has two of them.
"""

import json
from dataclasses import dataclass

from typing_extensions import override

from app.access import Principal
from app.actions.asking.charge import (
    ChargedAction,
    QueryRequest,
    Reply,
    SettledCharge,
)
from app.actions.asking.readiness import DatasetReadiness
from app.actions.scheduling.planning_threads import PlanningThreads
from app.data.card import Dataset
from app.errors import AppError, SecretUnavailable
from app.fault_points import crash_point
from app.ledger.chain import canonical
from app.ledger.leaving import Leaving
from app.ledger.orders import Charged, ChargeOrder, RecordOrder
from app.ledger.stream_orders import NewStream, stream_of
from app.mechanisms.release import RandomSource
from app.mechanisms.streams.above_threshold import AboveThreshold
from app.planning.stream_request import StreamPlan, StreamPlanner
from app.ports.ledger import Catalogue, Ledger, SecretBox
from app.ports.telemetry import UNOBSERVED, Observer


@dataclass(slots=True)
class OpenStream(ChargedAction[StreamPlan]):
    ledger: Ledger
    catalogue: Catalogue
    readiness: DatasetReadiness
    noise: RandomSource
    seal: SecretBox
    planner: StreamPlanner
    planning: PlanningThreads
    lease_seconds: float
    release_grid_seconds: float = 0.0
    observer: Observer = UNOBSERVED

    @override
    async def _refusal(
        self, principal: Principal, dataset: Dataset, plan: StreamPlan
    ) -> AppError | None:
        if isinstance(plan.counter, AboveThreshold):
            try:
                self.seal.check()
            except SecretUnavailable as missing:
                return missing
        return await ChargedAction._refusal(self, principal, dataset, plan)

    async def __call__(self, request: QueryRequest) -> Reply:
        """Open a stream. No row is read: the noise depends on nothing but the plan."""
        begun = await self._begin(request)
        if isinstance(begun, SettledCharge):
            return await self._reply(begun.outcome)
        crash_point("F4")
        charge = begun.charge
        try:
            stream = self._made(begun.order, begun.plan, charge)
        except SecretUnavailable:
            return await self._forfeit(charge, Leaving(self.release_grid_seconds))
        answer = opening_text(stream, begun.plan, begun.dataset.name, charge)
        leaving = Leaving(self.release_grid_seconds)
        return await self._settled(
            RecordOrder(charge.charge_id, charge.attempt, answer, leaving, stream)
        )

    def _made(self, order: ChargeOrder, plan: StreamPlan, charge: Charged) -> NewStream:
        secret = None
        if isinstance(plan.counter, AboveThreshold):
            drawn = plan.counter.draw_threshold(self.noise)
            secret = self.seal.close(str(drawn), stream_of(charge.charge_id))
        crash_point("F7")
        return NewStream(
            analyst_id=order.analyst_id,
            charge_id=charge.charge_id,
            dataset_id=order.dataset_id,
            kind=plan.opening.stream.kind,
            parameters=canonical(plan.mechanism),
            secret=secret,
            crossings=plan.crossings,
            asks_max=plan.asks_max,
        )


def opening_text(stream: NewStream, plan: StreamPlan, dataset: str, charge: Charged) -> str:
    """JSON of the opened stream: written once, stored, and sent as stored.

    The members fixed by the charge come last, as the text committed with it.
    """
    members = {
        "id": stream.id,
        "status": "open",
        "dataset": dataset,
        "stream": plan.opening.stream.model_dump(mode="json", by_alias=True),
        "mechanism": plan.mechanism,
        "crossings_left": stream.crossings,
        "asks_left": stream.asks_max,
        "query": charge.charge_id,
    }
    text = json.dumps(members, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return f"{text[:-1]},{charge.charged[1:]}"
