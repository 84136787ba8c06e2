"""Protocols of what actions and routes need from outside; `main.py` supplies the adapters."""

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
    """Signals that a read must end."""

    @property
    def ended(self) -> bool: ...

    def telling(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Call the listener when this ends, from any thread; at once if it has ended."""
        ...


class Engine(Protocol):
    """Exact statistics over one kind of data source. Synchronous; called from a thread."""

    # True if prepared data stay on disk. If False, `prepare` only checks the source, at every
    # query.
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
        """Make the dataset's version ready for queries, before any charge.

        Raises SourceChanged if the source differs from the registered one, EngineUnavailable if it
        is gone or cannot be read.
        """
        ...

    def ready(self, dataset: Dataset) -> bool:
        """True if the dataset can be queried without `prepare`.

        The version must be prepared, and a quick check must find the source unchanged. Called
        before every charge, by callers that must not wait. Reads no row.
        """
        ...

    def is_missing(self, dataset: Dataset) -> bool:
        """True if the prepared version has been deleted meanwhile. Reads no row."""
        ...

    def prepared(self) -> list[str]:
        """All versions that are prepared on this server, needed or not."""
        ...

    def drop(self, version_id: str) -> bool:
        """Delete the prepared files of an unneeded version; False if there were none."""
        ...

    def exact(self, dataset: Dataset, tally: Tally, asker: str) -> Exact:
        """The tally of the prepared version. Raises EngineFailed, always with the same text."""
        ...

    def cached(self, dataset: Dataset, tally: Tally, asker: str) -> Exact | None:
        """The tally if this analyst's own is cached; never waits. Versions never change.

        Another analyst's result is not used: its presence would reveal what they asked.
        """
        ...

    def steps(self, dataset: Dataset, request: StepHistogram) -> StepCounts:
        """Counts of a column's values by ranges. Raises EngineFailed, always with the same text."""
        ...

    def graph(self, dataset: Dataset, request: GraphCountsRequest, asker: str) -> GraphCounts:
        """Counts of the graph in the rows. Raises EngineFailed, always with the same text."""
        ...

    def blocks(self, dataset: Dataset, request: BlockTally) -> BlockCounts:
        """Statistics of blocks of rows. Raises EngineFailed, always with the same text."""
        ...

    def records(self, dataset: Dataset, request: Records) -> Iterable[Matrix]:
        """Rows of the prepared version in batches, in no order; every iteration yields all of them.

        Iterating raises EngineFailed, always with the same text.
        """
        ...

    def keys(self, dataset: Dataset, request: KeyCountsRequest) -> Generator[KeyBatch]:
        """Keys of the prepared version in batches, each key once; batches are read on demand.

        Any batch may raise EngineFailed, always with the same text.
        """
        ...

    def epochs(self, dataset: Dataset, where: Condition | None) -> tuple[int, ...]:
        """Number of rows of each epoch that meet the condition. Raises EngineFailed."""
        ...

    def stoppable(self, stop: Stop) -> AbstractContextManager[None]:
        """Interrupt this thread's reads when the stop has ended; they then fail."""
        ...

    def close(self) -> None:
        """Close files and connections."""
        ...


class Engines(Protocol):
    def engine(self, name: str) -> Engine:
        """The engine of this name. Raises Invalid if there is none."""
        ...


class TableReader(Protocol):
    def lines(self, path: str, key: str, value: str, *, at: str) -> list[tuple[Any, Any]]:
        """Key and value of each line. Raises Invalid, naming fields below `at`.

        A private file is refused too.
        """
        ...


class PublicTables(Protocol):
    """Files whose lines their owner shows to everybody."""

    def beside(self, private: PrivateFiles) -> TableReader: ...


# The ledger, for the hot routes


class Ledger(Protocol):
    """Commits orders in batches; an outcome is returned once it is durable."""

    async def submit(self, order: Order) -> Outcome: ...

    async def accounts(self, book_id: str, holders: list[str]) -> dict[str, Account]: ...

    async def answered(self, reuse_key: str) -> bool:
        """True if there is a stored answer that would be returned again."""
        ...


class SecretBox(Protocol):
    """Encrypted secrets of streams, under a key that is not in the ledger's database."""

    def check(self) -> None:
        """Raise SecretUnavailable if this server could not encrypt."""
        ...

    def close(self, secret: str, about: str) -> str:
        """Encrypt the secret, bound to its context `about`. Raises SecretUnavailable."""
        ...

    def open(self, sealed: str, about: str) -> str:
        """Decrypt a secret. Raises SecretUnavailable if key or context are not the same."""
        ...


@dataclass(frozen=True, slots=True)
class Grant:
    """A dataset that may be queried, and the currencies of the paying accounts."""

    dataset: Dataset
    currencies: frozenset[str]


class Catalogue(Protocol):
    """People and datasets, cached under a number that charges are checked against."""

    @property
    def number(self) -> int: ...

    def forget(self, number: int) -> None: ...

    async def check(self) -> None: ...

    async def principal(self, token: str | None) -> Principal: ...

    async def dataset(self, name: str) -> Dataset:
        """The dataset, for callers who need no grant. Raises NoGrant if there is none."""
        ...

    async def has_grant(self, holders: tuple[str, ...]) -> bool:
        """True if one of the holders has a budget on any dataset."""
        ...

    async def grant(self, name: str, holders: tuple[str, ...]) -> Grant:
        """The grant. Raises NoGrant, after the same work, for unknown and for ungranted names."""
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
        """The dataset. Raises NotFound, after the same work, for unknown and for ungranted names.

        A name is ungranted if none of the holders has a budget on it; None skips this check.
        """
        ...

    def all(self, *, holders: tuple[str, ...] | None, after: str, limit: int) -> list[Dataset]: ...

    def private_files(self) -> PrivateFiles:
        """Files of all datasets, including closed ones."""
        ...

    def fingerprint(self, dataset: Dataset) -> str: ...

    def known_seed(self, inspection: Inspection) -> str | None:
        """Seed of the book that these rows would join; None if they have none."""
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
        """True if the version has equally many rows, with the same values in every column."""
        ...

    def holds_whole_rows(self, dataset: Dataset, inspection: Inspection) -> bool:
        """True if it has the same whole rows, each in the same cell; False if that is unknown."""
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
        """Those of the present versions that no dataset and no unsettled charge needs."""
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
        """The stream. Raises NotFound if it is unknown or another analyst's."""
        ...

    def all(self, *, analyst_id: str | None, after: str | None, limit: int) -> list[Stream]: ...
