"""Compare the anchors with the ledger: does it still contain everything they saw committed?

A point of an anchor is a book, a sequence number in its chain and the hash there. If the ledger has
no entry there, or another one, it was restored from an older copy or changed.

The spend of the lost entries is the anchored spend minus the ledger's spend at the newest point
that both share. If that point is older than the restored copy, the difference exceeds the real
loss. It is never smaller.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

from app.accounting import COMPOSITION_RULES
from app.accounting.rules.spending import Spend, largest, minus, plus
from app.ledger.balance import Balance
from app.ledger.chain import SYSTEM_BOOK
from app.ledger.currency_change import carried_over
from app.ledger.verification.verify import accounts_after
from app.store import tables
from app.store.anchors.lines import Anchor, AnchoredAccount, Point
from app.store.history.export import entry_from

STOPPED, RESUMED, RECONCILED = "charging_stopped", "charging_resumed", "reconciled"
CHUNK = 500


@dataclass(slots=True)
class LostBook:
    """A book that lacks entries which its anchors saw."""

    book: str
    common: int = 0  # sequence number of the last entry known to both ledger and anchors
    points: list[Point] = field(default_factory=list)  # the newest lost point of each file
    accounts: dict[str, AnchoredAccount] = field(default_factory=dict)  # as last anchored


@dataclass(slots=True)
class Missing:
    """Points and stamps that the anchors saw, the ledger lacks, and nobody has reported yet."""

    books: dict[str, LostBook] = field(default_factory=dict)
    stamps: list[tuple[str, int, str]] = field(default_factory=list)  # chain, sequence number, row

    def __bool__(self) -> bool:
        return bool(self.books or self.stamps)


def find_missing(connection: Connection, anchors: list[Anchor]) -> Missing:
    reported_points, reported_stamps = _reported(connection)
    there = _hashes(connection, anchors)
    missing = Missing()
    for anchor in anchors:
        for book, points in _by_book(anchor).items():
            _compare_book(missing, book, points, there, reported_points)
    for chain, place, row in _lost_stamps(connection, anchors):
        if (chain, place) not in reported_stamps:
            missing.stamps.append((chain, place, row))
    return missing


def still_true(connection: Connection, anchors: list[Anchor]) -> list[Anchor]:
    """Anchors reduced to the points and stamps that the ledger contains.

    This leaves out entries that were lost and have been booked since.
    """
    there = _hashes(connection, anchors)
    lost = {(chain, place) for chain, place, _ in _lost_stamps(connection, anchors)}
    return [
        Anchor(
            anchor.name,
            [p for p in anchor.points if there.get((p.book, p.seq)) == p.head],
            {c: s for c, s in anchor.stamps.items() if (c, s[0].seq) not in lost},
        )
        for anchor in anchors
    ]


def _compare_book(
    missing: Missing,
    book: str,
    points: list[Point],
    there: dict[tuple[str, int], str],
    reported: set[tuple[str, int, str]],
) -> None:
    common = 0
    lost: list[Point] = []
    for point in points:
        if there.get((book, point.seq)) == point.head:
            common = point.seq if not lost else common
        elif (book, point.seq, point.head) in reported:
            # An earlier check reported this point: the losses of this file up to here are booked.
            common, lost = 0, []
        else:
            lost.append(point)
    if not lost:
        return
    lost_book = missing.books.setdefault(book, LostBook(book))
    lost_book.common = max(lost_book.common, common)
    lost_book.points.append(lost[-1])
    seen: dict[str, AnchoredAccount] = {}
    for point in sorted(lost, key=lambda each: each.seq):  # threads may append out of order
        _follow(seen, point)
    for id_of_account, account in seen.items():
        lost_book.accounts[id_of_account] = _larger(lost_book.accounts.get(id_of_account), account)


def _follow(seen: dict[str, AnchoredAccount], point: Point) -> None:
    for id_of_account, account in point.accounts.items():
        before = seen.get(id_of_account)
        cells = before.cells if before and before.currency == account.currency else {}
        seen[id_of_account] = AnchoredAccount(
            account.currency, account.common, {**cells, **account.cells}
        )


def _larger(one: AnchoredAccount | None, other: AnchoredAccount) -> AnchoredAccount:
    """Upper bound of two files' spends; if their currencies differ, the newer file decides."""
    if one is None or one.currency != other.currency:
        return other
    nothing = (0,) * len(other.common)
    cells = {
        cell: largest([one.cells.get(cell, nothing), other.cells.get(cell, nothing)])
        for cell in one.cells.keys() | other.cells.keys()
    }
    return AnchoredAccount(other.currency, largest([one.common, other.common]), cells)


# Reading


def _by_book(anchor: Anchor) -> dict[str, list[Point]]:
    points: dict[str, list[Point]] = {}
    for point in anchor.points:
        points.setdefault(point.book, []).append(point)
    return points


def _hashes(connection: Connection, anchors: list[Anchor]) -> dict[tuple[str, int], str]:
    numbers_by_book: dict[str, set[int]] = {}
    for anchor in anchors:
        for point in anchor.points:
            numbers_by_book.setdefault(point.book, set()).add(point.seq)
    table = tables.entries
    hashes: dict[tuple[str, int], str] = {}
    for book, places in numbers_by_book.items():
        if 0 in places:  # a book before its first entry
            head = connection.execute(
                select(tables.books.c.id).where(tables.books.c.id == book)
            ).scalar()
            hashes |= {} if head is None else {(book, 0): "0" * 64}
        for some in _chunks(sorted(places)):
            rows = connection.execute(
                select(table.c.seq, table.c.hash).where(
                    table.c.book_id == book, table.c.seq.in_(some)
                )
            )
            hashes |= {(book, row.seq): row.hash for row in rows}
    return hashes


