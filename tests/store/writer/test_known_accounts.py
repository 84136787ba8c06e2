"""The account that a reply shows is the one that the writer has just left, without a read."""

import asyncio
import contextlib

from app.errors import AppError
from app.ledger.account import EVERYBODY
from app.ledger.orders import Charged, PreparedAnswer
from app.store.writer.writer import Writer
from tests.store.ledgers import TENTH, Ledger


def test_after_every_order_the_writer_knows_the_account_of_the_analyst(ledger: Ledger) -> None:
    book = ledger.dataset.book_id

    async def run() -> None:
        writer = Writer(ledger.database)
        name = ledger.analysts[0].name.lower()
        holders = (name, "group:none")
        assert writer.known_account(book, (name,)) is None  # nothing was decided yet
        first = ledger.order(tenths=2)
        assert isinstance(await writer.submit(first), Charged)
        answered = ledger.order(tenths=3, at_once=PreparedAnswer(lambda _: "{}", 0.0))
        spent = []
        for order in (answered, ledger.order(tenths=9), ledger.void(first), answered):
            with contextlib.suppress(AppError):  # a refusal shows the balance, too
                await writer.submit(order)
            known = writer.known_account(book, (name,))
            assert known is not None
            assert known == (await writer.accounts(book, [name]))[name]
            spent.append(known.balance.common[0] // TENTH)
        assert spent == [5, 5, 3, 3]
        assert writer.known_account(book, ("group:none", name)) is None  # may have an account
        assert writer.known_account(book, holders) == writer.known_account(book, (name,))
        assert writer.known_account("elsewhere", (name,)) is None
        everybody = writer.known_account(book, (EVERYBODY,))
        assert everybody is not None
        assert everybody.holder == EVERYBODY
        await writer.stop()

    asyncio.run(run())


def test_a_group_without_an_account_is_passed_over(ledger: Ledger) -> None:
    book = ledger.dataset.book_id

    async def run() -> None:
        writer = Writer(ledger.database)
        name = ledger.analysts[0].name.lower()
        await writer.submit(ledger.order(holders=("group:none", name)))
        known = writer.known_account(book, ("group:none", name))
        assert known is not None
        assert (known.holder, known.balance.common[0]) == (name, TENTH)
        await writer.stop()

    asyncio.run(run())
