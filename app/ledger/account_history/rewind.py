"""An account before an entry, from the account after it: the way of a replay, backwards.

Spends are sums, so a rewind takes away what an entry has added. One thing cannot be taken away: a
sum that has reached INFINITE stays there. So the numbers that an entry has made infinite are open
before it, until an earlier entry is found that has made them infinite as well. (Finite costs reach
INFINITE only beyond nine million epsilon. The rows before would then show too much, never too
little.)
"""

import json
from typing import Any, NamedTuple

from app.accounting.precise import INFINITE
from app.ledger.account import Account
from app.ledger.account_history.replay import Step, recorded_state, replay_step
from app.ledger.chain import Entry
from app.ledger.loss_record import loss_from_record
from app.ledger.verification.lines import terms_of, whole_number

NumberPlace = tuple[int | None, int]  # a cell, or None for everybody; index in its spend
NOTHING_OPEN: frozenset[NumberPlace] = frozenset()
ALL_OPEN: frozenset[NumberPlace] = frozenset({(None, -1)})  # no entry confirms this place


class Rewound(NamedTuple):
    """The account before an entry, None if the entry granted it first, and what is open in it."""

    account: Account | None
    open_numbers: frozenset[NumberPlace]


def touching_body(entry: Entry, live: Account) -> dict[str, Any] | None:
    """The body of an entry that touched the account; None for the others."""
    body: dict[str, Any] = json.loads(entry.text)["body"]
    match entry.kind:
        case "grant":
            touches = body["holder"] == live.holder
        case "reconciled":
            touches = any(change["holder"] == live.holder for change in body["accounts"])
        case _:
            touches = live.holder in body["accounts"]
    return body if touches else None


def infinite_numbers(step: Step) -> frozenset[NumberPlace]:
    """Numbers that this entry has made infinite, or has found infinite in the charge it voids."""
    if step.entry.kind not in ("charge", "void", "booked"):
        return NOTHING_OPEN
    cost, cells = step.account.rule.read(loss_from_record(step.body)), _cells(step)
    return frozenset(
        (cell, index)
        for cell in ((None,) if cells is None else cells)
        for index, units in enumerate(cost)
        if units >= INFINITE
    )


def stated_account(entry: Entry, body: dict[str, Any], live: Account) -> Account | None:
    """The account after an entry that needs no earlier state: a first grant, a restored ledger."""
    alone = entry.kind == "reconciled" or (entry.kind == "grant" and body["before"] is None)
    step = replay_step(None, entry, live) if alone else None
    return None if step is None else step.account


def rewound(step: Step) -> Rewound:
    """The account before this step.

    Raises ValueError, KeyError or TypeError if the entry cannot be read or cannot lead to the
    account after it.
    """
    body, after = step.body, step.account
    match step.entry.kind:
        case "grant":
            return _before_grant(after, body)
        case "reconciled":
            changes = {change["holder"]: change["before"] for change in body["accounts"]}
            return _before_restored(after, changes[after.holder])
    cost, cells = after.rule.read(loss_from_record(body)), _cells(step)
    if step.entry.kind == "void":
        charged = after._replace(balance=after.balance.charged(cost, cells))
        return Rewound(charged, NOTHING_OPEN)
    balance = after.balance.given_back(cost, cells)
    if balance.charged(cost, cells) != after.balance:
        raise ValueError("the account has spent less than this entry charged")
    touched = {cell: spend for cell, spend in balance.cells.items() if any(spend)}
    before = after._replace(balance=balance._replace(cells=touched))
    return Rewound(before, infinite_numbers(step))


def _before_grant(after: Account, body: dict[str, Any]) -> Rewound:
    if body["before"] is None:
        return Rewound(None, NOTHING_OPEN)
    currency, terms = terms_of(body["before"])
    # A spend that was converted to another currency cannot be converted back.
    unknown = NOTHING_OPEN if currency == after.currency else ALL_OPEN
    return Rewound(after._replace(currency=currency, terms=terms), unknown)


def _before_restored(after: Account, before: dict[str, Any] | None) -> Rewound:
    if before is None:
        return Rewound(None, NOTHING_OPEN)
    currency, terms, balance = recorded_state(before)
    account = after._replace(currency=currency, terms=terms, balance=balance)
    return Rewound(account, NOTHING_OPEN)


def _cells(step: Step) -> tuple[int, ...] | None:
    listed = None if step.entry.kind == "booked" else step.body["cells"]
    return None if listed is None else tuple(map(whole_number, listed))
