"""Ports to the ledger: charges, accounts, history, streams and their secrets."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from app.access import Principal
from app.accounting.loss import Loss
from app.accounting.rules.terms import GrantTerms
from app.data.card import Dataset
from app.ledger.account import Account
from app.ledger.chain import Entry
from app.ledger.orders import Outcome, WriterOrder
from app.ledger.precondition import Precondition
from app.ledger.records import (
    EVERYTHING,
    AccountEntries,
    Budget,
    ChargeFacts,
    QuestionRecord,
    Search,
)
from app.ledger.stream_orders import Stream
from app.ledger.verification.lines import LedgerLine


class Ledger(Protocol):
    """Commits orders in batches; an outcome is returned once it is durable."""

    async def submit(self, order: WriterOrder) -> Outcome: ...

    async def accounts(self, book_id: str, holders: list[str]) -> dict[str, Account]: ...

    def known_account(self, book_id: str, holders: tuple[str, ...]) -> Account | None:
        """Account of the first of these holders that has one, as the last order has left it.

        None if this is not known without a read. Right after an order about these accounts was
        decided, it usually is.
        """
        ...

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


class Budgets(Protocol):
    def all(
        self,
        *,
        holders: tuple[str, ...] | None,
        after: str,
        limit: int,
        dataset: str | None = None,
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
        after: tuple[int, str, int] | None,
        limit: int,
        search: Search = EVERYTHING,
        newest: bool = False,
    ) -> list[Entry]: ...

    def snapshot(self, book_id: str | None, *, stored: bool = False) -> Iterator[LedgerLine]: ...

    def asked(
        self, *, analyst_id: str | None, after: str | None, limit: int, search: Search = EVERYTHING
    ) -> list[QuestionRecord]: ...

    def last(self, analyst_id: str, dataset_id: str) -> QuestionRecord | None: ...

    def one(self, charge_id: str, *, analyst_id: str | None) -> QuestionRecord: ...


class BalanceChanges(Protocol):
    """Balances that have changed on any server. Blocking."""

    def head(self) -> tuple[int, int]:
        """Number of entries in all books, and the time of the newest."""
        ...

    def since(self, at: int) -> list[tuple[int, Budget]]:
        """Budgets changed at this time or later, oldest first, each with its time."""
        ...


class EntriesOfAccounts(Protocol):
    def after(self, account: Account, seq: int, *, limit: int) -> AccountEntries:
        """The next entries that may have touched the account; looks at a limited number."""
        ...

    def before(self, account: Account, seq: int, *, limit: int) -> AccountEntries:
        """The entries up to this one that may have touched the account, newest first."""
        ...

    def present(self, account: Account) -> tuple[Account, int]:
        """The present account, and the last entry of its book."""
        ...

    def head(self, book_id: str, seq: int) -> str | None:
        """Hash of the chain at this entry; None if the book has no such entry."""
        ...

    def has(self, book_id: str, seq: int, head: str) -> bool:
        """True if the chain of the book has this hash at this entry."""
        ...

    def charges(self, ids: Collection[str]) -> dict[str, ChargeFacts]: ...


class Streams(Protocol):
    def one(self, stream_id: str, *, analyst_id: str | None) -> Stream:
        """The stream. Raises NotFound if it is unknown or another analyst's."""
        ...

    def all(self, *, analyst_id: str | None, after: str | None, limit: int) -> list[Stream]: ...
