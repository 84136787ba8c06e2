"""Verification of every currency, cells, groups and booked losses; and of the first ledgers."""

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.losses import gaussian_loss, generic_loss, pure_loss
from app.accounting.rules.terms import GrantTerms
from app.accounting.units import PICO
from app.ledger.account import EVERYBODY, Account
from app.ledger.chain import Entry, canonical
from app.ledger.currency_change import carried_over
from app.ledger.verification.lines import LedgerLine, from_lines
from app.ledger.verification.verify import verify
from tests.effort import examples
from tests.ledger.verification.books import (
    Made,
    exported,
    granted,
    problems,
    rehashed,
    said,
)

ONE = GrantTerms(epsilon=Decimal(1), delta=Decimal("1e-6"))
GROUP = "group:clinic"
GRANTS = {
    "ann": ("renyi", ONE),
    "bob": ("zcdp", GrantTerms(rho=Decimal("0.02"), delta=Decimal("1e-6"))),
    "eve": ("pure", GrantTerms(epsilon=Decimal(1))),
    GROUP: ("gdp", GrantTerms(mu=Decimal("0.3"), delta=Decimal("1e-6"))),
    EVERYBODY: ("approximate", GrantTerms(epsilon=Decimal(5), delta=Decimal("1e-3"))),
}
BOOKED = gaussian_loss(Fraction(4), (3 * PICO, 10**12))
LISTED = generic_loss(PICO // 50, 10**8)


def varied_ledger(neighbours: str = "add_remove") -> Made:
    made = Made(grants=GRANTS, neighbours=neighbours)
    assert made.charge(["ann", GROUP], pure_loss(PICO // 10), (1,))
    assert made.charge("bob", LISTED)
    assert made.charge("ann", pure_loss(PICO // 20), (2,))
    assert made.charge(["ann", GROUP], pure_loss(PICO // 20), (1,))
    assert made.charge("bob", pure_loss(PICO // 50), (3,))
    made.void("bob", pure_loss(PICO // 50), (3,))
    made.booked(BOOKED)
    assert made.charge("eve", pure_loss(PICO // 4))
    return made


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_a_ledger_of_every_currency_is_sound_and_so_is_its_export(neighbours: str) -> None:
    made = varied_ledger(neighbours)
    report = verify(made.lines())
    assert report.sound, report.findings
    assert report.accounts == len(GRANTS)
    back = list(from_lines(exported(made.lines())))
    assert exported(back) == exported(made.lines())
    assert verify(back).sound
    cells = made.accounts["ann"].balance.cells
    assert set(cells) == {1, 2}
    assert cells[1][0] == 3 * PICO // 20


def test_an_entry_holds_only_the_numbers_its_accounts_count() -> None:
    kinds: dict[str, list[set[str]]] = {}
    for entry in varied_ledger().entries:
        text = json.loads(entry.text)
        members = {"pure", "failure", "rho", "mu_squared", "curve"} & set(text["body"])
        kinds.setdefault(text["kind"], []).append(members)
    curved = {"pure", "failure"}
    assert kinds["charge"] == [
        {*curved, "curve", "mu_squared"},
        {*curved, "rho"},
        {*curved, "curve"},
        {*curved, "curve", "mu_squared"},
        {*curved, "rho"},
        set(),
    ]
    assert kinds["booked"] == [set()]


# Saboteurs who can recompute every hash

Body = dict[str, Any]
SPENT = "the spend is not the sum of the entries"
LIMIT = "the limit is not the last granted one"
UNREADABLE = "the text cannot be read"
EVERYONE = "it does not charge everybody"
NEVER_PAID = "it refunds a charge that was never paid"
UNCOUNTED = "it cannot be counted in the account's currency"
FIRST, SECOND, VOID, BOOK = 6, 7, 11, 12  # positions of the entries


def in_entry(
    index: int, how: Callable[[Body], object]
) -> Callable[[list[LedgerLine]], list[LedgerLine]]:
    def sabotage(lines: list[LedgerLine]) -> list[LedgerLine]:
        entry = lines[index]
        assert isinstance(entry, Entry)
        text = json.loads(entry.text)
        how(text["body"])
        changed = entry._replace(text=canonical(text))
        assert changed != entry, "the saboteur did nothing"
        return rehashed([*lines[:index], changed, *lines[index + 1 :]])

    return sabotage


def put(**members: Any) -> Callable[[Body], object]:
    return lambda body: body.update(members)


def lower(name: str) -> Callable[[Body], object]:
    return lambda body: body.update({name: body[name] - 1})


def bend_curve(body: Body) -> None:
    body["curve"][20] -= 1


def stated(
    how: Callable[[Account], Account], holder: str = "ann"
) -> Callable[..., list[LedgerLine]]:
    return lambda lines: [
        how(x) if isinstance(x, Account) and x.holder == holder else x for x in lines
    ]


def with_balance(**changes: Any) -> Callable[[Account], Account]:
    return lambda account: account._replace(balance=account.balance._replace(**changes))


def richer(account: Account) -> Account:
    limits = list(account.terms.limits)
    limits[20] += 1
    return account._replace(terms=replace(account.terms, limits=tuple(limits)))


SABOTEURS: dict[str, tuple[Callable[[list[LedgerLine]], list[LedgerLine]], str]] = {
    "a curve lowered at one order": (in_entry(FIRST, bend_curve), SPENT),
    "a curve left out": (in_entry(FIRST, lambda body: body.pop("curve")), SPENT),
    "a short curve": (in_entry(FIRST, lambda body: body["curve"].pop()), UNREADABLE),
    "a curve of fractions": (in_entry(FIRST, put(curve=[0.5] * 40)), UNREADABLE),
    "a curve that is a number": (in_entry(FIRST, put(curve=1)), UNREADABLE),
    "a negative curve": (in_entry(FIRST, put(curve=[-1] * 40)), UNREADABLE),
    "a curve beyond 64 bits": (in_entry(FIRST, put(curve=[2**63] * 40)), UNREADABLE),
    "a mu lowered": (in_entry(FIRST, lower("mu_squared")), SPENT),
    "a mu left out": (in_entry(FIRST, lambda body: body.pop("mu_squared")), SPENT),
    "a pure bound lowered": (in_entry(FIRST, lower("pure")), SPENT),
    "another cell": (in_entry(FIRST, put(cells=[2])), SPENT),
    "no cell": (in_entry(FIRST, put(cells=[])), SPENT),
    "everybody instead of a cell": (in_entry(FIRST, put(cells=None)), SPENT),
    "cells left out": (in_entry(FIRST, lambda body: body.pop("cells")), SPENT),
    "a cell below zero": (in_entry(FIRST, put(cells=[-1])), UNREADABLE),
    "a cell that is text": (in_entry(FIRST, put(cells=["1"])), UNREADABLE),
    "cells that are no list": (in_entry(FIRST, put(cells="1")), UNREADABLE),
    "everybody left out": (in_entry(FIRST, put(accounts=["ann", GROUP])), EVERYONE),
    "everybody alone": (in_entry(FIRST, put(accounts=[EVERYBODY])), EVERYONE),
    "the group left out": (in_entry(FIRST, put(accounts=["ann", EVERYBODY])), SPENT),
    "somebody who was never granted": (
        in_entry(FIRST, put(accounts=["ann", GROUP, "zoe", EVERYBODY])),
        "it charges an account that was never granted",
    ),
    "a rho lowered": (in_entry(SECOND, lower("rho")), SPENT),
    "a failure lowered": (in_entry(SECOND, lower("failure")), SPENT),
    "a failure left out": (in_entry(SECOND, lambda body: body.pop("failure")), SPENT),
    "no delta": (in_entry(SECOND, lambda body: body.pop("delta")), UNREADABLE),
    "nothing that counts": (
        in_entry(SECOND, lambda body: [body.pop(name) for name in ("rho", "pure")]),
        UNCOUNTED,
    ),
    "a cell given back that did not pay": (in_entry(VOID, put(cells=[2])), NEVER_PAID),
    "everybody given back": (in_entry(VOID, put(cells=None)), NEVER_PAID),
    "more given back": (in_entry(VOID, put(rho=10**12)), NEVER_PAID),
    "given back to another": (in_entry(VOID, put(accounts=["ann", EVERYBODY])), NEVER_PAID),
    "a booked loss lowered": (in_entry(BOOK, lower("epsilon")), SPENT),
    "a booked loss elsewhere": (in_entry(BOOK, put(accounts=["eve"])), EVERYONE),
    "a booked loss of nothing known": (in_entry(BOOK, put(epsilon=2**63 - 1)), UNCOUNTED),
    "a relation changed": (
        in_entry(0, put(after={"card": {"neighbours": "replace_one"}})),
        SPENT,
    ),
    "a granted limit raised": (
        in_entry(1, lambda body: body["after"]["terms"]["limits"].__setitem__(20, 10**15)),
        LIMIT,
    ),
    "a granted currency changed": (
        in_entry(1, lambda body: body["after"].update(currency="zcdp")),
        LIMIT,
    ),
    "an unknown currency": (
        in_entry(1, lambda body: body["after"].update(currency="gold")),
        UNREADABLE,
    ),
    "a stated cell lowered": (stated(with_balance(cells={1: (0,) * 42})), SPENT),
    "stated cells left out": (stated(with_balance(cells={})), SPENT),
    "a stated pair": (stated(with_balance(persons_may_move=True)), SPENT),
    "a stated limit raised at one order": (stated(richer), LIMIT),
    "a stated order changed": (
        stated(lambda a: a._replace(terms=replace(a.terms, order="41"))),
        LIMIT,
    ),
    "a group that vanished": (
        lambda lines: [x for x in lines if not (isinstance(x, Account) and x.holder == GROUP)],
        "entries name an account that is not there",
    ),
}


@pytest.mark.parametrize("saboteur", SABOTEURS)
def test_the_saboteur_is_named_here_and_in_an_export(saboteur: str) -> None:
    sabotage, expected = SABOTEURS[saboteur]
    lines = sabotage(varied_ledger().lines())
    found = problems(lines)
    assert expected in found, found
    assert not verify(from_lines(exported(lines))).sound


def test_a_charge_beyond_the_limit_of_one_cell_is_found() -> None:
    made = Made(limit=100)
    made.charge("ann", 60, (1,))
    made.charge("ann", 60, (2,))
    assert verify(made.lines()).sound, "two cells are charged separately"
    made.last = "q_beyond"
    made.append("charge", made.moved("ann", 41, (2,)))
    assert "it exceeds the limit" in problems(made.lines())


def test_a_booked_loss_may_exceed_the_limit_and_then_nothing_more_is_charged() -> None:
    made = varied_ledger()
    made.booked(BOOKED)
    assert made.accounts[EVERYBODY].frozen
    assert verify(made.lines()).sound
    made.last = "q_beyond"
    made.append("charge", made.moved("eve", pure_loss(1)))
    assert "it exceeds the limit" in problems(made.lines())


def test_a_grant_keeps_the_spend_of_cells() -> None:
    """The spend of an account converts to its new currency, even if only some cells have paid."""
    for cells in (None, (1,)):
        made = Made(
            grants={"ann": ("pure", GrantTerms(epsilon=Decimal(1))), EVERYBODY: GRANTS[EVERYBODY]}
        )
        assert made.charge("ann", pure_loss(PICO // 2), cells)
        before, after = made.accounts["ann"], granted("b_1", "ann", *GRANTS["ann"])
        body = {"holder": "ann", "before": said(before), "after": said(after)}
        made.append("grant", body)
        made.accounts["ann"] = after
        assert "the spend is not the sum of the entries" in problems(made.lines())
        carried = carried_over(before.balance, "pure", "renyi")
        assert carried is not None
        made.accounts["ann"] = after._replace(balance=carried)
        assert verify(made.lines()).sound
        assert not carried.untouched


def test_a_currency_may_change_once_everything_was_refunded() -> None:
    for cells in (None, (1,)):
        made = Made(
            grants={"ann": ("pure", GrantTerms(epsilon=Decimal(1))), EVERYBODY: GRANTS[EVERYBODY]}
        )
        assert made.charge("ann", pure_loss(PICO // 2), cells)
        made.void("ann", pure_loss(PICO // 2), cells)
        before, after = made.accounts["ann"], granted("b_1", "ann", *GRANTS["ann"])
        made.append("grant", {"holder": "ann", "before": said(before), "after": said(after)})
        made.accounts["ann"] = after
        assert verify(made.lines()).sound


# Histories

charges = st.tuples(
    st.sampled_from([["ann"], ["ann", GROUP], ["bob"], ["eve"]]),
    st.sampled_from([10**9, PICO // 100, PICO // 20, PICO // 4]),
    st.none() | st.sampled_from([(0,), (1,), (0, 2)]),
    st.booleans(),
)


@examples(40)
@given(st.lists(charges, max_size=25), st.sampled_from(["add_remove", "replace_one"]))
def test_a_long_history_of_every_currency_adds_up(
    history: list[tuple[list[str], int, tuple[int, ...] | None, bool]], neighbours: str
) -> None:
    made = Made(grants=GRANTS, neighbours=neighbours)
    for holders, units, cells, voided in history:
        if made.charge(holders, pure_loss(units), cells) and voided:
            made.void(holders, pure_loss(units), cells)
    report = verify(made.lines())
    assert report.sound, report.findings
    assert verify(from_lines(exported(made.lines()))).sound


# The first ledgers
