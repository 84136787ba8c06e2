"""Base of releases of private keys: the engine reads keys in batches, and the answer is bounded.

The answer holds the first KEYS_MAX of the released keys, in the order of the public groups and then
of the texts' code points. This is a function of the release, so it costs nothing and hides nothing
but the rest. An analyst who receives KEYS_MAX keys knows that there may be more.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from app.accounting.loss import Loss
from app.data.card import Card
from app.mechanisms.release import DataReader, RandomSource, SingleGroupRelease
from app.mechanisms.work import Work
from app.queries import Query
from app.queries.shapes.private_keys import PrivateKeysShape
from app.queries.tally import KeyBatch, KeyCountsRequest, Tally

KEYS_MAX = 100_000
KEY_NANOSECONDS = 3000.0  # time to read one key and to decide about it


@dataclass(frozen=True, slots=True)
class KeysRelease(SingleGroupRelease, ABC):
    """Keys to be released, and the price."""

    shape: PrivateKeysShape
    loss: Loss

    @property
    def tally(self) -> Tally:
        """The rows that count and their public groups, which decide the cells to charge."""
        return self.shape.tally

    @property
    def wanted(self) -> KeyCountsRequest:
        """The request for the engine."""
        return self.shape.wanted

    @property
    @override
    def groups(self) -> int | None:
        """None: the number of keys is private."""
        return None

    @property
    def work(self) -> Work:
        """Work per row. There may be as many keys as rows; their number is private."""
        return Work(leaves=self.tally.leaves(), row_nanoseconds=KEY_NANOSECONDS)

    def read(self, data: DataReader) -> Iterable[KeyBatch]:
        return data.keys(self.wanted)

    @abstractmethod
    def released(self, batch: KeyBatch, noise: RandomSource) -> Iterator[tuple[int, str, int]]:
        """Yield the released keys of a batch, as public group, text and number."""

    @abstractmethod
    def shown_keys(self, keys: KeyBatch, confidence: float) -> list[Any]:
        """The released keys in the form that an analyst reads."""

    def answer(
        self,
        exact: Iterable[KeyBatch],
        noise: RandomSource,
        *,
        query: Query,
        card: Card,
        confidence: float,
    ) -> dict[str, Any]:
        every = (key for batch in exact for key in self.released(batch, noise))
        return {"value": self.shown_keys(first_keys(every), confidence), "interval": None}


def first_keys(keys: Iterable[tuple[int, str, int]], most: int = KEYS_MAX) -> KeyBatch:
    """The first keys in order, with at most twice as many in memory at a time."""
    kept: KeyBatch = []
    for key in keys:
        kept.append(key)
        if len(kept) >= 2 * most:
            kept.sort()
            del kept[most:]
    kept.sort()
    return kept[:most]