def _chunks(values: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(values), CHUNK):
        yield values[start : start + CHUNK]


def _lost_stamps(connection: Connection, anchors: list[Anchor]) -> Iterator[tuple[str, int, str]]:
    newest: dict[str, tuple[Any, str]] = {}
    for anchor in anchors:
        for chain, (stamp, row) in anchor.stamps.items():
            if chain not in newest or newest[chain][0].seq < stamp.seq:
                newest[chain] = stamp, row
    rows = sorted({row for _, row in newest.values()})
    stored: dict[str, str | None] = {}
    for table in (tables.charges, tables.asks):
        for some in _chunks(rows):
            stamp_rows = connection.execute(
                select(table.c.id, table.c.stamp).where(table.c.id.in_(some))
            )
            stored |= {each.id: each.stamp for each in stamp_rows}
    for chain, (stamp, row) in newest.items():
        if stored.get(row) != stamp.text():
            yield chain, stamp.seq, row


def stops(connection: Connection) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Evidence of each stop of charging: those before it last resumed, and those since."""
    table = tables.entries
    rows = connection.execute(
        select(table.c.kind, table.c.text)
        .where(table.c.book_id == SYSTEM_BOOK, table.c.kind.in_((STOPPED, RESUMED)))
        .order_by(table.c.seq)
    ).all()
    dealt_with: list[dict[str, Any]] = []
    waiting: list[dict[str, Any]] = []
    for row in rows:
        if row.kind == RESUMED:
            dealt_with, waiting = dealt_with + waiting, []
        else:
            waiting.append(json.loads(row.text)["body"])
    return dealt_with, waiting


def _reported(connection: Connection) -> tuple[set[tuple[str, int, str]], set[tuple[str, int]]]:
    dealt_with, waiting = stops(connection)
    all_stops = [*dealt_with, *waiting]
    points = {(b, s, h) for stop in all_stops for b, s, h in stop["points"]}
    return points, {(chain, place) for stop in all_stops for chain, place, _ in stop["answers"]}


# Lost spends


def lost_spends(connection: Connection, lost: LostBook) -> dict[str, AnchoredAccount]:
    """Spend of the lost entries by account, in the currency of that time."""
    base = _base(connection, lost)
    spends: dict[str, AnchoredAccount] = {}
    for id_of_account, seen in lost.accounts.items():
        nothing = COMPOSITION_RULES[seen.currency].nothing
        known: Balance | None = Balance(nothing)
        if id_of_account in base:
            currency, balance = base[id_of_account]
            known = (
                balance
                if currency == seen.currency
                else carried_over(balance, currency, seen.currency)
            )
        known = Balance(nothing) if known is None else known  # then the whole spend counts again
        common = minus(seen.common, known.common)
        cells = {
            cell: minus(spend, known.cells.get(cell, nothing)) for cell, spend in seen.cells.items()
        }
        cells = {cell: spend for cell, spend in cells.items() if any(spend)}
        if any(common) or cells:
            spends[id_of_account] = AnchoredAccount(seen.currency, common, cells)
    return spends


def _base(connection: Connection, lost: LostBook) -> dict[str, tuple[str, Balance]]:
    """Each account at the last entry that anchors and ledger share, plus spends booked since.

    Bookings for lost entries count, because other files may report more about the same entries.
    """
    table = tables.entries
    entries = [
        entry_from(row)
        for row in connection.execute(
            select(table)
            .where(table.c.book_id == lost.book)
            .where((table.c.seq <= lost.common) | (table.c.kind == RECONCILED))
            .order_by(table.c.seq)
        )
    ]
    shared = accounts_after(entry for entry in entries if entry.seq <= lost.common)
    base = {
        id_of_account: (currency, balance)
        for id_of_account, (currency, _, balance) in shared.items()
    }
    for entry in entries:
        if entry.seq > lost.common:
            for change in json.loads(entry.text)["body"]["accounts"]:
                _add_booked(base, lost.book, change)
    return base


def _add_booked(base: dict[str, tuple[str, Balance]], book: str, change: dict[str, Any]) -> None:
    id_of_account = f"{book}/{change['holder']}"
    before, after = change["before"], change["after"]
    if before is not None and before["currency"] != after["currency"]:
        return  # the difference is unknown, so it counts again
    currency, balance = base.get(
        id_of_account, (after["currency"], Balance(COMPOSITION_RULES[after["currency"]].nothing))
    )
    if currency != after["currency"]:
        return
    added = _difference(after["spent"], before and before["spent"])
    cells = {cell: tuple(units) for cell, *units in after["cells"]}
    earlier = {cell: tuple(units) for cell, *units in (before or {"cells": []})["cells"]}
    more = {cell: _difference(units, earlier.get(cell)) for cell, units in cells.items()}
    nothing = COMPOSITION_RULES[currency].nothing
    together = {
        cell: plus(balance.cells.get(cell, nothing), more.get(cell, nothing))
        for cell in balance.cells.keys() | more.keys()
    }
    base[id_of_account] = (
        currency,
        Balance(plus(balance.common, added), balance.persons_may_move, together),
    )


def _difference(after: Iterable[int], before: Iterable[int] | None) -> Spend:
    spent = tuple(after)
    return spent if before is None else minus(spent, tuple(before))
