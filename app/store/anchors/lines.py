"""Lines of an anchor file: one JSON object each, so that a torn line is simply skipped.

| line | content |
|---|---|
| `book` | the end of a book after a commit, and the spends of the accounts that it wrote |
| `stamp` | the newest stamp of a chain, and the row that carries it |
| `terms` | the holder of an account, and the granted terms |
| `marks` | fingerprints that lead to a book |
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from app.accounting import COMPOSITION_RULES
from app.accounting.rules.spending import Spend
from app.ledger.account import Account
from app.ledger.chain import canonical, quoted
from app.ledger.stamp import Stamp, StampChain

Row = tuple[Any, ...]


@dataclass(slots=True)
class AnchoredAccount:
    """Spend of an account, and of those cells that were written with it."""

    currency: str
    common: Spend
    cells: dict[int, Spend] = field(default_factory=dict)


@dataclass(slots=True)
class Point:
    """End of a book after a commit."""

    book: str
    seq: int
    head: str
    accounts: dict[str, AnchoredAccount]


@dataclass(frozen=True, slots=True)
class AnchoredTerms:
    """Account as granted."""

    id: str
    holder: str
    shown: str
    currency: str
    terms: str
    pairs: bool


@dataclass(slots=True)
class Anchor:
    """Content of one anchor file, oldest line first."""

    name: str
    points: list[Point] = field(default_factory=list)
    stamps: dict[str, tuple[Stamp, str]] = field(default_factory=dict)  # by chain, with the row
    terms: dict[str, AnchoredTerms] = field(default_factory=dict)
    marks: dict[str, set[str]] = field(default_factory=dict)
    unreadable: int = 0


# Writing


class BookEnd(NamedTuple):
    """End of a book after a commit, and the spends of the accounts that it wrote."""

    id: str
    seq: int
    head: str
    accounts: Sequence[Row] = ()  # id, currency, epsilon, delta, curve as the ledger stores it
    cells: Sequence[Row] = ()  # account, cell, epsilon, delta, curve


def book_line(end: BookEnd) -> str:
    """One `book` line. Formatted by hand, because it is written after every batch."""
    spent = ",".join([f'[{quoted(a)},"{c}",{e},{d},{v}]' for a, c, e, d, v in end.accounts])
    by_cell = ",".join([f"[{quoted(a)},{c},{e},{d},{v}]" for a, c, e, d, v in end.cells])
    return (
        f'{{"book":"{end.id}","seq":{end.seq},"head":"{end.head}",'
        f'"accounts":[{spent}],"cells":[{by_cell}]}}\n'
    )


def book_end(book_id: str, seq: int, head: str, accounts: Iterable[Account]) -> BookEnd:
    """End of a book with these accounts and all their cells."""
    spent: list[Row] = []
    cells: list[Row] = []
    for account in accounts:
        common = account.balance.common
        spent.append((account.id, account.currency, *common[:2], canonical(common[2:])))
        for cell, spend in account.balance.cells.items():
            cells.append((account.id, cell, *spend[:2], canonical(spend[2:])))
    return BookEnd(book_id, seq, head, spent, cells)


def stamp_line(chain: StampChain) -> str:
    return f'{{"stamp":"{chain.id}","seq":{chain.seq},"link":"{chain.link}","row":"{chain.row}"}}\n'


def terms_line(account: Account) -> str:
    line = {
        "terms": account.id,
        "holder": account.holder,
        "shown": account.shown,
        "currency": account.currency,
        "granted": account.terms.text(),
        "pairs": account.balance.persons_may_move,
    }
    return f"{canonical(line)}\n"


def marks_line(book_id: str, fingerprints: Iterable[str]) -> str:
    return f"{canonical({'marks': book_id, 'fingerprints': sorted(fingerprints)})}\n"


# Reading


def read_anchor(name: str, lines: Iterable[str]) -> Anchor:
    """Read an anchor file; torn or foreign lines are counted and skipped."""
    anchor = Anchor(name)
    for line in lines:
        try:
            _read_line(anchor, json.loads(line))
        except (ValueError, KeyError, TypeError, RecursionError):
            anchor.unreadable += 1
    return anchor


def _read_line(anchor: Anchor, line: object) -> None:
    match line:
        case {"book": str(book), "seq": int(seq), "head": str(head), **rest}:
            accounts: dict[str, AnchoredAccount] = {}
            for account_id, currency, epsilon, delta, curve in _list(rest["accounts"]):
                common = _spend(currency, epsilon, delta, curve)
                accounts[str(account_id)] = AnchoredAccount(str(currency), common)
            for account_id, cell, epsilon, delta, curve in _list(rest["cells"]):
                account = accounts[str(account_id)]
                account.cells[_whole(cell)] = _spend(account.currency, epsilon, delta, curve)
            anchor.points.append(Point(book, _whole(seq), head, accounts))
        case {"stamp": str(chain), "seq": int(seq), "link": str(link), "row": str(row)}:
            anchor.stamps[chain] = Stamp(chain, _whole(seq), link), row
        case {
            "terms": str(account_id),
            "holder": str(holder),
            "shown": str(shown),
            "currency": str(currency),
            "granted": str(granted),
            "pairs": bool(pairs),
        }:
            anchor.terms[account_id] = AnchoredTerms(
                account_id, holder, shown, currency, granted, pairs
            )
        case {"marks": str(book), "fingerprints": list(fingerprints)}:
            anchor.marks.setdefault(book, set()).update(map(str, fingerprints))
        case _:
            raise ValueError("not a line of an anchor file")


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _whole(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("expected an integer of at least 0")
    return value


def _spend(currency: object, epsilon: object, delta: object, curve: object) -> Spend:
    spend = tuple(map(_whole, [epsilon, delta, *_list(curve)]))
    if len(spend) != len(COMPOSITION_RULES[str(currency)].nothing):
        raise ValueError("the spend has the length of another currency")
    return spend
