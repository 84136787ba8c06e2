"""People and datasets for the hot routes: cached in memory, never staler than a charge allows.

Cached values belong to the catalogue number under which they were read. A charge names that number,
and the writer refuses the charge as stale if the number has risen since. So a revoked key, a
disabled analyst or a closed dataset stops the very next charge in every process.
"""

import json
from types import SimpleNamespace
from typing import Any

from app.access import Key, Principal, Role, holders_of
from app.data.card import Dataset
from app.errors import NoGrant, NotAuthenticated
from app.ledger.account import EVERYBODY, NO_GRANT
from app.names import folded
from app.ports.ledger import Grant
from app.store.administration import key_hash
from app.store.datasets.dataset_rows import dataset_from
from app.store.writer.accounts import find_accounts
from app.store.writer.connection import WriterConnection, now_microseconds
from app.store.writer.statements import Statements
from app.store.writer.writer import Writer

KEPT_MAX = 10_000
BOOK_ID = 3  # index of this column in a dataset row
NOT_AUTHENTICATED = "Send a valid key: `Authorization: Bearer <key>`."


class CachedCatalogue:
    """Cache of the catalogue. Used from one event loop."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.number = 0
        self._principals: dict[str, tuple[Principal, Key]] = {}
        self._datasets: dict[str, Dataset] = {}
        self._grants: dict[tuple[str, tuple[str, ...]], Grant] = {}

    def forget(self, number: int) -> None:
        """Drop the cache if `number` is not the catalogue number it was read under."""
        if number != self.number:
            self.number = number
            self._principals.clear()
            self._datasets.clear()
            self._grants.clear()

    async def check(self) -> None:
        """Read the catalogue number, and drop the cache if it has changed."""
        self.forget(await self._writer.look(_read_number))

    async def principal(self, token: str | None) -> Principal:
        if token is None:
            raise NotAuthenticated(NOT_AUTHENTICATED)
        hashed = key_hash(token)
        known = self._principals.get(hashed)
        if known is None:
            number, known = await self._writer.look(
                lambda hot, sql: _read_principal(hot, sql, hashed)
            )
            self.forget(number)
            if known is not None and len(self._principals) < KEPT_MAX:
                self._principals[hashed] = known
        if known is None or not known[1].valid_at(now_microseconds()):
            raise NotAuthenticated(NOT_AUTHENTICATED)
        return known[0]

    async def grant(self, name: str, holders: tuple[str, ...]) -> Grant:
        """The dataset and currencies granted to these holders. A missing grant is never cached.

        A dataset that does not exist and one that is not granted cost the same reads every time.
        """
        key = folded(name), holders
        grant = self._grants.get(key)
        if grant is None:
            number, grant = await self._writer.look(
                lambda hot, sql: _read_grant(hot, sql, key[0], holders)
            )
            self.forget(number)
            if grant is None:
                raise NoGrant(NO_GRANT)
            if len(self._grants) < KEPT_MAX:
                self._grants[key] = grant
        return grant

    async def has_grant(self, holders: tuple[str, ...]) -> bool:
        number, granted = await self._writer.look(
            lambda hot, sql: _read_any_grant(hot, sql, holders)
        )
        self.forget(number)
        return granted

    async def dataset(self, name: str) -> Dataset:
        key = folded(name)
        dataset = self._datasets.get(key)
        if dataset is None:
            number, dataset = await self._writer.look(lambda hot, sql: _read_dataset(hot, sql, key))
            self.forget(number)
            if dataset is not None and len(self._datasets) < KEPT_MAX:
                self._datasets[key] = dataset
        if dataset is None:
            raise NoGrant(NO_GRANT)
        return dataset


async def _read_number(hot: WriterConnection, sql: Statements) -> int:
    (((number, *_),),) = await hot.read([(sql.clock, ())])
    return int(number)


async def _read_principal(
    hot: WriterConnection, sql: Statements, hashed: str
) -> tuple[int, tuple[Principal, Key] | None]:
    clock, rows = await hot.read([(sql.clock, ()), (sql.principal, (hashed,))])
    if not rows or not rows[0][8]:
        return clock[0][0], None
    key_id, analyst_id, prefix, created, expires, revoked, name, role, _, groups = rows[0]
    holders = holders_of(name, tuple(json.loads(groups)))
    principal = Principal(analyst_id, name, Role(role), key_id, holders)
    return clock[0][0], (principal, Key(key_id, prefix, created, expires, revoked))


async def _read_grant(
    hot: WriterConnection, sql: Statements, key: str, holders: tuple[str, ...]
) -> tuple[int, Grant | None]:
    """Read a grant with the same statements whether the dataset exists or not.

    The card may be large, so it is parsed only for holders of a grant.
    """
    clock, rows = await hot.read([(sql.clock, ()), (sql.dataset, (key,))])
    book_id = rows[0][BOOK_ID] if rows else ""
    accounts = await find_accounts(hot, sql, book_id=book_id, holders=[*holders, EVERYBODY])
    if not rows or EVERYBODY not in accounts or len(accounts) < 2:
        return clock[0][0], None
    currencies = frozenset(account.currency for account in accounts.values())
    return clock[0][0], Grant(_dataset(rows[0]), currencies)


async def _read_any_grant(
    hot: WriterConnection, sql: Statements, holders: tuple[str, ...]
) -> tuple[int, bool]:
    clock, *found = await hot.read(
        [(sql.clock, ()), *((sql.any_account, (holder,)) for holder in holders)]
    )
    return clock[0][0], any(found)


async def _read_dataset(
    hot: WriterConnection, sql: Statements, key: str
) -> tuple[int, Dataset | None]:
    clock, rows = await hot.read([(sql.clock, ()), (sql.dataset, (key,))])
    return clock[0][0], _dataset(rows[0]) if rows else None


def _dataset(row: Any) -> Dataset:
    names = [
        "id",
        "name",
        "description",
        "book_id",
        "card",
        "source",
        "version_id",
        "closed",
        "created_at",
        "number",
        "digest",
        "seed",
        "appended",
        "celled",
    ]
    return dataset_from(SimpleNamespace(**dict(zip(names, row, strict=True))))
