"""What actions and routes need from outside, as Protocols; `main.py` fills them with adapters."""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from app.access import Analyst, Key, Principal, Role
from app.accounting.loss import Loss
from app.accounting.rules.terms import GrantTerms
from app.data.card import Card, Dataset, EpochInspection, Inspection, PrivateFiles, Source
from app.ledger.account import Account
from app.ledger.chain import Entry
from app.ledger.orders import Order, Outcome
from app.ledger.precondition import Precondition
from app.ledger.records import EVERYTHING, Budget, QuestionRecord, Search
from app.ledger.stream_orders import Stream
from app.ledger.verification.lines import Line
from app.queries.block_tally import BlockCounts, BlockTally
from app.queries.tally import (
    Condition,
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

# The data


class Stop(Protocol):
    """Says that what is being read shall end."""

    @property
    def ended(self) -> bool: ...

    def telling(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Inside, the listener is called if it ends, from any thread; at once if it has ended."""
        ...


class Engine(Protocol):
    """Exact statistics over one kind of data source. Synchronous; called from a thread."""

    # Does what is prepared stay so? If not, `prepare` is no more than a look, at every question.
    has_prepared_files: bool

    def inspect(self, source: Source, card: Card) -> Inspection:
        """Check the card against names and types, never against values.

        Raises Invalid for a card that does not fit, EngineUnavailable for a source that cannot be
        read.
        """
        ...

    def inspect_epoch(self, dataset: Dataset, path: str) -> EpochInspection:
        """Check a file of new rows against the card and the first file, by names and types.

        Raises Invalid for a file that does not fit, EngineUnavailable for one that cannot be read.
        """
        ...

    def prepare(self, dataset: Dataset) -> None:
        """Make the dataset's version ready to be asked; for no question, and before any charge.

        Raises SourceChanged if the source is not what was registered, EngineUnavailable if it is
        gone or cannot be read.
        """
        ...

    def ready(self, dataset: Dataset) -> bool:
        """May it be asked without `prepare`: is the version prepared, and the source what was
        registered, as far as that is seen at a glance? Called before every charge, by whoever must
        not wait. Reads no row."""
        ...

    def is_missing(self, dataset: Dataset) -> bool:
        """Has the version that was prepared been deleted meanwhile? Reads no row."""
        ...

    def prepared(self) -> list[str]:
        """The versions that are prepared here, whoever needs them."""
        ...

    def drop(self, version_id: str) -> bool:
        """Delete what was prepared for a version that nobody needs; whether there was any."""
        ...

    def exact(self, dataset: Dataset, tally: Tally, asker: str) -> Exact:
        """The tally of the prepared version. Raises EngineFailed, always the same, never why."""
        ...

    def cached(self, dataset: Dataset, tally: Tally, asker: str) -> Exact | None:
        """The tally if this asker's is at hand, without waiting: versions never change. Another's
        is not used: that it is there would tell what the other asked."""
        ...

    def steps(self, dataset: Dataset, wanted: StepHistogram) -> StepCounts:
        """Counts of a column's values by stretches. Raises EngineFailed, always the same."""
        ...

    def graph(self, dataset: Dataset, wanted: GraphCountsRequest, asker: str) -> GraphCounts:
        """Counts of the graph that the rows are. Raises EngineFailed, always the same."""
        ...

    def blocks(self, dataset: Dataset, wanted: BlockTally) -> BlockCounts:
        """What blocks of a column's values are like. Raises EngineFailed, always the same."""
        ...

    def records(self, dataset: Dataset, wanted: Records) -> Iterable[Matrix]:
        """The rows of the prepared version in batches, in no order; each time it is gone through
        they are all there again. Raises EngineFailed meanwhile, always the same, never why."""
        ...

    def keys(self, dataset: Dataset, wanted: KeyCountsRequest) -> Generator[KeyBatch]:
        """The keys of the prepared version in batches, each key once; the next batch is read when
        it is asked for. Raises EngineFailed, at any batch, always the same, never why."""
        ...

    def epochs(self, dataset: Dataset, where: Condition | None) -> tuple[int, ...]:
        """How many rows of each epoch meet the condition. Raises EngineFailed, always the same."""
        ...

    def stoppable(self, stop: Stop) -> AbstractContextManager[None]:
        """Inside, whatever this thread reads is interrupted once the stop has ended, and fails."""
        ...

    def close(self) -> None:
        """Let go of files and connections."""
        ...


class Engines(Protocol):
    def engine(self, name: str) -> Engine:
        """Raises Invalid for an engine that does not exist."""
        ...


class TableReader(Protocol):
    def lines(self, path: str, key: str, value: str, *, at: str) -> list[tuple[Any, Any]]:
        """Key and value of each line. Raises Invalid, naming fields below `at`; also for a file
        that is private."""
        ...


class PublicTables(Protocol):
    """Files whose lines their owner shows to everybody."""

    def beside(self, private: PrivateFiles) -> TableReader: ...


# The ledger, for the hot routes


class Ledger(Protocol):
    """Orders are committed in batches, and outcomes are told once they are durable."""

    async def submit(self, order: Order) -> Outcome: ...

    async def accounts(self, book_id: str, holders: list[str]) -> dict[str, Account]: ...

    async def answered(self, reuse_key: str) -> bool:
        """Is there a stored answer that would be given again?"""
        ...


class SecretBox(Protocol):
    """Secrets of streams at rest: sealed with a key that the ledger's database does not hold."""

    def check(self) -> None:
        """Raises SecretUnavailable if this server could not seal."""
        ...

    def close(self, secret: str, about: str) -> str:
        """The secret, sealed and bound to what it is about. Raises SecretUnavailable."""
        ...

    def open(self, sealed: str, about: str) -> str:
        """Raises SecretUnavailable if it was sealed with another key, or about something else."""
        ...


@dataclass(frozen=True, slots=True)
class Grant:
    """A dataset that may be asked, and the currencies of the accounts that pay."""

    dataset: Dataset
    currencies: frozenset[str]


class Catalogue(Protocol):
    """People and datasets, kept in memory under a number that charges are checked against."""

    @property
    def number(self) -> int: ...

    def forget(self, number: int) -> None: ...

    async def check(self) -> None: ...

    async def principal(self, token: str | None) -> Principal: ...

    async def dataset(self, name: str) -> Dataset:
        """For callers who need no grant. Raises NoGrant if there is none of this name."""
        ...

    async def has_grant(self, holders: tuple[str, ...]) -> bool:
        """Has one of the holders a budget on any dataset?"""
        ...

    async def grant(self, name: str, holders: tuple[str, ...]) -> Grant:
        """Raises NoGrant, after the same work, for unknown names and for those not granted."""
        ...


# The ledger, for administration; plain blocking calls


class Analysts(Protocol):
    def find(self, name: str) -> Analyst: ...

    def all(self, *, after: str, limit: int) -> list[Analyst]: ...

    def keys(self, analyst_id: str) -> list[Key]: ...

    def principal(self, token: str) -> Principal | None: ...

    def group(self, name: str) -> str: ...

    def create(
        self,
        actor: str,
        name: str,
        role: Role,
        reason: str | None,
        request: str | None,
        body: str,
        groups: tuple[str, ...] = (),
    ) -> Analyst: ...

    def alter(
        self,
        actor: str,
        name: str,
        *,
        role: Role | None,
        enabled: bool | None,
        groups: tuple[str, ...] | None,
        reason: str | None,
    ) -> Analyst: ...

    def issue_key(
        self,
        actor: str,
        name: str,
        *,
        expires_at: int | None,
        reason: str | None,
        request: str | None,
        body: str,
    ) -> tuple[Key, str | None]: ...

    def revoke_key(self, actor: str, key_id: str, reason: str | None) -> None: ...


class Datasets(Protocol):
    def find(self, name: str, holders: tuple[str, ...] | None = None) -> Dataset:
        """Raises NotFound, after the same work, for a name that is unknown and for one on which
        none of the holders has a budget; without holders all are found."""
        ...

    def all(self, *, holders: tuple[str, ...] | None, after: str, limit: int) -> list[Dataset]: ...

    def private_files(self) -> PrivateFiles:
        """Of all datasets, of closed ones too."""
        ...

    def fingerprint(self, dataset: Dataset) -> str: ...

    def known_seed(self, inspection: Inspection) -> str | None:
        """The seed of the book that these rows would join; None if they have none."""
        ...

    def remembered(self, request: str | None, body: str) -> Dataset | None: ...

    def register(
        self,
        actor: str,
        dataset: Dataset,
        inspection: Inspection,
        *,
        reason: str | None,
        request: str | None,
        body: str,
    ) -> Dataset: ...

    def append(
        self,
        actor: str,
        before: Dataset,
        after: Dataset,
        inspection: EpochInspection,
        *,
        reason: str | None,
    ) -> Dataset: ...

    def holds(self, dataset: Dataset, inspection: Inspection) -> bool:
        """Has the dataset's version as many rows, with the same values in every column?"""
        ...

    def holds_whole_rows(self, dataset: Dataset, inspection: Inspection) -> bool:
        """Has it the same whole rows, each in the same cell? False where that is not known."""
        ...

    def refresh(
        self,
        actor: str,
        before: Dataset,
        after: Dataset,
        inspection: Inspection,
        *,
        reason: str | None,
    ) -> Dataset: ...

    def alter(
        self,
        actor: str,
        name: str,
        *,
        description: str | None,
        closed: bool | None,
        reason: str | None,
    ) -> Dataset: ...


class OldVersions(Protocol):
    def unneeded(self, present: Collection[str]) -> list[str]:
        """Those of them that no dataset has any more, and that nothing unsettled names."""
        ...


class Budgets(Protocol):
    def all(
        self, *, holders: tuple[str, ...] | None, after: str, limit: int
    ) -> list[tuple[str, Budget]]: ...

    def book(
        self,
        actor: str,
        dataset: Dataset,
        holders: tuple[str, ...],
        *,
        losses: list[Loss],
        record: dict[str, Any],
        reason: str | None,
        request: str | None,
        body: str,
    ) -> int: ...

    def grant(
        self,
        actor: str,
        dataset: Dataset,
        holder: str,
        shown: str,
        *,
        currency: str,
        wish: GrantTerms,
        precondition: Precondition,
        reason: str | None,
    ) -> tuple[Account, bool]: ...


class History(Protocol):
    def entries(
        self,
        *,
        book_id: str | None,
        after: tuple[int, str, int],
        limit: int,
        search: Search = EVERYTHING,
    ) -> list[Entry]: ...

    def snapshot(self, book_id: str | None, *, stored: bool = False) -> Iterator[Line]: ...

    def asked(
        self, *, analyst_id: str | None, after: str | None, limit: int, search: Search = EVERYTHING
    ) -> list[QuestionRecord]: ...

    def last(self, analyst_id: str, dataset_id: str) -> QuestionRecord | None: ...

    def one(self, charge_id: str, *, analyst_id: str | None) -> QuestionRecord: ...


class Streams(Protocol):
    def one(self, stream_id: str, *, analyst_id: str | None) -> Stream:
        """Raises NotFound: unknown, or another's."""
        ...

    def all(self, *, analyst_id: str | None, after: str | None, limit: int) -> list[Stream]: ...
