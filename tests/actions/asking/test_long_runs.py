"""Runs of many steps with a real ledger and engine: renewed, taken over, limited, stopped."""

import asyncio
import json
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typing_extensions import override

from app.actions.asking import leased_run
from app.actions.asking.charge import Reply
from app.data.card import Dataset
from app.engines.files.duckdb import DuckDBEngine
from app.errors import QuestionForfeited, StillRunning
from app.ledger.account import EVERYBODY
from app.ledger.records import QuestionRecord
from app.queries.tally import Matrix, Records
from tests.actions.clock import LedgerClock, until
from tests.actions.service import Service, service_in
from tests.bursard import wait_until

QUESTION: dict[str, Any] = {
    "dataset": "people",
    "query": {"kind": "logistic_regression", "outcome": "member", "features": ["age"]},
    "privacy": {"rho": "0.1"},
}
LEASE_SECONDS = 60.0
WAIT_SECONDS = 30  # until a test has failed


class Slow(DuckDBEngine):
    """An engine that counts its batches; each takes a while, or waits for permission."""

    batches = 0
    seconds = 0.0
    gate: threading.Semaphore | None = None

    @override
    def records(self, dataset: Dataset, wanted: Records) -> Iterable[Matrix]:
        return _Slowly(super().records(dataset, wanted), self)

    def close_gate(self) -> None:
        self.gate = threading.Semaphore(0)

    def let_go(self, batches: int) -> None:
        assert self.gate is not None
        self.gate.release(batches)


class _Slowly:
    def __init__(self, rows: Iterable[Matrix], engine: Slow) -> None:
        self._rows, self._engine = rows, engine

    def __iter__(self) -> Iterator[Matrix]:
        engine = self._engine
        for batch in self._rows:
            gate = engine.gate
            engine.batches += 1
            if gate is not None:
                assert gate.acquire(timeout=WAIT_SECONDS)
            time.sleep(engine.seconds)
            yield batch


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A service with leases far longer than any step, on a clock that jumps."""
    monkeypatch.setattr(leased_run, "LOOK_SECONDS", 0.02)
    with service_in(tmp_path, lease_seconds=LEASE_SECONDS) as made:
        for holder in (EVERYBODY, "ann"):
            made.grant(holder, "10", delta=Decimal("1e-6"), currency="zcdp")
        settings = {"home": tmp_path, "data_roots": (tmp_path / "data",)}
        made.stores.engines._loaded["duckdb"] = Slow(**settings)  # type: ignore[arg-type]
        yield made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> LedgerClock:
    return LedgerClock(monkeypatch)


def slow_engine(service: Service) -> Slow:
    engine = service.stores.engines.engine("duckdb")
    assert isinstance(engine, Slow)
    return engine


def history_of(service: Service) -> list[QuestionRecord]:
    return service.stores.history.asked(analyst_id=None, after=None, limit=10)


def question(steps: int) -> dict[str, Any]:
    return QUESTION | {"mechanism": {"kind": "noisy_gradient_descent", "steps": steps}}


@contextmanager
def serving() -> Iterator[asyncio.AbstractEventLoop]:
    """A separate event loop, as a server has."""
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


def test_a_run_longer_than_its_lease_is_not_taken_over_and_shows_its_steps(
    service: Service, clock: LedgerClock
) -> None:
    engine = slow_engine(service)
    engine.close_gate()

    def shown() -> tuple[int, int]:
        return next((record.progress for record in history_of(service) if record.progress), (0, 30))

    with serving() as loop:
        running = submit(service, loop, question(30), "k")
        seen: list[tuple[int, int]] = [(0, 30)]
        try:
            for _ in range(5):
                clock.jump(LEASE_SECONDS / 2)
                engine.let_go(4)  # further than the next tenth of all steps
                wait_until(lambda: shown() > seen[-1], WAIT_SECONDS, "the run made no progress")
                seen.append(shown())
                again = submit(service, loop, question(30), "k")
                assert isinstance(again.exception(WAIT_SECONDS), StillRunning)
        finally:
            engine.let_go(1000)
        reply = running.result(WAIT_SECONDS)
    answer = json.loads(reply.text)
    assert answer["status"] == "answered"
    assert [item["term"] for item in answer["value"]["coefficients"]] == ["(intercept)", "age"]
    steps = [step for step, _ in seen]
    assert {of for _, of in seen} == {30}
    assert steps == sorted(steps)
    assert steps[-1] < 30
    (only,) = history_of(service)
    assert only.answer == reply.text
    assert service.sound()


def test_a_run_whose_attempt_was_taken_over_stops_and_returns_the_stored_answer(
    service: Service, clock: LedgerClock
) -> None:
    """The first attempt hangs for longer than its lease, in the middle of a step."""
    engine = slow_engine(service)
    engine.close_gate()
    gate = engine.gate
    assert gate is not None
    with serving() as loop:
        first = submit(service, loop, question(2), "k")
        wait_until(lambda: engine.batches == 1, WAIT_SECONDS, "the first attempt does not read")
        engine.gate = None  # for other attempts
        try:
            second = taken_over(service, loop, clock)
        finally:
            gate.release(1000)
        assert first.result(WAIT_SECONDS).text == second.text
    (only,) = history_of(service)
    assert only.answer == second.text
    assert service.sound()


def taken_over(service: Service, loop: asyncio.AbstractEventLoop, clock: LedgerClock) -> Reply:
    """Wait until another attempt has taken over. The last progress of the first may have just
    renewed its lease, which then has to end once more."""
    for _ in range(10):
        clock.jump(LEASE_SECONDS + 1)
        again = submit(service, loop, question(2), "k")
        if not isinstance(again.exception(WAIT_SECONDS), StillRunning):
            return again.result()
    raise AssertionError("what hangs is kept alive")


def test_a_run_past_its_time_limit_is_forfeited_and_stays_charged(service: Service) -> None:
    slow_engine(service).seconds = 0.05
    service.answer_query.limits = replace(service.answer_query.limits, learning_seconds=0.1)
    with pytest.raises(QuestionForfeited):
        asyncio.run(service.answer_query(service.request(question(100), key="k")))
    (only,) = history_of(service)
    assert only.state == "forfeited"
    assert service.account("ann").balance.common[2] > 0


def test_a_stopping_server_ends_its_runs_and_leaves_the_charges_to_be_taken_over(
    service: Service,
) -> None:
    """Cancelling a single request ends nothing: its caller may poll for the answer."""
    engine = slow_engine(service)
    engine.close_gate()

    async def stopped() -> None:
        task = asyncio.create_task(service.answer_query(service.request(question(500), key="k")))
        async with asyncio.timeout(WAIT_SECONDS):
            await until(lambda: engine.batches == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            engine.let_go(1)
            await until(lambda: engine.batches == 2)
        await service.answer_query.background.stop()

    try:
        asyncio.run(stopped())
    finally:
        engine.let_go(1000)
    for pool in service.slots.pools:
        pool.shutdown(wait=True)  # it would continue for 500 steps
    assert engine.batches == 2
    (only,) = history_of(service)
    assert only.state == "charged"


def test_a_run_works_on_few_rows_too(service: Service) -> None:
    engine = slow_engine(service)
    reply = asyncio.run(service.answer_query(service.request(question(5), key="k")))
    values = [item["value"] for item in json.loads(reply.text)["value"]["coefficients"]]
    assert np.all(np.isfinite(values))
    assert engine.batches == 5
