"""Ask a stream: claim one of its asks, query the engine, store the answer, and only then reply.

The steps are those of a query, with CLAIM instead of CHARGE, because the opening of the stream has
paid for all its asks. One ask at a time holds a stream; others wait for a moment.
"""

import asyncio
import json
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from app.access import Principal, Role
from app.actions.asking.charge import STALE_TRIES, Reply, count_settled, reply_from
from app.actions.asking.readiness import DatasetReadiness
from app.actions.scheduling.slots import Slots
from app.caches import owned_by
from app.data.card import Dataset
from app.errors import (
    AppError,
    Conflict,
    EngineUnavailable,
    SecretUnavailable,
    StillRunning,
    StreamEnded,
)
from app.fault_points import crash_point
from app.ledger.leaving import Leaving
from app.ledger.orders import Settled, StaleCatalogue
from app.ledger.stream_orders import (
    AnswerAskOrder,
    Claimed,
    ClaimOrder,
    ForfeitAskOrder,
    NoisyNodes,
    Stream,
    StreamBusy,
)
from app.mechanisms.release import RandomSource
from app.mechanisms.streams.above_threshold import AboveThreshold
from app.mechanisms.streams.tree_counter import exact_counts, nodes
from app.mechanisms.work import Work
from app.names import new_id
from app.planning.duration import slot_seconds
from app.planning.stream_ask import Ask, AskPlan, plan_ask
from app.ports.engines import Engine, Engines
from app.ports.ledger import Catalogue, Ledger, SecretBox, Streams
from app.ports.telemetry import UNOBSERVED, Observer

BUSY_SECONDS = 10.0
POLL_SECONDS = 0.02
REPLACED = (
    "The rows were replaced after this stream was opened: it counts again from the next epoch on."
)
BUSY = "Another ask of this stream is still running."


@dataclass(frozen=True, slots=True)
class StreamAskRequest:
    """One request: key of the analyst, stream, ask, and request key."""

    token: str | None
    stream_id: str
    ask: Ask
    text: str  # canonical text of the body
    body_hash: str
    request_key: str


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Members of an ask's answer, and its change of the stream."""

    members: dict[str, Any]
    crossed: bool
    nodes: NoisyNodes


