"""Charges in every currency, on cells and in groups, on both stores."""

import asyncio
import json
import threading
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from app.accounting.losses import gaussian_loss, generic_loss, pure_loss
from app.accounting.precise import INFINITE
from app.accounting.rules.spending import plus
from app.accounting.rules.terms import GrantTerms
from app.accounting.units import PICO
from app.data.card import Card
from app.errors import BudgetExhausted, Conflict, Invalid
from app.ledger.account import EVERYBODY, Account
from app.ledger.orders import Charged
from app.store.connect import Database
from app.store.writer.accounts import find_accounts
from app.store.writer.batch import settle
from app.store.writer.statements import statements
from app.store.writer.writer import open_connection
from tests.store.ledgers import CELLED, TENTH, Ledger, make_ledger

D = Decimal
DELTA = D("1e-6")
WISHES: dict[str, GrantTerms] = {
    "pure": GrantTerms(epsilon=D(1)),
    "approximate": GrantTerms(epsilon=D(1), delta=DELTA),
    "zcdp": GrantTerms(rho=D("0.02"), delta=DELTA),
    "renyi": GrantTerms(epsilon=D(1), delta=DELTA),
    "gdp": GrantTerms(mu=D("0.2"), delta=DELTA),
}
QUARTER = pure_loss(PICO // 4)


def grant(ledger: Ledger, holder: str, currency: str) -> Account:
    return ledger.grant(holder, tenths=None, currency=currency, wish=WISHES[currency])[0]


def seen(ledger: Ledger, *holders: str) -> list[Account]:
    """Read accounts on the hot path, and check that administration reads the same."""

    async def look() -> dict[str, Account]:
        hot = await open_connection(ledger.database)
        try:
            sql = statements(sqlite=ledger.database.is_sqlite)
            book = ledger.dataset.book_id
            return await find_accounts(hot, sql, book_id=book, holders=[h.lower() for h in holders])
        finally:
            hot.close()

    found = asyncio.run(look())
    accounts = [found[holder.lower()] for holder in holders]
    assert accounts == [ledger.account(holder) for holder in holders]
    return accounts


def last_body(ledger: Ledger) -> dict[str, Any]:
    entries = ledger.history.entries(book_id=ledger.dataset.book_id, after=(0, "", 0), limit=1000)
    body: dict[str, Any] = json.loads(entries[-1].text)["body"]
    return body


# Currencies


@pytest.mark.parametrize(
    ("own", "total"),
    [("renyi", "pure"), ("zcdp", "renyi"), ("gdp", "zcdp"), ("pure", "gdp"), ("renyi", "renyi")],
)
def test_a_charge_pays_in_the_currency_of_each_account(
    ledger: Ledger, own: str, total: str
) -> None:
    name = ledger.analysts[0].name
    grant(ledger, name, own)
    grant(ledger, EVERYBODY, total)
    losses = [pure_loss(units) for units in (1, PICO // 100, PICO // 30)]
    charges = [ledger.charge(ledger.order(loss=loss)) for loss in losses]
    for account in seen(ledger, name, EVERYBODY):
        spend = account.rule.nothing
        for loss in losses:
            spend = plus(spend, account.rule.read(loss))
        assert account.balance.common == spend
        assert account.rule.theorem in json.loads(charges[-1].charged)["theorem"]
        assert account.version == 2 + len(losses), "a second grant of the same terms"
    counted = {"zcdp": "rho", "gdp": "mu_squared", "renyi": "curve"}
    members = {"rho", "mu_squared", "curve"} & set(last_body(ledger))
    assert members == {counted[c] for c in (own, total) if c in counted}
    assert ledger.verified().sound


@pytest.mark.parametrize("currency", WISHES)
def test_a_refusal_changes_nothing_and_the_amount_it_offers_fits(
    ledger: Ledger, currency: str
) -> None:
    name = ledger.analysts[0].name
    grant(ledger, name, currency)
    ledger.grant(EVERYBODY, tenths=10_000)
    ledger.charge(ledger.order(loss=QUARTER))
    before = ledger.everything()
    (refusal,) = ledger.settle(ledger.order(loss=pure_loss(2 * PICO)))
    assert isinstance(refusal, BudgetExhausted)
    assert ledger.everything() == before
    members = refusal.members
    assert (members["account"], members["currency"]) == (name, currency)
    largest = int(
        D(members.get("largest_epsilon_exact") or repr(members["largest_epsilon"])) * PICO
    )
    assert largest > 0
    (refused,) = ledger.settle(ledger.order(loss=pure_loss(largest + largest // 1000)))
    assert isinstance(refused, BudgetExhausted)
    assert ledger.everything() == before
    ledger.charge(ledger.order(loss=pure_loss(largest)))
    assert ledger.verified().sound


def test_a_loss_without_a_pure_bound_is_stored_as_none(ledger: Ledger) -> None:
    name = ledger.analysts[0].name
    grant(ledger, name, "renyi")
    grant(ledger, EVERYBODY, "gdp")
    ledger.charge(ledger.order(loss=gaussian_loss(Fraction(100))))
    ledger.charge(ledger.order(tenths=1))
    mine, everybody = seen(ledger, name, EVERYBODY)
    assert mine.balance.common[0] == everybody.balance.common[0] == INFINITE
    assert everybody.balance.common[2] == 10**8 + pure_loss(TENTH).mu_squared
    assert ledger.verified().sound


@pytest.mark.parametrize("currency", ["zcdp", "renyi", "gdp"])
def test_failure_probabilities_have_a_limit_of_their_own(ledger: Ledger, currency: str) -> None:
    name = ledger.analysts[0].name
    grant(ledger, name, currency)
    ledger.grant(EVERYBODY, tenths=100, currency="approximate", delta="0.1")
    small = generic_loss(1000, 4 * 10**8)  # out of 1e-9 reserved for failures
    results = ledger.settle(*[ledger.order(loss=small) for _ in range(3)])
    assert [type(result) for result in results] == [Charged, Charged, BudgetExhausted]
    assert seen(ledger, name)[0].balance.common[1] == 8 * 10**8
    assert ledger.verified().sound


def test_a_pure_account_cannot_pay_for_gaussian_noise_and_no_account_is_charged(
    ledger: Ledger,
) -> None:
    name = ledger.analysts[0].name
    grant(ledger, name, "zcdp")
    before = ledger.everything()
    (refusal,) = ledger.settle(ledger.order(loss=gaussian_loss(Fraction(100))))
    assert isinstance(refusal, Invalid)
    assert "zcdp, renyi, gdp" in refusal.detail
    assert ledger.everything() == before


# Cells


def test_spends_of_cells_are_separate_and_add_up(ledger_with_cells: Ledger) -> None:
    name = ledger_with_cells.analysts[0].name
    for holder, currency in ((name, "renyi"), (EVERYBODY, "pure")):
        grant(ledger_with_cells, holder, currency)
    tenth = pure_loss(TENTH)
    ledger_with_cells.charge(ledger_with_cells.order(loss=tenth, cells=(1,), cells_shown=["Chur"]))
    results = ledger_with_cells.settle(
        *[ledger_with_cells.order(loss=tenth, cells=cells) for cells in ((1,), (0, 2), None, (1,))]
    )
    assert all(isinstance(result, Charged) for result in results)
    mine, everybody = seen(ledger_with_cells, name, EVERYBODY)
    assert everybody.balance.common == (TENTH, 0)
    assert everybody.balance.cells == {0: (TENTH, 0), 1: (3 * TENTH, 0), 2: (TENTH, 0)}
    cost = mine.rule.read(tenth)
    assert mine.balance.cells == {0: cost, 1: tuple(3 * u for u in cost), 2: cost}
    assert last_body(ledger_with_cells)["cells"] == [1]
    assert ledger_with_cells.verified().sound
    assert len(ledger_with_cells.everything()["cells"]) >= 6


def test_each_cell_has_the_whole_limit_and_the_shared_account_has_it_once(
    ledger_with_cells: Ledger,
) -> None:
    ledger_with_cells.grant(EVERYBODY, tenths=10)
    orders = [ledger_with_cells.order(tenths=10, cells=(cell,)) for cell in (0, 1, 2, 3, 0)]
    orders += [
        ledger_with_cells.order(tenths=1),
        ledger_with_cells.order(who=1, tenths=1, cells=(3,)),
    ]
    results = ledger_with_cells.settle(*orders)
    assert [type(result) for result in results] == [Charged] * 4 + [BudgetExhausted] * 3
    assert ledger_with_cells.verified().sound


def test_a_refused_cell_changes_no_other_cell(ledger_with_cells: Ledger) -> None:
    ledger_with_cells.charge(ledger_with_cells.order(tenths=6, cells=(1,)))
    before = ledger_with_cells.everything()
    (refusal,) = ledger_with_cells.settle(ledger_with_cells.order(tenths=5, cells=(0, 1)))
    assert isinstance(refusal, BudgetExhausted)
    assert refusal.members["largest_epsilon"] == 0.4
    assert ledger_with_cells.everything() == before


def test_under_replace_one_the_two_largest_cells_add_up(database: Database) -> None:
    pairs = CELLED | {"neighbours": "replace_one", "rows": 100}
    ledger = make_ledger(database, card=Card.model_validate(pairs))
    try:
        costs = [(6, 0), (5, 1), (4, 1), (4, 2), (4, 3), (1, 3)]
        orders = [ledger.order(tenths=tenths, cells=(cell,)) for tenths, cell in costs]
        kinds = [type(result) for result in ledger.settle(*orders)]
        assert kinds == [Charged, BudgetExhausted, Charged, Charged, Charged, BudgetExhausted]
        assert ledger.account(ledger.analysts[0].name).balance.persons_may_move
        assert ledger.verified().sound
    finally:
        ledger.close()


def test_a_void_refunds_the_cells_that_paid(ledger_with_cells: Ledger) -> None:
    name = ledger_with_cells.analysts[0].name
    kept = ledger_with_cells.order(tenths=2, cells=(1,))
    voided = ledger_with_cells.order(tenths=3, cells=(1, 2))
    ledger_with_cells.settle(kept, voided)
    ledger_with_cells.settle(ledger_with_cells.void(voided))
    (mine,) = seen(ledger_with_cells, name)
    assert mine.balance.cells == {1: (2 * TENTH, 0), 2: (0, 0)}
    assert last_body(ledger_with_cells)["cells"] == [1, 2]
    assert ledger_with_cells.verified().sound


def test_an_account_with_refunded_cells_may_change_its_currency(ledger_with_cells: Ledger) -> None:
    """Afterwards its spend has the shape of the new currency."""
    name = ledger_with_cells.analysts[0].name
    grant(ledger_with_cells, name, "zcdp")
    paid = ledger_with_cells.order(tenths=1, cells=(1,))
    ledger_with_cells.charge(paid)
    with pytest.raises(Conflict, match="zcdp"):
        grant(ledger_with_cells, name, "renyi")
    ledger_with_cells.settle(ledger_with_cells.void(paid))
    grant(ledger_with_cells, name, "renyi")
    assert ledger_with_cells.verified().sound
    for _ in range(2):
        ledger_with_cells.charge(ledger_with_cells.order(tenths=3, cells=(1,)))
    (mine,) = seen(ledger_with_cells, name)
    cost = mine.rule.read(pure_loss(3 * TENTH))
    assert mine.balance.cells == {1: tuple(2 * units for units in cost)}
    assert ledger_with_cells.verified().sound


@pytest.mark.parametrize("currency", ["zcdp", "renyi", "gdp"])
def test_the_spend_of_a_pure_account_converts_to_a_new_currency(
    ledger_with_cells: Ledger, currency: str
) -> None:
    """Its epsilon converts as one release, which costs no less. A later refund leaves enough."""
    name = ledger_with_cells.analysts[0].name
    refunded, *others = (
        ledger_with_cells.order(tenths=1, cells=c) for c in ((1,), (1,), None, None)
    )
    ledger_with_cells.settle(refunded, *others)
    wish = GrantTerms(epsilon=D(5), delta=DELTA)
    after, _ = ledger_with_cells.grant(name, tenths=None, currency=currency, wish=wish)
    rule, tenth = after.rule, pure_loss(TENTH)
    assert after.balance.common == rule.read(pure_loss(2 * TENTH))
    assert after.balance.cells == {1: rule.read(pure_loss(2 * TENTH))}
    assert seen(ledger_with_cells, name) == [after]
    assert ledger_with_cells.verified().sound
    ledger_with_cells.settle(ledger_with_cells.void(refunded))
    (mine,) = seen(ledger_with_cells, name)
    paid = zip(mine.balance.cells[1], rule.read(tenth), strict=True)
    assert all(kept >= owed for kept, owed in paid)
    assert mine.balance.cells[1][0] == TENTH


def test_a_refund_after_the_currency_changed_still_verifies(ledger_with_cells: Ledger) -> None:
    paid = ledger_with_cells.order(tenths=1)
    ledger_with_cells.charge(paid)
    wish = GrantTerms(epsilon=D(5), delta=DELTA)
    ledger_with_cells.grant(
        ledger_with_cells.analysts[0].name, tenths=None, currency="renyi", wish=wish
    )
    ledger_with_cells.settle(ledger_with_cells.void(paid))
    assert ledger_with_cells.verified().sound


@pytest.mark.parametrize("currency", ["pure", "renyi"])
def test_concurrent_charges_on_different_cells_lose_no_update(
    ledger_with_cells: Ledger, currency: str
) -> None:
    """Two connections, each in its own thread, charge one account concurrently."""
    ledger_with_cells.grant(EVERYBODY, tenths=10_000)
    name, charges_per_thread = ledger_with_cells.analysts[0].name, 15
    ledger_with_cells.grant(
        name, tenths=500, currency=currency, delta="0" if currency == "pure" else "1e-6"
    )
    loss = pure_loss(TENTH // 100)
    sql = statements(sqlite=ledger_with_cells.database.is_sqlite)
    problems: list[object] = []
    start = threading.Barrier(2)

    async def charge(own_cell: int) -> None:
        hot = await open_connection(ledger_with_cells.database)
        try:
            orders = [
                ledger_with_cells.order(loss=loss, cells=((own_cell,), (2,), None)[i % 3])
                for i in range(charges_per_thread)
            ]
            start.wait(10)
            for order in orders:
                (result,) = await settle([order], hot, sql)
                if not isinstance(result, Charged):
                    problems.append(result)
        except Exception as error:  # noqa: BLE001  # the asserting thread reports it
            problems.append(error)
        finally:
            hot.close()

    threads = [
        threading.Thread(target=lambda own_cell=own_cell: asyncio.run(charge(own_cell)))
        for own_cell in (0, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert problems == []
    for account in seen(ledger_with_cells, name, EVERYBODY):
        cost = account.rule.read(loss)
        times = {cell: tuple(u * n for u in cost) for cell, n in ((0, 5), (1, 5), (2, 10))}
        assert account.balance.common == tuple(10 * units for units in cost)
        assert account.balance.cells == times
    assert ledger_with_cells.verified().sound
