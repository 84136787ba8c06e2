"""Read accounts over the writer's connection."""

from app.ledger.account import Account, account_id
from app.ledger.chain import canonical
from app.store.account_rows import accounts_from_tuples
from app.store.writer.connection import WriterConnection
from app.store.writer.statements import Statements


async def find_accounts(
    hot: WriterConnection, sql: Statements, *, book_id: str, holders: list[str]
) -> dict[str, Account]:
    ids = canonical([account_id(book_id, holder) for holder in holders])
    rows, cells = await hot.read([(sql.read_accounts, (ids,)), (sql.cells, (ids,))])
    return {account.holder: account for account in accounts_from_tuples(rows, cells)}
