"""Leases of runs: renewed while a run makes progress, and a run can be stopped."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest
from typing_extensions import override

from app.actions.asking import leased_run
from app.actions.asking.leased_run import LeasedRun, kept_alive
from app.errors import EngineFailed, StoreUnavailable
from app.ledger.account import Account
from app.ledger.orders import Charged, LeaseRenewed, Outcome, ProgressOrder, WriterOrder
from tests.actions.clock import until
from tests.engines.clock import HOUR, Clock


def test_a_stopped_run_ends_at_its_next_checkpoint() -> None:
    run = LeasedRun(10, limit_seconds=60)
    assert run.is_alive(run.moves)
    run.checkpoint(0)
    run.checkpoint(3)
    assert (run.step, run.is_alive(run.moves)) == (3, False)
    run.end()
    with pytest.raises(EngineFailed):
        run.checkpoint(4)
    assert run.step == 3


def test_a_run_past_its_time_limit_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(leased_run, "time", clock)
    run = LeasedRun(10, limit_seconds=HOUR / 2)
    clock.jump()
    run.checkpoint(0)  # waiting does not count
    run.checkpoint(1)
    clock.jump()
    with pytest.raises(EngineFailed):
        run.checkpoint(2)


class Listening:
    """A ledger that records progress."""

    def __init__(self, outcome: Callable[[int], LeaseRenewed]) -> None:
        self.heard: list[ProgressOrder] = []
        self._outcome = outcome

    def has_heard(self, times: int) -> bool:
        return len(self.heard) >= times

    async def submit(self, order: WriterOrder) -> Outcome:
        assert isinstance(order, ProgressOrder)
        self.heard.append(order)
        return self._outcome(len(self.heard))

    def known_account(self, book_id: str, holders: tuple[str, ...]) -> Account | None:
        raise NotImplementedError

    async def accounts(self, book_id: str, holders: list[str]) -> dict[str, Account]:
        raise NotImplementedError

    async def answered(self, reuse_key: str) -> bool:
        raise NotImplementedError


CHARGE = Charged("q_1", 2, "v_1", "{}")


class Watched(LeasedRun):
    """A thread that counts checks of whether it is alive."""

    looks = 0

    @override
    def is_alive(self, moves_seen: int) -> bool:
        self.looks += 1
        return super().is_alive(moves_seen)


def run_with(ledger: Listening, work: Callable[[Watched], Coroutine[Any, Any, None]]) -> LeasedRun:
    run = Watched(10, limit_seconds=600)

    async def main() -> None:
        async with asyncio.timeout(60), kept_alive(run, ledger, CHARGE, 0.06):
            await work(run)

    asyncio.run(main())
    return run


def test_a_run_that_progresses_is_renewed_and_one_that_hangs_is_not() -> None:
    ledger = Listening(lambda _: LeaseRenewed(held=True))

    async def moves_and_hangs(run: Watched) -> None:
        await until(partial(ledger.has_heard, 3))  # while it waits for a thread
        for step in range(5):
            moved = len(ledger.heard)
            run.checkpoint(step)
            await until(partial(ledger.has_heard, moved + 1))
        moved, looked = len(ledger.heard), run.looks
        await until(lambda: run.looks >= looked + 5)
        assert len(ledger.heard) <= moved + 1

    run = run_with(ledger, moves_and_hangs)
    assert {(o.charge_id, o.attempt, o.steps) for o in ledger.heard} == {("q_1", 2, 10)}
    steps = [order.step for order in ledger.heard if order.step is not None]
    assert steps == sorted(steps)
    assert max(steps) == 4
    with pytest.raises(EngineFailed):
        run.checkpoint(5)  # nobody awaits it any more


def test_a_finished_run_is_renewed_until_the_end_of_its_slot() -> None:
    """Otherwise its lease ends before its answer is stored, and another attempt draws again."""
    run = LeasedRun(10, limit_seconds=60)
    run.checkpoint(9)
    assert not run.is_alive(run.moves)
    run.done = True
    assert run.is_alive(run.moves)


def test_a_run_that_was_taken_over_is_ended() -> None:
    ledger = Listening(lambda number: LeaseRenewed(held=number < 2))

    async def goes_on(run: LeasedRun) -> None:
        while True:
            run.checkpoint(run.step + 1)
            await asyncio.sleep(0.02)

    with pytest.raises(EngineFailed):
        run_with(ledger, goes_on)
    assert len(ledger.heard) == 2


def test_a_temporary_failure_of_the_ledger_ends_no_run() -> None:
    def away(number: int) -> LeaseRenewed:
        if number < 4:
            raise StoreUnavailable("away")
        return LeaseRenewed(held=True)

    ledger = Listening(away)

    async def goes_on(run: LeasedRun) -> None:
        while len(ledger.heard) <= 4:
            run.checkpoint(run.step)
            await asyncio.sleep(0.005)

    run_with(ledger, goes_on)
