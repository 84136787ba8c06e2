"""Answer a question: plan, charge, ask the engine, store, and only then speak.

The order is the promise. Nothing before the charge reads data; nothing after it changes the price;
what is sent is what was stored, read back after its commit.
"""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from app.access import Principal, Role
from app.actions.engine_data import EngineData
from app.actions.long_run import LongRun, kept_alive
from app.datasets import Dataset
from app.errors import (
    AppError,
    DatasetClosed,
    EngineUnavailable,
    Invalid,
    NoGrant,
    QuestionForfeited,
    QuestionVoided,
    StillRunning,
)
from app.faults import reach
from app.interfaces import Catalogue, Engine, Engines, Ledger
from app.ledger.account import EVERYBODY, NO_GRANT
from app.ledger.protocol import (
    Charged,
    ChargeOrder,
    ForfeitOrder,
    RecordOrder,
    Settled,
    Stale,
    State,
    VoidOrder,
)
from app.mechanisms.release import Noise
from app.mechanisms.withholding import ENCODER
from app.names import new_id
from app.planning.plan import Plan, Planner
from app.planning.question import Question

FORFEITED = (
    "The question was charged but could not be answered. It never will be under this "
    "Idempotency-Key, and what was charged stays charged."
)
VOIDED = (
    "The prepared data were gone, so nothing was read and the charge was given back. Ask again "
    "with a new Idempotency-Key."
)
WITHHELD = re.compile(r'\{"id":"[^"]*","status":"withheld",')
STALE_TRIES = 5
INLINE_GROUPS_MAX = 16
STEPS_A_GRID = 10  # steps of a run that share one interval of the release grid


@dataclass(frozen=True, slots=True)
class AskedOnce:
    """One request: whose key asks what, under which request key, with which body."""

    token: str | None
    question: Question
    text: str  # canonical text of the body
    body_hash: str
    request_key: str


@dataclass(frozen=True, slots=True)
class Reply:
    """A stored answer: these very bytes are what every delivery sends."""

    text: str
    replayed: bool
    reused: bool


