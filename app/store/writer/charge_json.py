"""JSON texts of a charge: the body of its entry, and the part of the answer about the charge.

Both are almost the same for every charge of one plan by the same payers. Writing JSON takes a third
of the time of deciding a charge, so the common parts are written once and cached.
"""

from typing import NamedTuple

from app.ledger.account import EVERYBODY, Account
from app.ledger.balance import PARALLEL
from app.ledger.chain import Entry, canonical
from app.ledger.loss_record import COUNTED, loss_record
from app.ledger.orders import ChargeOrder

KEPT_MAX = 4096
# Marks where the hash of the request goes. No name contains this text: its quotes are escaped.
_ASKED = '"row":"'
_EVERYBODY_HIDDEN = canonical({"holder": EVERYBODY, "spent": None, "remaining": None})


class ChargeTexts(NamedTuple):
    """Canonical JSON around the parts that differ from charge to charge."""

    before: str  # of the entry's body, up to the charge's id
    between: str  # up to the hash of the request
    after: str
    price: str  # members of `charged` beside `accounts`
    theorem: str

    def body(self, charge_id: str, asked_hash: str) -> str:
        return f"{self.before}{charge_id}{self.between}{asked_hash}{self.after}"

    def charged(self, paid: list[Account], entry: Entry) -> str:
        """JSON of the charge, with the payer's own balances only.

        Everybody's balance would reveal the queries of others.
        """
        accounts = ",".join(
            [*(account.balances_json() for account in paid[:-1]), _EVERYBODY_HIDDEN]
        )
        return (
            f'{{"charged":{{"accounts":[{accounts}],{self.price}}},'
            f'"receipt":{{"entry":{entry.seq},"hash":"{entry.hash}"}},"theorem":{self.theorem}}}'
        )


_KEPT: dict[tuple[object, ...], ChargeTexts] = {}


def charge_texts(order: ChargeOrder, paid: list[Account]) -> ChargeTexts:
    """Cached texts of a charge. The last account of `paid` is everybody's.

    The cache key holds the price itself. The plan's digest stands for query and mechanism, and the
    version for the card.
    """
    loss = order.loss
    plan = (order.dataset_name, order.version_id, order.plan_digest, order.cells)
    price = (loss.epsilon, loss.delta, loss.pure, loss.failure, loss.rho)
    key: tuple[object, ...] = (*plan, *price)
    for account in paid:
        counted = COUNTED.get(account.currency)
        key += (account.holder, account.currency, counted and getattr(loss, counted))
    texts = _KEPT.get(key)
    if texts is None:
        if len(_KEPT) >= KEPT_MAX:
            _KEPT.clear()
        texts = _KEPT[key] = _write(order, paid)
    return texts


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
