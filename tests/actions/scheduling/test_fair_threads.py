"""Threads that analysts share in turns."""

import asyncio
from collections.abc import Callable, Coroutine
from threading import Event
from typing import Any

import pytest

from app.actions.scheduling.fair_threads import FairThreads


def run(body: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(body())


def noting(order: list[str], name: str) -> Callable[[], None]:
    return lambda: order.append(name)


def test_results_and_errors_reach_their_caller() -> None:
    async def body() -> None:
        threads = FairThreads("test", 2, 2)
        assert await threads.submit("ada", lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            await threads.submit("ada", lambda: 1 // 0)
        results = await asyncio.gather(*(threads.submit("ada", lambda: 1) for _ in range(500)))
        assert sum(results) == 500
        threads.pool.shutdown()

    run(body)


def test_analysts_take_turns_for_queues_of_any_length() -> None:
    async def body() -> None:
        threads, free = FairThreads("test", 1, 1), Event()
        order: list[str] = []
        first = threads.submit("busy", free.wait)
        work = [threads.submit("busy", noting(order, f"busy {n}")) for n in range(3)]
        work += [threads.submit("other", noting(order, f"other {n}")) for n in range(2)]
        free.set()
        await asyncio.gather(first, *work)
        assert order == ["busy 0", "other 0", "busy 1", "other 1", "busy 2"]
        threads.pool.shutdown()

    run(body)


def test_one_analyst_never_takes_the_last_thread_from_another() -> None:
    async def body() -> None:
        threads, free = FairThreads("test", 2, threads_each=1), Event()
        held = [threads.submit("busy", free.wait) for _ in range(3)]
        assert await threads.submit("other", lambda: "served") == "served"
        assert threads.waiting("busy") == 2
        free.set()
        assert await asyncio.gather(*held) == [True] * 3
        threads.pool.shutdown()

    run(body)


def test_waiting_work_can_be_withdrawn_and_running_work_cannot() -> None:
    async def body() -> None:
        threads, running, free = FairThreads("test", 1, 1), Event(), Event()
        order: list[str] = []

        def hold() -> None:
            running.set()
            free.wait()

        first = threads.submit("ada", hold)
        second = threads.submit("ada", noting(order, "second"))
        third = threads.submit("ada", noting(order, "third"))
        await asyncio.to_thread(running.wait)
        assert threads.withdraw("ada", second)
        assert not threads.withdraw("ada", first)
        assert second.cancelled()
        free.set()
        await asyncio.gather(first, third)
        assert order == ["third"]
        threads.pool.shutdown()

    run(body)


def test_an_unawaited_result_does_no_harm() -> None:
    async def body() -> None:
        threads, free = FairThreads("test", 1, 1), Event()
        first, second = (threads.submit("ada", free.wait) for _ in range(2))
        first.cancel()
        free.set()
        assert await second
        threads.pool.shutdown()

    run(body)
