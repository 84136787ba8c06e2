"""Work that outlives the request that started it, and ends with the server at the latest."""

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine
from typing import Any, TypeVar

from app.errors import AppError

T = TypeVar("T")
_log = logging.getLogger("bursar.background")


class Background:
    """Running tasks of one event loop. It holds only weak references, so this keeps them alive."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[Any], str] = {}
        self._of: Counter[str] = Counter()

    def start(self, work: Coroutine[Any, Any, T], analyst_id: str) -> "asyncio.Task[T]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = analyst_id
        self._of[analyst_id] += 1
        task.add_done_callback(self._over)
        return task

    def of(self, analyst_id: str) -> int:
        """Number of running tasks of an analyst."""
        return self._of.get(analyst_id, 0)

    def __len__(self) -> int:
        return len(self._tasks)

    async def stop(self) -> None:
        """Cancel unfinished tasks, as if the server had vanished."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _over(self, task: "asyncio.Task[Any]") -> None:
        """Forget a finished task; its outcome is in the ledger.

        Only the type of an unexpected error is logged, because its text may contain a value.
        """
        analyst_id = self._tasks.pop(task)
        self._of[analyst_id] -= 1
        if not self._of[analyst_id]:
            del self._of[analyst_id]
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, AppError):
            _log.error("unexpected %s", type(error).__name__)
