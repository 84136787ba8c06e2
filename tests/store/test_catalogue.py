"""The catalogue cache: fast reads, and never older than a charge allows."""

import asyncio
from collections.abc import Iterator

import pytest

from app.access import Principal
from app.errors import NoGrant, NotAuthenticated
from app.ledger.orders import Charged, StaleCatalogue
from app.store import catalogue as catalogue_module
from app.store.catalogue import CachedCatalogue
from app.store.writer.connection import now_microseconds
from app.store.writer.writer import Writer
from tests.store.ledgers import Ledger


@pytest.fixture
def catalogue(ledger: Ledger) -> Iterator[CachedCatalogue]:
    writer = Writer(ledger.database)
    yield CachedCatalogue(writer)
    asyncio.run(writer.stop())


def key(ledger: Ledger, expires_at: int | None = None) -> str:
    _, secret = ledger.people.issue_key(
        "admin",
        ledger.analysts[0].name,
        expires_at=expires_at,
        reason=None,
        request=None,
        body="",
    )
    assert secret is not None
    return secret


def test_the_catalogue_returns_the_principal_and_the_dataset_of_the_store(
    ledger: Ledger, catalogue: CachedCatalogue
) -> None:
    async def run() -> None:
        secret = key(ledger)
        principal = await catalogue.principal(secret)
        assert principal == ledger.people.principal(secret)
        assert await catalogue.dataset(ledger.dataset.name) == ledger.datasets.find(
            ledger.dataset.name
        )
        assert catalogue.number == ledger.catalogue()

    asyncio.run(run())


@pytest.mark.parametrize("token", [None, "", "bursar_wrong", "\ud800", "x" * 10_000, "'; --"])
def test_a_wrong_key_is_not_authenticated(
    ledger: Ledger, catalogue: CachedCatalogue, token: str | None
) -> None:
    with pytest.raises(NotAuthenticated):
        asyncio.run(catalogue.principal(token))


def test_an_unknown_dataset_looks_like_one_without_a_grant(
    ledger: Ledger, catalogue: CachedCatalogue
) -> None:
    with pytest.raises(NoGrant):
        asyncio.run(catalogue.dataset("none"))


def test_a_cached_key_stops_working_when_it_expires(
    ledger: Ledger, catalogue: CachedCatalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        expires_at = now_microseconds() + 3_600_000_000
        secret = key(ledger, expires_at)
        await catalogue.principal(secret)
        monkeypatch.setattr(catalogue_module, "now_microseconds", lambda: expires_at - 1)
        await catalogue.principal(secret)
        monkeypatch.setattr(catalogue_module, "now_microseconds", lambda: expires_at)
        with pytest.raises(NotAuthenticated):
            await catalogue.principal(secret)

    asyncio.run(run())


def test_a_change_makes_the_next_charge_stale_and_clears_the_cache(
    ledger: Ledger, catalogue: CachedCatalogue
) -> None:
    async def run() -> None:
        secret = key(ledger)
        first: Principal = await catalogue.principal(secret)
        order = ledger.order(catalogue=catalogue.number)
        ledger.people.revoke_key("admin", first.key_id, None)
        # the cache has not noticed the change yet
        assert await catalogue.principal(secret) == first
        outcome = await catalogue._writer.submit(order)
        assert isinstance(outcome, StaleCatalogue)
        catalogue.forget(outcome.catalogue)
        with pytest.raises(NotAuthenticated):
            await catalogue.principal(secret)
        again = ledger.order(catalogue=catalogue.number)
        assert isinstance(await catalogue._writer.submit(again), Charged)

    asyncio.run(run())