@dataclass(slots=True)
class AnswerQuery:
    ledger: Ledger
    catalogue: Catalogue
    engines: Engines
    noise: Noise
    planner: Planner
    threads: ThreadPoolExecutor
    learners: ThreadPoolExecutor  # for runs of minutes: other questions must not wait for them
    lease_seconds: float
    learning_seconds: float
    release_grid_seconds: float = 0.0
    _ready: set[str] = field(default_factory=set)  # versions seen ready; looking costs 70 us

    async def __call__(self, asked: AskedOnce) -> Reply:
        reach("F1")
        for _ in range(STALE_TRIES):
            principal = await self.catalogue.principal(asked.token)
            principal.must_be(Role.ANALYST)
            number = self.catalogue.number
            dataset = await self.catalogue.dataset(asked.question.dataset)
            if self.catalogue.number != number:  # both must be of one state
                continue
            try:
                order, plan = await self._order(principal, asked, dataset)
            except Invalid:
                await self._must_have_grant(principal, dataset)
                raise
            outcome = await self.ledger.submit(order)
            if not isinstance(outcome, Stale):
                break
            self.catalogue.forget(outcome.catalogue)
        else:
            raise StillRunning("People or datasets keep changing.", retry_after_seconds=1)
        if isinstance(outcome, Settled):
            return self._reply(outcome)
        assert isinstance(outcome, Charged)
        return await self._run(order, plan, dataset, outcome)

    async def _refusal(self, principal: Principal, dataset: Dataset) -> AppError | None:
        """Why nothing new may be charged on this dataset now. A version that this server has not
        prepared is prepared here, for no question and before any charge."""
        if dataset.closed:
            return DatasetClosed("This dataset is closed: nothing new is answered about it.")
        if dataset.version.id in self._ready:
            return None
        engine = self.engines.engine(dataset.source.engine)
        if not engine.ready(dataset):
            await self._must_have_grant(principal, dataset)
            try:
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(self.threads, engine.prepare, dataset)
            except EngineUnavailable:
                return EngineUnavailable("The data cannot be opened now; nothing was charged.")
        self._ready.add(dataset.version.id)
        return None

    async def _must_have_grant(self, principal: Principal, dataset: Dataset) -> None:
        """What is wrong with a question is told only to those who may ask it."""
        holders = [*principal.holders, EVERYBODY]
        accounts = await self.ledger.accounts(dataset.book_id, holders)
        if EVERYBODY not in accounts or len(accounts) < 2:
            raise NoGrant(NO_GRANT)

    async def _order(
        self, principal: Principal, asked: AskedOnce, dataset: Dataset
    ) -> tuple[ChargeOrder, Plan]:
        number = self.catalogue.number
        currencies = await self.catalogue.currencies(dataset.book_id, principal.holders)
        plan = self.planner.kept(dataset, asked.text, currencies)
        if plan is None:
            plan = await asyncio.get_running_loop().run_in_executor(
                self.threads, self.planner.plan, asked.question, dataset, asked.text, currencies
            )
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
            celled=dataset.celled,
            question=asked.text,
            record=plan.record,
            theorem=plan.release.theorem,
            fresh=asked.question.fresh,
            refusal=await self._refusal(principal, dataset),
            catalogue=number,
            lease_seconds=self.lease_seconds,
        )
        return order, plan

    async def _run(
        self, order: ChargeOrder, plan: Plan, dataset: Dataset, charge: Charged
    ) -> Reply:
        """Ask the engine under a durable charge; only the current attempt may settle it."""
        reach("F4")
        if charge.version_id != dataset.version.id:  # an earlier attempt asked another version
            return await self._forfeit(charge, plan)
        engine = self.engines.engine(dataset.source.engine)
        try:
            answer = await self._draw(engine, order, plan, dataset, charge)
        except EngineUnavailable:
            # Nothing was read by us; but an earlier attempt that vanished may have read.
            if charge.attempt > 1:
                return await self._forfeit(charge, plan)
            void = VoidOrder(
                charge.charge_id,
                charge.attempt,
                order.book_id,
                charge.payers(),
                order.loss,
                order.cells,
                order.celled,
                reason="the prepared data were gone; none was read",
                grid_seconds=self._grid(plan),
            )
            return await self._settled(void)
        except Exception:  # noqa: BLE001  # data may have been read: drawing again would choose
            return await self._forfeit(charge, plan)
        grid = self._grid(plan)
        return await self._settled(RecordOrder(charge.charge_id, charge.attempt, answer, grid))

    def _grid(self, plan: Plan) -> float:
        """The time grid of what depends on data. A run goes through the rows with each of its
        steps, so that each row takes that many times longer: its grid is coarser."""
        return self.release_grid_seconds * max(1, (plan.release.steps or 0) // STEPS_A_GRID)

    async def _forfeit(self, charge: Charged, plan: Plan) -> Reply:
        grid = self._grid(plan)
        return await self._settled(ForfeitOrder(charge.charge_id, charge.attempt, grid))

    async def _settled(self, order: RecordOrder | ForfeitOrder | VoidOrder) -> Reply:
        """What depends on data leaves on a fixed time grid, so that its time tells nothing finer;
        the store tells nothing of it before either."""
        outcome = await self.ledger.submit(order)
        if isinstance(outcome, Settled) and outcome.wait_seconds:
            await asyncio.sleep(outcome.wait_seconds)
        return self._reply(outcome)

    async def _draw(
        self, engine: Engine, order: ChargeOrder, plan: Plan, dataset: Dataset, charge: Charged
    ) -> str:
        """What is at hand and small is drawn here; anything else in a thread."""
        asker = order.analyst_id
        if plan.release.steps is not None:
            return await self._run_long(engine, plan, plan.release.steps, dataset, charge, asker)
        if plan.release.quick and plan.release.tally.group_count() <= INLINE_GROUPS_MAX:
            exact = engine.cached(dataset, plan.release.tally, asker)
            if exact is not None:
                reach("F5")
                return self._noisy(plan, charge, exact)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self.threads, self._ask, engine, plan, dataset, charge, asker
        )

    def _ask(
        self,
        engine: Engine,
        plan: Plan,
        dataset: Dataset,
        charge: Charged,
        asker: str,
        run: LongRun | None = None,
    ) -> str:
        self._must_be_there(engine, dataset)
        reach("F5")
        with EngineData(engine, dataset, asker, run) as data:
            return self._noisy(plan, charge, plan.release.read(data))

    async def _run_long(
        self,
        engine: Engine,
        plan: Plan,
        steps: int,
        dataset: Dataset,
        charge: Charged,
        asker: str,
    ) -> str:
        run = LongRun(steps, self.learning_seconds)

        def ran() -> str:
            run.reached(0)
            return self._ask(engine, plan, dataset, charge, asker, run)

        async with kept_alive(run, self.ledger, charge, self.lease_seconds):
            return await asyncio.get_running_loop().run_in_executor(self.learners, ran)

    def _must_be_there(self, engine: Engine, dataset: Dataset) -> None:
        if not engine.ready(dataset):
            self._ready.discard(dataset.version.id)
            raise EngineUnavailable("The prepared data are gone; nothing was read.")

    def _noisy(self, plan: Plan, charge: Charged, exact: Any) -> str:
        reach("F6")
        answer = plan.answer(exact, self.noise)
        reach("F7")
        return answer_text(charge, plan, answer)

    def _reply(self, outcome: object) -> Reply:
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
                raise StillRunning("Another attempt is answering.", retry_after_seconds=1)


def answer_text(charge: Charged, plan: Plan, answer: dict[str, Any]) -> str:
    """Written once, stored, and sent as stored. The members that the charge fixed come last, as
    the text that was committed with it. A release that may be withheld says which it is."""
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
    """Of an answer as it is stored."""
    return "withheld" if WITHHELD.match(text) else "answered"
