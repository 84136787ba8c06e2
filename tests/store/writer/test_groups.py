"""Groups, losses booked from outside, and changed grants, on both stores."""

import json
from fractions import Fraction
from typing import Any

import pytest

from app.access import Role
from app.accounting.losses import gaussian_loss, pure_loss
from app.accounting.rules.terms import GrantTerms
from app.accounting.units import PICO
from app.errors import (
    AccountFrozen,
    BudgetExhausted,
    IdempotencyConflict,
    Invalid,
    NoGrant,
    NotFound,
)
from app.ledger.account import EVERYBODY
from app.ledger.orders import VoidOrder
from tests.store.ledgers import TENTH, Ledger
from tests.store.writer.test_currencies import DELTA, QUARTER, D, grant, seen

# Groups


def in_group(ledger: Ledger, who: int, *groups: str) -> None:
    name = ledger.analysts[who].name
    ledger.analysts[who] = ledger.people.alter(
        "admin", name, role=None, enabled=None, groups=groups, reason=None
    )


@pytest.fixture
def clinic(ledger: Ledger) -> tuple[Ledger, str]:
    """Put both analysts in one group with 12 tenths in total."""
    name = f"clinic {ledger.analysts[0].name.split()[-1]}"
    for who in (0, 1):
        in_group(ledger, who, name)
    ledger.grant(f"group:{name}", tenths=12)
    return ledger, f"group:{name}"


def test_a_charge_debits_analyst_group_and_shared_account_or_none(
    clinic: tuple[Ledger, str],
) -> None:
    ledger, group = clinic
    reply = json.loads(ledger.charge(ledger.order(tenths=7)).charged)
    holders = [each["holder"] for each in reply["charged"]["accounts"]]
    assert holders == [ledger.analysts[0].name, group, EVERYBODY]
    before = ledger.everything()
    (refusal,) = ledger.settle(ledger.order(who=1, tenths=6))
    assert isinstance(refusal, BudgetExhausted)
    assert refusal.members["account"] == group
    assert ledger.everything() == before
    ledger.charge(ledger.order(who=1, tenths=5))
    (spent,) = seen(ledger, group)
    assert spent.balance.common == (12 * TENTH, 0)
    assert (ledger.spent(0), ledger.spent(1), ledger.spent(None)) == (7, 5, 12)
    assert ledger.verified().sound


def test_a_budget_of_a_group_is_enough_for_its_members(ledger: Ledger) -> None:
    guest = ledger.people.create("admin", f"guest {id(ledger)}", Role.ANALYST, None, None, "")
    ledger.analysts.append(guest)
    (refusal,) = ledger.settle(ledger.order(who=2))
    assert isinstance(refusal, NoGrant)
    in_group(ledger, 2, "guests")
    (refusal,) = ledger.settle(ledger.order(who=2))
    assert isinstance(refusal, NoGrant), "membership in a group without a budget is no grant"
    ledger.grant("group:guests", tenths=3)
    ledger.charge(ledger.order(who=2, tenths=3))
    (refusal,) = ledger.settle(ledger.order(who=2))
    assert isinstance(refusal, BudgetExhausted)
    in_group(ledger, 2)
    (refusal,) = ledger.settle(ledger.order(who=2))
    assert isinstance(refusal, NoGrant)
    assert ledger.verified().sound


def test_a_void_refunds_nothing_to_a_group_granted_after_the_charge(ledger: Ledger) -> None:
    name = f"late {ledger.analysts[0].name.split()[-1]}"
    for who in (0, 1):
        in_group(ledger, who, name)
    order = ledger.order(tenths=4)
    charge = ledger.charge(order)
    ledger.grant(f"group:{name}", tenths=10)
    ledger.charge(ledger.order(who=1, tenths=5))
    void = VoidOrder(
        *(charge.charge_id, 1, order.book_id, charge.payers(), order.loss, None),
        reason="a test",
    )
    ledger.settle(void)
    (group,) = seen(ledger, f"group:{name}")
    assert group.balance.common == (5 * TENTH, 0)
    assert (ledger.spent(0), ledger.spent(1), ledger.spent(None)) == (0, 5, 5)
    assert ledger.verified().sound


# Booked losses


def book(
    ledger: Ledger, loss: Any, *holders: str, request: str | None = None, body: str = ""
) -> int:
    return ledger.budgets.book(
        "admin",
        ledger.dataset,
        (EVERYBODY, *holders),
        losses=[loss],
        record={"events": []},
        reason="printed",
        request=request,
        body=body,
    )


def test_a_booked_loss_may_exceed_the_limit_and_counts_once_per_key(ledger: Ledger) -> None:
    entry = book(ledger, pure_loss(25 * TENTH), request=f"{ledger.dataset.id}/k", body="a")
    assert ledger.spent(None) == 25
    before = ledger.everything()
    again = book(ledger, pure_loss(25 * TENTH), request=f"{ledger.dataset.id}/k", body="a")
    assert again == entry
    with pytest.raises(IdempotencyConflict):
        book(ledger, pure_loss(TENTH), request=f"{ledger.dataset.id}/k", body="b")
    with pytest.raises(NotFound):
        book(ledger, pure_loss(TENTH), "nobody")
    with pytest.raises(Invalid, match="zcdp, renyi, gdp"):
        book(ledger, gaussian_loss(Fraction(9)))
    assert ledger.everything() == before
    (refusal,) = ledger.settle(ledger.order())
    assert isinstance(refusal, AccountFrozen)
    assert ledger.verified().sound


def test_a_booked_loss_counts_for_the_shared_account_in_every_cell(
    ledger_with_cells: Ledger,
) -> None:
    name = ledger_with_cells.analysts[0].name
    ledger_with_cells.charge(ledger_with_cells.order(tenths=6, cells=(1,)))
    book(ledger_with_cells, pure_loss(5 * TENTH), name.lower())
    mine, everybody = seen(ledger_with_cells, name, EVERYBODY)
    assert mine.frozen
    assert not everybody.frozen
    assert mine.balance.cells == everybody.balance.cells == {1: (6 * TENTH, 0)}
    assert ledger_with_cells.verified().sound


# Changed grants


def test_a_raised_renyi_limit_keeps_order_and_spend(ledger: Ledger) -> None:
    name = ledger.analysts[0].name
    ledger.grant(EVERYBODY, tenths=100)
    first = grant(ledger, name, "renyi")
    ledger.charge(ledger.order(loss=QUARTER))
    wish = GrantTerms(epsilon=D(8), delta=DELTA)
    raised, new = ledger.grant(name, tenths=None, currency="renyi", wish=wish)
    assert not new
    assert raised.terms.order == first.terms.order == "22"
    assert raised.balance.common == raised.rule.read(QUARTER)
    assert raised.rule.freeze(wish).order != "22", "a new account would get another order"
    other = GrantTerms(epsilon=D(8), delta=DELTA, order=D(5))
    with pytest.raises(Invalid, match="/order"):
        ledger.grant(name, tenths=None, currency="renyi", wish=other)
    ledger.charge(ledger.order(loss=pure_loss(2 * PICO)))
    assert seen(ledger, name)[0].terms == raised.terms
    assert ledger.verified().sound
