"""The texts of a charge: its entry's body, and what the answer will tell of it.

Almost all of both is the same for every charge of one plan by the same payers, and writing JSON is
a third of deciding a charge; so what is the same is written once and kept.
"""

from typing import NamedTuple

from app.ledger.account import EVERYBODY, Account
from app.ledger.balance import PARALLEL
from app.ledger.chain import Entry, canonical
from app.ledger.loss_record import COUNTED, loss_record
from app.ledger.orders import ChargeOrder

KEPT_MAX = 4096
# Where the digest of what was asked goes. No name can hold these letters: its quotes are escaped.
_ASKED = '"row":"'
_EVERYBODY_TOLD = canonical({"holder": EVERYBODY, "spent": None, "remaining": None})


class ChargeTexts(NamedTuple):
    """Canonical JSON around what differs from charge to charge."""

    before: str  # of the entry's body, up to the charge's own id
    between: str  # up to the digest of what was asked
    after: str
    price: str  # members of `charged` beside `accounts`
    theorem: str

    def body(self, charge_id: str, asked: str) -> str:
        return f"{self.before}{charge_id}{self.between}{asked}{self.after}"

    def charged(self, paid: list[Account], entry: Entry) -> str:
        """Only the asker's own balances are told: what everybody has left would show what others
        ask."""
        accounts = ",".join([*(each.balances_json() for each in paid[:-1]), _EVERYBODY_TOLD])
        return (
            f'{{"charged":{{"accounts":[{accounts}],{self.price}}},'
            f'"receipt":{{"entry":{entry.seq},"hash":"{entry.hash}"}},"theorem":{self.theorem}}}'
        )


_KEPT: dict[tuple[object, ...], ChargeTexts] = {}


def charge_texts(order: ChargeOrder, paid: list[Account]) -> ChargeTexts:
    """`paid` ends with everybody. What the totals hang on is in the key itself; a plan's digest
    stands for the rest, its query and mechanism, and the version for the card they are about."""
    loss = order.loss
    plan = (order.dataset_name, order.version_id, order.plan_digest, order.cells)
    price = (loss.epsilon, loss.delta, loss.pure, loss.failure, loss.rho)
    key: tuple[object, ...] = (*plan, *price)
    for account in paid:
        counted = COUNTED.get(account.currency)
        key += (account.holder, account.currency, counted and getattr(loss, counted))
    found = _KEPT.get(key)
    if found is None:
        if len(_KEPT) >= KEPT_MAX:
            _KEPT.clear()
        found = _KEPT[key] = _write(order, paid)
    return found


def _write(order: ChargeOrder, paid: list[Account]) -> ChargeTexts:
    body = {
        "charge": order.charge_id,
        "dataset": order.dataset_name,
        "version": order.version_id,
        "plan": order.plan_digest,
        "accounts": [account.holder for account in paid],
        "cells": order.cells,
        **loss_record(order.loss, frozenset(account.currency for account in paid)),
        **order.record,
        "row": "",
    }
    before, _, rest = canonical(body).partition(order.charge_id)
    between, _, after = rest.partition(_ASKED)
    between += _ASKED
    price = canonical({"cells": order.cells_shown, **order.loss.to_json()})[1:-1]
    theorems = dict.fromkeys([order.theorem, *(account.rule.theorem for account in paid)])
    if order.cells is not None:
        theorems[PARALLEL] = None
    return ChargeTexts(before, between, after, price, canonical("; ".join(theorems)))