@dataclass(slots=True)
class AskStream:
    ledger: Ledger
    catalogue: Catalogue
    engines: Engines
    readiness: DatasetReadiness
    streams: Streams
    noise: RandomSource
    seal: SecretBox
    slots: Slots
    lease_seconds: float
    release_grid_seconds: float = 0.0
    slot_factor: float = 1.0
    observer: Observer = UNOBSERVED

    async def __call__(self, request: StreamAskRequest) -> Reply:
        crash_point("F1")
        for _ in range(STALE_TRIES):
            principal = await self.catalogue.principal(request.token)
            principal.must_be(Role.ANALYST)
            number = self.catalogue.number
            owned = partial(self.streams.one, request.stream_id, analyst_id=principal.analyst_id)
            stream = await asyncio.to_thread(owned)
            dataset = await self.catalogue.dataset(stream.dataset)
            if self.catalogue.number != number:  # both must belong to one state of the catalogue
                continue
            plan = plan_ask(stream.opening, stream.parameters, request.ask, dataset.card)
            secret, refusal = await self._refusal(stream, plan, dataset)
            order = _claim(request, principal, dataset, refusal, number, self.lease_seconds)
            outcome = await self._submitted(order)
            if not isinstance(outcome, StaleCatalogue):
                break
            self.catalogue.forget(outcome.catalogue)
        else:
            raise StillRunning("People or datasets keep changing.", retry_after_seconds=1)
        if isinstance(outcome, Settled):
            self._count(outcome)
            reply = reply_from(outcome)
        else:
            assert isinstance(outcome, Claimed)
            reply = await self._run(stream, plan, dataset, secret, outcome)
        return replace(reply, book_id=dataset.book_id)

    async def _refusal(
        self, stream: Stream, plan: AskPlan, dataset: Dataset
    ) -> tuple[int | None, AppError | None]:
        """The stream's secret, and the reason why no new ask is allowed now."""
        secret: int | None = None
        if stream.secret is not None:
            try:
                secret = int(self.seal.open(stream.secret, stream.id))
            except SecretUnavailable as lost:
                return None, lost
        if plan.epochs_max is not None:
            if dataset.version.number > plan.epochs_max:
                ended = "This stream has ended: the dataset has more epochs than it was opened for."
                return secret, StreamEnded(ended)
            if dataset.version.number == 1 and dataset.version.digest != stream.digest:
                # The first node is drawn once, and may have been drawn from the old rows.
                return secret, Conflict(REPLACED)
        return secret, await self.readiness.refusal(dataset)

    async def _submitted(self, order: ClaimOrder) -> object:
        """Submit the claim, and wait while another ask holds the stream."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + BUSY_SECONDS
        while isinstance(outcome := await self.ledger.submit(order), StreamBusy):
            if loop.time() >= deadline:
                raise StillRunning(BUSY, retry_after_seconds=1)
            await asyncio.sleep(min(outcome.wait_seconds + 0.001, POLL_SECONDS))
        return outcome

    async def _run(
        self, stream: Stream, plan: AskPlan, dataset: Dataset, secret: int | None, claim: Claimed
    ) -> Reply:
        """Query the engine under a durable claim; only the current attempt may settle it."""
        crash_point("F4")
        soon = Leaving(self.release_grid_seconds)
        forfeit = ForfeitAskOrder(claim.ask_id, stream.id, claim.attempt, claim.fence, soon)
        if claim.version_id != dataset.version.id:  # an earlier attempt used another version
            return await self._settled(forfeit)
        if stream.secret is not None and secret is None:
            raise SecretUnavailable("This server cannot decrypt this stream's secret.")
        engine = self.engines.engine(dataset.source.engine)
        seconds = slot_seconds(
            Work.of(plan.tally), dataset.card, dataset.source.engine, self.slot_factor
        )
        slot = self.slots.arrive(stream.analyst_id, seconds)
        try:
            await slot.begun
            work = slot.start(partial(self._draw, engine, stream, plan, dataset, secret, claim))
        finally:
            slot.abandon()
        leaving = soon._replace(first_seconds=slot.first_seconds(soon.grid_seconds))
        try:
            drawn = await work
        except Exception:  # noqa: BLE001  # data may have been read: a second draw would be a choice
            return await self._settled(replace(forfeit, leaving=leaving))
        slot.overran = leaving.overran(slot.seconds_since_arrival())
        answer = AnswerAskOrder(
            claim.ask_id,
            stream.id,
            claim.attempt,
            claim.fence,
            answer_text(stream, dataset, claim, drawn),
            drawn.crossed,
            drawn.nodes,
            leaving,
        )
        try:
            return await self._settled(answer)
        finally:
            self.slots.report(slot, "stream")

    async def _settled(self, order: AnswerAskOrder | ForfeitAskOrder) -> Reply:
        outcome = await self.ledger.submit(order)
        if isinstance(outcome, Settled):
            if outcome.wait_seconds:
                await asyncio.sleep(outcome.wait_seconds)
            self._count(outcome)
        return reply_from(outcome)

    def _count(self, outcome: Settled) -> None:
        """Count a settled ask when it may be shown."""
        if not outcome.replayed:
            self.observer.count("asks")
        count_settled(self.observer, outcome)

    def _draw(
        self,
        engine: Engine,
        stream: Stream,
        plan: AskPlan,
        dataset: Dataset,
        secret: int | None,
        claim: Claimed,
    ) -> _Drawn:
        with owned_by(stream.analyst_id):
            return self._read(engine, stream, plan, dataset, secret, claim)

    def _read(
        self,
        engine: Engine,
        stream: Stream,
        plan: AskPlan,
        dataset: Dataset,
        secret: int | None,
        claim: Claimed,
    ) -> _Drawn:
        if engine.is_missing(dataset):
            raise EngineUnavailable("The prepared data are gone; nothing was read.")
        crash_point("F5")
        if isinstance(plan.counter, AboveThreshold):
            assert secret is not None
            assert claim.crossings_left is not None
            exact = engine.exact(dataset, plan.tally, stream.analyst_id)
            crash_point("F6")
            above = plan.counter.is_above(exact[0][0], secret, self.noise)
            crash_point("F7")
            left = {"crossings_left": claim.crossings_left - above, "asks_left": claim.asks_left}
            return _Drawn({"above": above, **left}, above, {})
        epoch = dataset.version.number
        missing = [node for node in nodes(epoch) if node not in claim.nodes]
        new: NoisyNodes = {}
        if missing:
            by_epoch = engine.epochs(dataset, plan.tally.where)
            crash_point("F6")
            counts = exact_counts(missing, lambda each: by_epoch[each - 1])
            new = plan.counter.draw(missing, counts, self.noise)
        crash_point("F7")
        figure = plan.counter.figure(epoch, {**claim.nodes, **new}, plan.confidence)
        members = {"value": figure.value, "interval": figure.interval(plan.confidence)}
        return _Drawn(members, False, new)


def _claim(
    request: StreamAskRequest,
    principal: Principal,
    dataset: Dataset,
    refusal: AppError | None,
    catalogue: int,
    lease_seconds: float,
) -> ClaimOrder:
    return ClaimOrder(
        ask_id=new_id("a"),
        stream_id=request.stream_id,
        analyst_id=principal.analyst_id,
        request_key=request.request_key,
        body_hash=request.body_hash,
        question=request.text,
        version_id=dataset.version.id,
        refusal=refusal,
        catalogue=catalogue,
        lease_seconds=lease_seconds,
    )


def answer_text(stream: Stream, dataset: Dataset, claim: Claimed, drawn: _Drawn) -> str:
    """JSON of an ask's answer: written once, stored, and sent as stored."""
    members = {
        "id": claim.ask_id,
        "stream": stream.id,
        "status": "answered",
        "epoch": dataset.version.number,
        **drawn.members,
    }
    return json.dumps(members, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
