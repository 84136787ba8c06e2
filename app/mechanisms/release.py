"""Release protocol: a prepared mechanism, ready to be charged and run.

Everything in a release is known before any row is read. Only `answer` sees exact statistics, and
everything it returns is released.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from typing_extensions import override

from app.accounting.loss import Loss
from app.data.card import Card
from app.mechanisms.expected_error import ExpectedError
from app.mechanisms.work import Work
from app.queries import Query
from app.queries.block_tally import BlockCounts, BlockTally
from app.queries.tally import (
    Exact,
    GraphCounts,
    GraphCountsRequest,
    KeyBatch,
    KeyCountsRequest,
    Matrix,
    Records,
    StepCounts,
    StepHistogram,
    Tally,
)


class RandomSource(Protocol):
    """Source of all randomness (`sampling/system.py`)."""

    def discrete_laplace(self, scale: float, size: int) -> list[int]: ...

    def discrete_gaussian(self, scale: float, size: int) -> list[int]: ...

    def below(self, bound: int) -> int:
        """Uniform integer from 0 to bound - 1."""
        ...

    def words(self, size: int) -> Sequence[int]:
        """Independent uniform integers from 0 to 2^64 - 1."""
        ...


class DataReader(Protocol):
    """Read access of a release to the data version that its query is charged for."""

    def exact(self, tally: Tally) -> Exact: ...

    def steps(self, request: StepHistogram) -> StepCounts: ...

    def graph(self, request: GraphCountsRequest) -> GraphCounts: ...

    def blocks(self, request: BlockTally) -> BlockCounts: ...

    def records(self, request: Records) -> Iterable[Matrix]: ...

    def keys(self, request: KeyCountsRequest) -> Iterable[KeyBatch]: ...

    def checkpoint(self, step: int) -> None:
        """Report progress from a release that runs in steps; raises if the run must end."""
        ...


class Release(Protocol):
    """A query's mechanism with its price and its error."""

    @property
    def tally(self) -> Tally:
        """The rows that count, and their public groups. Most releases read nothing else."""
        ...

    @property
    def is_instant(self) -> bool:
        """True if sampling for a few groups takes microseconds, so it can run on the event loop."""
        ...

    @property
    def loss(self) -> Loss: ...

    @property
    def theorem(self) -> str: ...

    @property
    def standard_deviations(self) -> tuple[float, ...]:
        """Spread of the answers, in a unit that all mechanisms for one query share. The planner
        chooses the least."""
        ...

    @property
    def steps(self) -> int | None:
        """Number of steps, if the run is long enough to report progress; otherwise None."""
        ...

    @property
    def work(self) -> Work:
        """Public measures of the work an answer takes; its time slot is planned from them."""
        ...

    @property
    def groups(self) -> int | None:
        """Number of groups in the answer; None if that is not public."""
        ...

    def warm(self, confidence: float) -> None:
        """Precompute slow public quantities during planning, so that they take no time from the
        slot.
        """
        ...

    def read(self, data: DataReader) -> Any:
        """Read the input of `answer`: exact statistics, or a way to obtain them."""
        ...

    def answer(
        self, exact: Any, noise: RandomSource, *, query: Query, card: Card, confidence: float
    ) -> dict[str, Any]:
        """Members of the answer, including `value` and `interval`, computed from the input."""
        ...

    def describe(self) -> dict[str, Any]:
        """Description of the mechanism for the analyst, including its `kind`."""
        ...

    def ledger_entry(self) -> dict[str, Any]:
        """Description of the mechanism in the ledger entry, including `mechanism`."""
        ...

    def expected_error(self, confidence: float, rows: int | None = None) -> ExpectedError:
        """Expected error, from public facts alone. `rows`: the analyst's guess of the number of
        rows, for an estimate where the error depends on it."""
        ...


class SingleGroupRelease:
    """Defaults shared by most releases: one group, no steps, and too slow for the event loop."""

    __slots__ = ()

    @property
    def is_instant(self) -> bool:
        return False

    @property
    def steps(self) -> int | None:
        return None

    @property
    def groups(self) -> int | None:
        return 1

    def warm(self, confidence: float) -> None:
        return None


class OneTally(SingleGroupRelease, ABC):
    """A release that is answered from one tally."""

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

    def read(self, data: DataReader) -> Any:
        return data.exact(self.tally)
