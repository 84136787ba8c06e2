"""Answer a question: plan, charge, ask the engine, store, and only then speak.

The order is the promise, and is kept in `charging.py`; here is what is done under a charge.
"""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import override

from app.actions.charging import Charging, Reply
from app.actions.engine_data import EngineData
from app.actions.long_run import LongRun, kept_alive
from app.datasets import Dataset
from app.errors import EngineUnavailable
from app.faults import reach
from app.interfaces import Catalogue, Engine, Engines, Ledger
from app.ledger.protocol import Charged, ChargeOrder, RecordOrder, VoidOrder
from app.mechanisms.release import Noise
from app.mechanisms.withholding import ENCODER
from app.planning.plan import Plan, Planner

WITHHELD = re.compile(r'\{"id":"[^"]*","status":"withheld",')
INLINE_GROUPS_MAX = 16


@dataclass(slots=True)
class AnswerQuery(Charging[Plan]):
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
    _ready: set[str] = field(default_factory=set)

    @override
    async def _run(
        self, order: ChargeOrder, plan: Plan, dataset: Dataset, charge: Charged
    ) -> Reply:
        """Ask the engine under a durable charge; only the current attempt may settle it."""
        reach("F4")
        if charge.version_id != dataset.version.id:  # an earlier attempt asked another version
            return await self._forfeit(charge, self._grid(plan))
        engine = self.engines.engine(dataset.source.engine)
        try:
            answer = await self._draw(engine, order, plan, dataset, charge)
        except EngineUnavailable:
            # Nothing was read by us; but an earlier attempt that vanished may have read.
            if charge.attempt > 1:
                return await self._forfeit(charge, self._grid(plan))
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
            return await self._forfeit(charge, self._grid(plan))
        grid = self._grid(plan)
        return await self._settled(RecordOrder(charge.charge_id, charge.attempt, answer, grid))

    def _grid(self, plan: Plan) -> float:
        """The time grid of what depends on data."""
        return self.release_grid_seconds * plan.release.effort

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
        if engine.lasting and not engine.ready(dataset):
            self._ready.discard(dataset.version.id)
            raise EngineUnavailable("The prepared data are gone; nothing was read.")

    def _noisy(self, plan: Plan, charge: Charged, exact: Any) -> str:
        reach("F6")
        answer = plan.answer(exact, self.noise)
        reach("F7")
        return answer_text(charge, plan, answer)


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
