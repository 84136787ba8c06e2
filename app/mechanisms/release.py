"""A release that is ready to be charged and run: what every mechanism prepares.

Everything in it is known before any row is read; only `answer` sees exact statistics, and all that
it returns is released.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from typing_extensions import override

from app.accounting.loss import Loss
from app.data.card import Card
from app.mechanisms.work import Work
from app.queries import Query
from app.queries.block_tally import BlockCounts, BlockTally
from app.queries.tally import (
    EdgeTally,
    Exact,
    GraphCounts,
    KeyBatch,
    KeyTally,
    Matrix,
    Records,
    StepCounts,
    StepTally,
    Tally,
)


class Noise(Protocol):
    """Where all randomness comes from (`sampling/system.py`)."""

    def discrete_laplace(self, scale: float, size: int) -> list[int]: ...

    def discrete_gaussian(self, scale: float, size: int) -> list[int]: ...

    def below(self, bound: int) -> int:
        """A whole number from 0 to bound - 1, each as likely."""
        ...

    def words(self, size: int) -> Sequence[int]:
        """Independent whole numbers from 0 to 2^64 - 1, each as likely."""
        ...


class Data(Protocol):
    """The version of the data that a question is charged for, as its release may read it."""

    def exact(self, tally: Tally) -> Exact: ...

    def steps(self, wanted: StepTally) -> StepCounts: ...

    def graph(self, wanted: EdgeTally) -> GraphCounts: ...

    def blocks(self, wanted: BlockTally) -> BlockCounts: ...

    def records(self, wanted: Records) -> Iterable[Matrix]: ...

    def keys(self, wanted: KeyTally) -> Iterable[KeyBatch]: ...

    def reached(self, step: int) -> None:
        """Said often by a release that runs in steps; raises if the run is to end."""
        ...


class Release(Protocol):
    """A question's mechanism with its price and its error."""

    @property
    def tally(self) -> Tally:
        """The rows that count and their public groups; for most releases all that is read."""
        ...

    @property
    def quick(self) -> bool:
        """Is a draw for few groups a matter of microseconds, so that nobody waits for it?"""
        ...

    @property
    def loss(self) -> Loss: ...

    @property
    def theorem(self) -> str: ...

    @property
    def spread(self) -> tuple[float, ...]:
        """How far answers spread, in a unit that all mechanisms for one question share: the planner
        takes the least."""
        ...

    @property
    def steps(self) -> int | None:
        """How many, if it runs so long that its progress is worth telling."""
        ...

    @property
    def work(self) -> Work:
        """Public measures of what an answer takes: its slot is planned from them."""
        ...

    @property
    def groups(self) -> int | None:
        """How many groups are answered for; None if that is not public."""
        ...

    def warm(self, confidence: float) -> None:
        """Work out what the answer needs of public facts, where that takes long: planning is the
        place for it, not the slot."""
        ...

    def read(self, data: Data) -> Any:
        """What the answer is made of: exact, or a way to it."""
        ...

    def answer(
        self, exact: Any, noise: Noise, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        """The answer's own members, `value` and `interval` among them, from what was read."""
        ...

    def describe(self) -> dict[str, Any]:
        """What the analyst is told of the mechanism; its `kind` among it."""
        ...

    def record(self) -> dict[str, Any]:
        """What the ledger's entry says of it, `mechanism` among it."""
        ...

    def expected_error(self, confidence: float) -> dict[str, Any]:
        """From public facts alone; null where it depends on what would be released."""
        ...


class AtOnce:
    """What most releases share: they run at once, for one group, and somebody waits for it."""

    __slots__ = ()

    @property
    def quick(self) -> bool:
        return False

    @property
    def steps(self) -> int | None:
        return None

    @property
    def groups(self) -> int | None:
        return 1

    def warm(self, confidence: float) -> None:
        return None


class OneTally(AtOnce, ABC):
    """Those that are answered from one tally."""

    __slots__ = ()

    @property
    @abstractmethod
    def tally(self) -> Tally: ...

    @property
    @override
    def groups(self) -> int | None:
        return self.tally.group_count()

    @property
    def work(self) -> Work:
        return Work.of(self.tally)

    def read(self, data: Data) -> Any:
        return data.exact(self.tally)
