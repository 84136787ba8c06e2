"""Rows of accounts and cells, converted to accounts and back."""

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, select

from app.accounting.rules.spending import Spend
from app.accounting.rules.terms import AccountTerms
from app.ledger.account import Account, account_id
from app.ledger.balance import NO_CELLS, Balance
from app.store import tables

# Parsed spends by their JSON text. The next charge usually reads the text that the last one wrote.
_NUMBERS: dict[str, Spend] = {"[]": ()}
_NUMBERS_MAX = 1024


def spend_columns(spend: Spend) -> tuple[int, int, str]:
    numbers = spend[2:]
    text = _list_form(len(numbers)) % numbers
    _remember(text, numbers)
    return spend[0], spend[1], text


def spend_from(epsilon: int, delta: int, curve: str) -> Spend:
    numbers = _NUMBERS.get(curve)
    if numbers is None:
        numbers = tuple(json.loads(curve))
        _remember(curve, numbers)
    return epsilon, delta, *numbers


def _remember(text: str, numbers: Spend) -> None:
    if len(_NUMBERS) >= _NUMBERS_MAX:
        _NUMBERS.clear()
        _NUMBERS["[]"] = ()
    _NUMBERS[text] = numbers


@lru_cache(maxsize=64)
def _list_form(size: int) -> str:
    """printf template of a JSON list of `size` integers; twice as fast as a JSON encoder."""
    return f"[{','.join(['%d'] * size)}]"


_terms_from = lru_cache(maxsize=4096)(AccountTerms.from_text)


def accounts_from_tuples(rows: Iterable[Any], cell_rows: Iterable[Any]) -> list[Account]:
    cells: dict[str, dict[int, Spend]] = {}
    for account, cell, epsilon, delta, curve in cell_rows:
        cells.setdefault(account, {})[cell] = spend_from(epsilon, delta, curve)
    accounts = []
    for book_id, holder, shown, currency, terms, pairs, epsilon, delta, curve, version in rows:
        extra = cells.get(account_id(book_id, holder), NO_CELLS)
        balance = Balance(spend_from(epsilon, delta, curve), bool(pairs), extra)
        accounts.append(
            Account(book_id, holder, shown, currency, _terms_from(terms), balance, version)
        )
    return accounts


def read_cells(connection: Connection, accounts: set[str] | None) -> dict[str, dict[int, Spend]]:
    """Spends by account and cell, of these accounts, or of all accounts if None."""
    table = tables.cells
    statement = select(table)
    if accounts is not None:
        statement = statement.where(table.c.account_id.in_(accounts))
    spends: dict[str, dict[int, Spend]] = {}
    for row in connection.execute(statement).all():
        spend = spend_from(row.epsilon_spent, row.delta_spent, row.curve_spent)
        spends.setdefault(row.account_id, {})[row.cell] = spend
    return spends


def account_from(row: Any, cells: dict[int, Spend]) -> Account:
    common = spend_from(row.epsilon_spent, row.delta_spent, row.curve_spent)
    balance = Balance(common, bool(row.pairs), cells or NO_CELLS)
    terms = _terms_from(row.terms)
    return Account(row.book_id, row.holder, row.shown, row.currency, terms, balance, row.version)
