"""Book the spends that the ledger has lost, and resume charging.

The spends of lost entries are added to the accounts, with one entry in each book. Open charges are
forfeited, because the lost entries may have answered them. Open streams are closed, because they
may have revealed more than the ledger knows. Then the ledger may be charged again.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table, insert, select, update

from app.accounting import COMPOSITION_RULES
from app.accounting.precise import INFINITE
from app.accounting.rules.spending import Spend, largest, plus, two_largest
from app.accounting.rules.terms import AccountTerms
from app.errors import Conflict
from app.ledger.account import Account, account_id
from app.ledger.anchor_comparison import Reconciliation
from app.ledger.balance import Balance
from app.ledger.chain import SYSTEM_BOOK, canonical
from app.ledger.currency_change import carried_over
from app.ledger.orders import State
from app.ledger.stamp import StampChain, new_chain
from app.store import tables
from app.store.administration import Administration, Change
from app.store.budgets import locked_account, write_account, write_cells
from app.store.connect import Database
from app.store.rollback.anchor_check import RECONCILED, RESUMED, stops
from app.store.rollback.charging_state import SqlStanding, read_standing, set_standing
from app.store.row_hashes import ledger_key
from app.store.writer.statements import is_stopped


@dataclass(slots=True)
class _Lost:
    """Spend to add to one account."""

    holder: str
    shown: str
    currency: str
    terms: Any
    persons_may_move: bool
    common: Spend
    cells: dict[int, Spend]


class SqlReconciling:
    def __init__(
        self, database: Database, administration: Administration, standing: SqlStanding
    ) -> None:
        self._database = database
        self._administration = administration
        self._standing = standing

    def reconcile(self, actor: str, reason: str) -> Reconciliation:
        self._standing.compare()  # includes this server's own anchors
        with self._administration.change() as change:
            before = read_standing(change.connection)
            if not is_stopped(before):
                raise Conflict("The ledger is not behind its anchors: there is nothing to book.")
            _, waiting = stops(change.connection)
            targets = _targets(change, waiting)
            lost = _all_lost(waiting, targets)
            for id_of_account in sorted(account_id(b, holder) for b in lost for holder in lost[b]):
                locked_account(
                    change, id_of_account
                )  # accounts before books: the lock order of charges
            for book in sorted({*targets.values()}):
                _book_lost(change, actor, reason, book, waiting, targets, lost.get(book, {}))
            chain = new_chain(ledger_key(change.connection))
            forfeited = _forfeit_open(change, chain, tables.charges)
            closed = _close_streams(change)
            forfeited += _forfeit_open(change, chain, tables.asks)
            accounts = sum(map(len, lost.values()))
            reconciliation = Reconciliation(len(targets), accounts, forfeited, closed)
            set_standing(change, before + 1)
            change.append(
                SYSTEM_BOOK,
                kind=RESUMED,
                actor=actor,
                body={
                    "before": {"standing": before},
                    "after": {"standing": before + 1},
                    "books": sorted({*targets.values()}),
                    "forfeited": forfeited,
                    "streams_closed": closed,
                    "reason": reason,
                },
            )
        if self._database.anchors is not None and chain.seq:
            self._database.anchors.append([], chain)
        self._standing.begin()
        return reconciliation


def _targets(change: Change, stops_waiting: list[dict[str, Any]]) -> dict[str, str]:
    """For each lost book, the book that takes its loss.

    That is the book itself, or the book in which the same data have been registered since.
    """
    known = tables.fingerprints
    targets: dict[str, str] = {}
    for lost_book in (book for stop in stops_waiting for book in stop["books"]):
        book = lost_book["book"]
        statement = select(known.c.book_id).where(
            known.c.fingerprint.in_(lost_book["fingerprints"])
        )
        elsewhere = {row.book_id for row in change.connection.execute(statement)} - {book}
        there = lost_book["ledger"] is not None
        targets[book] = min(elsewhere) if elsewhere and not there else book
    return targets


def _all_lost(
    stops_waiting: list[dict[str, Any]], targets: Mapping[str, str]
) -> dict[str, dict[str, list[_Lost]]]:
    """Spends to add, by target book and holder.

    Two servers may report the same lost entries of a book, so the larger spend counts.
    """
    by_book: dict[str, dict[str, _Lost]] = {}
    for lost_book in (book for stop in stops_waiting for book in stop["books"]):
        holders = by_book.setdefault(lost_book["book"], {})
        for account in lost_book["accounts"]:
            spent = _Lost(
                holder=account["holder"],
                shown=account["shown"],
                currency=account["currency"],
                terms=account["terms"],
                persons_may_move=account["pairs"],
                common=tuple(account["lost"]),
                cells={cell: tuple(units) for cell, *units in account["cells"]},
            )
            known = holders.get(spent.holder)
            holders[spent.holder] = spent if known is None else _larger(known, spent)
    lost: dict[str, dict[str, list[_Lost]]] = {}
    for book, holders in by_book.items():
        for holder, spent in holders.items():
            lost.setdefault(targets[book], {}).setdefault(holder, []).append(spent)
    return lost


def _larger(one: _Lost, other: _Lost) -> _Lost:
    if one.currency != other.currency:
        return other
    nothing = (0,) * len(one.common)
    other.common = largest([one.common, other.common])
    other.cells = {
        cell: largest([one.cells.get(cell, nothing), other.cells.get(cell, nothing)])
        for cell in one.cells.keys() | other.cells.keys()
    }
    return other


def _book_lost(
    change: Change,
    actor: str,
    reason: str,
    book: str,
    stops_waiting: list[dict[str, Any]],
    targets: Mapping[str, str],
    lost: Mapping[str, list[_Lost]],
) -> None:
    table = tables.books
    row = change.connection.execute(select(table).where(table.c.id == book)).one_or_none()
    changes = []
    if row is None:
        change.open_book(book, actor)
    for holder in sorted(lost):
        before = after = locked_account(change, account_id(book, holder))
        for spent in lost[holder]:
            after = _after(after, spent, book, celled=row is not None and bool(row.celled))
        assert after is not None
        write_account(change, after, new=before is None)
        write_cells(change, after)
        earlier = None if before is None else _account_record(before)
        changes.append({"holder": holder, "before": earlier, "after": _account_record(after)})
    lost_books = [
        lost_book
        for stop in stops_waiting
        for lost_book in stop["books"]
        if targets[lost_book["book"]] == book
    ]
    marks = sorted({mark for lost_book in lost_books for mark in lost_book["fingerprints"]})
    new_marks = _insert_marks(change, book, marks)
    if book == SYSTEM_BOOK:
        return  # it has no accounts; an administrator must check the lost changes of people
    change.append(
        book,
        kind=RECONCILED,
        actor=actor,
        body={
            "accounts": changes,
            "fingerprints": new_marks,
            "anchored": [
                {"book": lost_book["book"], **lost_book["anchored"]} for lost_book in lost_books
            ],
            "reason": reason,
        },
    )


def _after(before: Account | None, lost: _Lost, book: str, *, celled: bool) -> Account:
    """The account after adding its lost spend.

    If the two currencies cannot be converted, the account has nothing left.
    """
    added = Balance(lost.common, lost.persons_may_move, lost.cells)
    if lost.cells and not celled:  # other cells may be declared later: it counts for all of them
        both = two_largest if lost.persons_may_move else largest
        added = Balance(plus(lost.common, both(list(lost.cells.values()))), lost.persons_may_move)
    terms = _terms(lost)
    if before is None:
        return Account(book, lost.holder, lost.shown, lost.currency, terms, added, 1)
    version = before.version + 1
    if before.currency == lost.currency:
        return before._replace(balance=_sum(before.balance, added), version=version)
    carried = carried_over(before.balance, before.currency, lost.currency)
    if carried is not None:
        balance = _sum(carried, added)
        return before._replace(
            currency=lost.currency, terms=terms, balance=balance, version=version
        )
    carried = carried_over(added, lost.currency, before.currency)
    if carried is not None:
        return before._replace(balance=_sum(before.balance, carried), version=version)
    spent = tuple(INFINITE for _ in before.balance.common)
    return before._replace(balance=before.balance._replace(common=spent), version=version)


def _terms(lost: _Lost) -> AccountTerms:
    """The granted terms as an anchor saw them; otherwise limits of zero."""
    rule = COMPOSITION_RULES[lost.currency]
    if lost.terms is not None and lost.terms["currency"] == lost.currency:
        return AccountTerms.from_text(canonical(lost.terms["terms"]))
    return AccountTerms(0, 0, (0,) * len(rule.nothing))


def _sum(one: Balance, other: Balance) -> Balance:
    nothing = (0,) * len(one.common)
    cells = {
        cell: plus(one.cells.get(cell, nothing), other.cells.get(cell, nothing))
        for cell in one.cells.keys() | other.cells.keys()
    }
    return Balance(plus(one.common, other.common), one.persons_may_move, cells)


def _account_record(account: Account) -> dict[str, Any]:
    """The whole account as an entry records it."""
    return {
        "currency": account.currency,
        "terms": json.loads(account.terms.text()),
        "pairs": account.balance.persons_may_move,
        "spent": account.balance.common,
        "cells": [[cell, *spend] for cell, spend in sorted(account.balance.cells.items())],
    }


def _insert_marks(change: Change, book: str, marks: list[str]) -> list[str]:
    """Insert the fingerprints that lead to no book; from now on they lead to this one."""
    known = tables.fingerprints
    new = []
    for mark in marks:
        book_row = change.connection.execute(
            select(known.c.book_id).where(known.c.fingerprint == mark)
        ).first()
        if book_row is None:
            change.connection.execute(insert(known).values(fingerprint=mark, book_id=book))
            change.written.marks.setdefault(book, set()).add(mark)
            new.append(mark)
    return new


# Open charges and streams


def _forfeit_open(change: Change, chain: StampChain, table: Table) -> int:
    open_rows = select(table.c.id).where(table.c.state == State.CHARGED.value)
    rows = change.connection.execute(open_rows.order_by(table.c.id).with_for_update()).all()
    for row in rows:
        state = State.FORFEITED.value
        stamp = chain.stamp(row.id, state, change.now)
        change.connection.execute(
            update(table)
            .where(table.c.id == row.id)
            .values(state=state, settled_at=change.now, stamp=stamp)
        )
    return len(rows)


def _close_streams(change: Change) -> int:
    table = tables.streams
    done = change.connection.execute(
        update(table)
        .where(table.c.closed_at.is_(None))
        .values(closed_at=change.now, version=table.c.version + 1)
    )
    return done.rowcount
