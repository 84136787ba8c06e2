"""Waiting for data to be prepared: who waits, and in which thread."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from app.actions.asking.readiness import DatasetReadiness
from app.errors import DatasetClosed, SourceChanged
from tests.actions.service import Service, service_in


def slow(service: Service, monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, list[str]]:
    """The real engine, whose `prepare` waits for a signal; with a list of its callers."""
    engine: Any = service.stores.engines.engine("duckdb")
    sign, came, real = threading.Event(), [], engine.prepare

    def prepare(dataset: Any) -> None:
        came.append(dataset.name)
        assert sign.wait(30)
        real(dataset)

    monkeypatch.setattr(engine, "prepare", prepare)
    return sign, came


def test_one_thread_serves_all_who_wait_for_the_same_data(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise questions about other data would wait for a thread."""
    with service_in(tmp_path) as service:
        sign, came = slow(service, monkeypatch)

        async def run() -> None:
            with ThreadPoolExecutor(2) as threads:
                readiness = DatasetReadiness(service.stores.engines, threads)
                waiting = [
                    asyncio.create_task(readiness.refusal(service.dataset)) for _ in range(20)
                ]
                while not came:
                    await asyncio.sleep(0.01)
                free = asyncio.get_running_loop().run_in_executor(threads, lambda: "free")
                try:
                    assert await asyncio.wait_for(free, 20) == "free"
                    assert came == ["people"]
                finally:
                    sign.set()  # otherwise the threads would never end
                assert await asyncio.gather(*waiting) == [None] * 20

        asyncio.run(run())


def test_every_waiting_caller_learns_of_a_change(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service_in(tmp_path) as service:
        service.file.write_text("age\n1\n")
        sign, _ = slow(service, monkeypatch)
        sign.set()

        async def run() -> None:
            with ThreadPoolExecutor(2) as threads:
                readiness = DatasetReadiness(service.stores.engines, threads)
                asked = (readiness.refusal(service.dataset) for _ in range(5))
                found = await asyncio.gather(*asked)
                assert [type(each) for each in found] == [SourceChanged] * 5

        asyncio.run(run())


def test_a_closed_dataset_is_not_read(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with service_in(tmp_path) as service:
        _, came = slow(service, monkeypatch)
        closed = service.stores.datasets.alter(
            "admin", "people", description=None, closed=True, reason=None
        )

        async def run() -> None:
            with ThreadPoolExecutor(1) as threads:
                readiness = DatasetReadiness(service.stores.engines, threads)
                assert isinstance(await readiness.refusal(closed), DatasetClosed)

        asyncio.run(run())
        assert came == []
