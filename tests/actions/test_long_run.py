"""Runs of many steps: kept alive while they move, ended when they may not go on."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from app.actions.charging import Reply
from app.actions.long_run import LongRun, kept_alive
from app.datasets import Dataset
from app.engines.duckdb import DuckDBEngine
from app.errors import EngineFailed, QuestionForfeited, StillRunning, StoreUnavailable
from app.ledger.account import EVERYBODY, Account
from app.ledger.protocol import Charged, Noted, Order, Outcome, ProgressOrder
from app.ledger.records import Asked
from app.queries.statistics import Matrix, Records
from tests.actions.service import Service, service_in

QUESTION: dict[str, Any] = {
    "dataset": "people",
    "query": {"kind": "logistic_regression", "outcome": "member", "features": ["age"]},
    "privacy": {"rho": "0.1"},
}
LEASE_SECONDS = 0.3


# The run by itself


def test_a_run_is_ended_where_it_next_says_how_far_it_is() -> None:
    run = LongRun(10, limit_seconds=60)
    assert run.is_alive(run.moves)
    run.reached(0)
    run.reached(3)
    assert (run.step, run.is_alive(run.moves)) == (3, False)
    run.end()
    with pytest.raises(EngineFailed):
        run.reached(4)
    assert run.step == 3


def test_a_run_that_lasts_too_long_is_ended() -> None:
    run = LongRun(10, limit_seconds=0.05)
    time.sleep(0.1)
    run.reached(0)  # waiting does not count
    time.sleep(0.1)
    with pytest.raises(EngineFailed):
        run.reached(1)


class Listening:
    """A ledger that hears of progress."""

    def __init__(self, outcome: Callable[[int], Noted]) -> None:
        self.heard: list[ProgressOrder] = []
        self._outcome = outcome

    async def submit(self, order: Order) -> Outcome:
        assert isinstance(order, ProgressOrder)
        self.heard.append(order)
        return self._outcome(len(self.heard))

    async def accounts(self, book_id: str, holders: list[str]) -> dict[str, Account]:
        raise NotImplementedError

    async def answered(self, reuse_key: str) -> bool:
        raise NotImplementedError


CHARGE = Charged("q_1", 2, "v_1", "{}")


def run_with(ledger: Listening, work: Callable[[LongRun], Coroutine[Any, Any, None]]) -> LongRun:
    run = LongRun(10, limit_seconds=60)

    async def main() -> None:
        async with kept_alive(run, ledger, CHARGE, 0.06):
            await work(run)

    asyncio.run(main())
    return run


def test_a_run_that_moves_is_renewed_and_one_that_hangs_is_not() -> None:
    ledger = Listening(lambda _: Noted(held=True))

    async def moves_and_hangs(run: LongRun) -> None:
        await asyncio.sleep(0.1)  # waits for a thread
        waited = len(ledger.heard)
        assert waited >= 3
        for step in range(5):
            run.reached(step)
            await asyncio.sleep(0.04)
        moved = len(ledger.heard)
        assert moved >= waited + 4
        await asyncio.sleep(0.2)
        assert len(ledger.heard) <= moved + 1

    run = run_with(ledger, moves_and_hangs)
    assert {(o.charge_id, o.attempt, o.steps) for o in ledger.heard} == {("q_1", 2, 10)}
    steps = [order.step for order in ledger.heard if order.step is not None]
    assert steps == sorted(steps)
    assert max(steps) == 4
    with pytest.raises(EngineFailed):
        run.reached(5)  # nobody awaits it any more


def test_a_run_that_is_done_is_renewed_until_the_end_of_its_slot() -> None:
    """Otherwise its lease ends before its answer is stored, and another attempt draws again."""
    run = LongRun(10, limit_seconds=60)
    run.reached(9)
    assert not run.is_alive(run.moves)
    run.done = True
    assert run.is_alive(run.moves)


def test_a_run_that_was_taken_over_is_ended() -> None:
    ledger = Listening(lambda number: Noted(held=number < 2))

    async def goes_on(run: LongRun) -> None:
        while True:
            run.reached(run.step + 1)
            await asyncio.sleep(0.02)

    with pytest.raises(EngineFailed):
        run_with(ledger, goes_on)
    assert len(ledger.heard) == 2


def test_a_ledger_that_is_away_for_a_while_ends_nothing() -> None:
    def away(number: int) -> Noted:
        if number < 4:
            raise StoreUnavailable("away")
        return Noted(held=True)

    ledger = Listening(away)

    async def goes_on(run: LongRun) -> None:
        for step in range(10):
            run.reached(step)
            await asyncio.sleep(0.03)

    run_with(ledger, goes_on)
    assert len(ledger.heard) > 4


# With a real ledger and engine


class Slow(DuckDBEngine):
    """A batch takes a while, and says that it was asked for."""

    batches = 0
    seconds = 0.05

    @override
    def records(self, dataset: Dataset, wanted: Records) -> Iterable[Matrix]:
        return _Slowly(super().records(dataset, wanted), self)


class _Slowly:
    def __init__(self, rows: Iterable[Matrix], engine: Slow) -> None:
        self._rows, self._engine = rows, engine

    def __iter__(self) -> Iterator[Matrix]:
        for batch in self._rows:
            time.sleep(self._engine.seconds)
            self._engine.batches += 1
            yield batch


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with service_in(tmp_path, lease_seconds=LEASE_SECONDS) as made:
        for holder in (EVERYBODY, "ann"):
            made.grant(holder, "10", delta=Decimal("1e-6"), currency="zcdp")
        settings = {"home": tmp_path, "data_roots": (tmp_path / "data",)}
        made.stores.engines._loaded["duckdb"] = Slow(**settings)  # type: ignore[arg-type]
        yield made


def asked(service: Service) -> list[Asked]:
    return service.stores.history.asked(analyst_id=None, after=None, limit=10)


def question(steps: int) -> dict[str, Any]:
    return QUESTION | {"mechanism": {"kind": "noisy_gradient_descent", "steps": steps}}


@contextmanager
def serving() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop of its own, as a server has."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def submit(
    service: Service, loop: asyncio.AbstractEventLoop, body: dict[str, Any], key: str
) -> Future[Reply]:
    return asyncio.run_coroutine_threadsafe(service.reply(body, key=key), loop)


def test_a_run_longer_than_its_lease_is_not_taken_over_and_tells_its_steps(
    service: Service,
) -> None:
    with serving() as loop:
        running = submit(service, loop, question(30), "k")
        seen, refused = [], 0
        while not running.done():
            time.sleep(0.05)
            seen += [each.progress for each in asked(service) if each.progress]
            if seen:  # it may end meanwhile, and then its answer is told
                again = submit(service, loop, question(30), "k")
                refused += isinstance(again.exception(), StillRunning)
                assert again.exception() or again.result().replayed
        reply = running.result()
    assert refused >= 3
    answer = json.loads(reply.text)
    assert answer["status"] == "answered"
    assert [item["term"] for item in answer["value"]["coefficients"]] == ["(intercept)", "age"]
    steps = [step for step, _ in seen]
    assert {of for _, of in seen} == {30}
    assert steps == sorted(steps)
    assert len(set(steps)) >= 3
    (only,) = asked(service)
    assert only.answer == reply.text
    assert service.sound()


def test_a_run_whose_attempt_was_taken_over_stops_and_tells_what_the_other_stored(
    service: Service,
) -> None:
    """The first one hangs for longer than its lease, in the middle of a step."""
    engine = service.stores.engines.engine("duckdb")
    assert isinstance(engine, Slow)
    with serving() as loop:
        engine.seconds = 1.5
        first = submit(service, loop, question(2), "k")
        while not asked(service):
            time.sleep(0.02)
        time.sleep(2 * LEASE_SECONDS)
        engine.seconds = 0.0
        second = submit(service, loop, question(2), "k").result()
        try:
            assert first.result().text == second.text
        except StillRunning:
            pytest.fail("the second had answered by then")
    (only,) = asked(service)
    assert only.answer == second.text
    assert service.sound()


def test_a_run_that_lasts_too_long_is_forfeited_and_stays_charged(service: Service) -> None:
    service.answer_query.limits = replace(service.answer_query.limits, learning_seconds=0.1)
    with pytest.raises(QuestionForfeited):
        asyncio.run(service.answer_query(service.asked(question(100), key="k")))
    (only,) = asked(service)
    assert only.state == "forfeited"
    assert service.account("ann").balance.common[2] > 0


def test_a_server_that_is_told_to_stop_ends_its_runs_and_leaves_the_charges_to_be_taken_over(
    service: Service,
) -> None:
    """A request that is cancelled alone ends nothing: its caller may come back for the answer."""
    slow = service.stores.engines.engine("duckdb")
    assert isinstance(slow, Slow)
    engine: Slow = slow

    async def stopped() -> None:
        task = asyncio.create_task(service.answer_query(service.asked(question(500), key="k")))
        while not asked(service):
            await asyncio.sleep(0.02)
        async with asyncio.timeout(30):  # on a busy machine
            while not engine.batches:
                await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        moved = engine.batches
        async with asyncio.timeout(30):
            while not engine.batches > moved:
                await asyncio.sleep(0.02)
        await service.answer_query.background.stop()

    asyncio.run(stopped())
    for pool in service.slots.pools:
        pool.shutdown(wait=True)  # it would go on for 500 steps
    assert engine.batches < 400
    (only,) = asked(service)
    assert only.state == "charged"


def test_rows_that_are_few_are_learned_from_all_the_same(service: Service) -> None:
    engine = service.stores.engines.engine("duckdb")
    assert isinstance(engine, Slow)
    engine.seconds = 0.0
    reply = asyncio.run(service.answer_query(service.asked(question(5), key="k")))
    values = [item["value"] for item in json.loads(reply.text)["value"]["coefficients"]]
    assert np.all(np.isfinite(values))
    assert engine.batches == 5
