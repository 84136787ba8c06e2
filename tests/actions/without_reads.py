"""Base of ledgers for tests that only submit orders."""

from app.ledger.account import Account


class WithoutReads:
    def known_account(self, book_id: str, holders: tuple[str, ...]) -> Account | None:
        raise NotImplementedError

    async def accounts(self, book_id: str, holders: list[str]) -> dict[str, Account]:
        raise NotImplementedError

    async def answered(self, reuse_key: str) -> bool:
        raise NotImplementedError
