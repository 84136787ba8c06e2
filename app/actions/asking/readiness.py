"""Whether a dataset can be queried now; checked before anything is charged."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from app.data.card import Dataset
from app.errors import AppError, DatasetClosed, EngineUnavailable, SourceChanged
from app.ports.engines import Engine, Engines

DATA_AWAY = (
    "The data cannot be opened now: their source is gone or cannot be reached. Nothing was charged."
)
DATA_CHANGED = (
    "The source has changed since it was registered. No question about it is answered until a new "
    "version is declared or the registered rows are restored. Nothing was charged."
)


@dataclass(slots=True)
class DatasetReadiness:
    """Readiness check. Used from one event loop."""

    engines: Engines
    threads: ThreadPoolExecutor
    _turns: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    async def refusal(self, dataset: Dataset) -> AppError | None:
        """Why no new query about this dataset is allowed now, or None.

        Prepares a version that this server has not prepared, and reads a source that may have
        changed. This serves no particular query and comes before any charge. Only for callers who
        have a grant.
        """
        if dataset.closed:
            return DatasetClosed("This dataset is closed: nothing new is answered about it.")
        engine = self.engines.engine(dataset.source.engine)
        if engine.ready(dataset):
            return None
        try:
            await self._prepare(engine, dataset)
        except SourceChanged:
            return SourceChanged(DATA_CHANGED)
        except EngineUnavailable:
            return EngineUnavailable(DATA_AWAY)
        return None

    async def _prepare(self, engine: Engine, dataset: Dataset) -> None:
        loop = asyncio.get_running_loop()
        if not engine.has_prepared_files:
            await loop.run_in_executor(self.threads, engine.prepare, dataset)
            return
        # Preparing may read all files. Others who need this version wait here, and not in a thread
        # that queries about other data need.
        version_id = dataset.version.id
        turn = self._turns.get(version_id)
        if turn is None:
            turn = self._turns[version_id] = asyncio.Lock()
        async with turn:
            if not engine.ready(dataset):
                await loop.run_in_executor(self.threads, engine.prepare, dataset)
