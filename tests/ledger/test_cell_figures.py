"""An account with cells shows figures, and a trade-off curve, that hold for every cell."""

import json
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting import COMPOSITION_RULES
from app.accounting.loss import Loss
from app.accounting.losses import gaussian_loss, generic_loss, pure_loss
from app.accounting.rules.spending import largest, undominated
from app.accounting.rules.terms import GrantTerms
from app.accounting.tradeoff.curve import GUARD
from app.accounting.units import ATTO, PICO
from app.actions.budgets.trace_tradeoff import CURVES_MAX, TraceTradeoff
from app.errors import BudgetExhausted
from app.ledger.account import Account
from app.ledger.balance import Balance, CellIndices
from tests.effort import examples

SIZE = 5  # the last one is never charged
CHARGED = range(SIZE - 1)
CURRENCIES = list(COMPOSITION_RULES)
POOL = [
    *(pure_loss(units) for units in (PICO // 100, PICO // 10, PICO // 4, PICO // 2)),
    *(gaussian_loss(Fraction(sigma)) for sigma in (4, 5, 8, 20)),
    generic_loss(PICO // 5, 4 * 10**8),
    Loss(PICO // 50, delta=3 * 10**11),
]
relations = pytest.mark.parametrize("pairs", [False, True], ids=["add_remove", "replace_one"])
currencies = pytest.mark.parametrize("currency", CURRENCIES)


def opened(currency: str, *, pairs: bool, epsilon: int = 3) -> Account:
    rule = COMPOSITION_RULES[currency]
    delta = Decimal("0" if currency == "pure" else "1e-3")
    terms = rule.freeze(GrantTerms(epsilon=Decimal(epsilon), delta=delta))
    return Account("b", "ann", "Ann", currency, terms, Balance(rule.nothing, pairs), 1)


def cells_of(*, pairs: bool) -> st.SearchStrategy[CellIndices]:
    most = 1 if pairs else len(CHARGED)
    return st.none() | st.sets(st.sampled_from(CHARGED), min_size=1, max_size=most).map(
        lambda chosen: tuple(sorted(chosen))
    )


def spent_at_random(data: st.DataObject, currency: str, *, pairs: bool) -> Account:
    now = opened(currency, pairs=pairs)
    pool = [loss for loss in POOL if now.rule.can_pay(now.rule.read(loss))]
    questions = st.lists(
        st.tuples(st.sampled_from(pool), cells_of(pairs=pairs)), min_size=1, max_size=12
    )
    for loss, cells in data.draw(questions):
        try:
            now = now.admit(loss, cells)
        except BudgetExhausted:
            continue
    return now


def must_bound(shown: dict[str, Any], cell: dict[str, Any]) -> None:
    """Check that `spent` is at least the cell's and `remaining` at most; null has no bound."""
    for name in (name for name in cell["spent"] if not name.endswith("_exact")):
        account, value = shown["spent"][name], cell["spent"][name]
        assert account is None or (value is not None and account >= value), ("spent", name)
        assert shown["remaining"][name] <= cell["remaining"][name], ("remaining", name)


@relations
@currencies
@examples(60)
@given(st.data())
def test_figures_of_an_account_bound_the_figures_of_every_cell(
    currency: str, pairs: bool, data: st.DataObject
) -> None:
    now = spent_at_random(data, currency, pairs=pairs)
    shown = now.balances()
    for cell in range(SIZE):
        line = now.for_cell(cell)
        must_bound(shown, line.balances())
        assert now.used >= line.used
        assert now.largest_epsilon() <= now.largest_epsilon((cell,))
    text = json.loads(now.balances_json())
    assert {name: text[name] for name in shown} == shown


@relations
@currencies
@examples(200)
@given(st.data())
def test_epsilon_and_delta_are_the_largest_that_any_total_promises(
    currency: str, pairs: bool, data: st.DataObject
) -> None:
    """Every shortcut gives the same, for close totals of any numbers."""
    now = opened(currency, pairs=pairs)
    units = st.integers(0, 6).map(
        lambda steps: steps * 10 ** data.draw(st.sampled_from([9, 10, 11]))
    )
    size = len(now.rule.nothing)

    def spend() -> tuple[int, ...]:
        pure, failure, path = data.draw(st.tuples(units, st.integers(0, 2), units))
        return (pure, failure, *[path] * (size - 2))

    cells = {cell: spend() for cell in range(data.draw(st.integers(1, 4)))}
    balance = Balance(spend(), pairs, cells)
    account = now._replace(balance=balance)
    promises = [now.rule.promise_spent(total, now.terms) for total in balance.deciding_totals()]
    assert account._figures().spent[:2] == largest(promises)
    used = min(1.0, max(now.rule.used(total, now.terms) for total in balance.totals()))
    assert account.used == used
    account.balances_json()  # the headers take the figures that the charge has stated
    epsilon, delta, _ = account._figures().remaining
    assert account.remaining_and_used() == (epsilon, delta, used)
    granted = account._replace(terms=opened(currency, pairs=pairs, epsilon=2).terms)
    epsilon, delta, _ = granted._figures().remaining
    assert granted.remaining_and_used() == (epsilon, delta, granted.used)


@relations
@currencies
@examples(60)
@given(st.data())
def test_each_figure_is_attained_by_some_cell_if_a_person_is_in_one_cell(
    currency: str, pairs: bool, data: st.DataObject
) -> None:
    """The account claims no more loss than the cells together show."""
    now = spent_at_random(data, currency, pairs=pairs)
    shown, cells = now.balances(), [now.for_cell(cell).balances() for cell in range(SIZE)]
    if pairs:  # the numbers may come from two pairs of cells
        return
    for part in ("spent", "remaining"):
        for name, value in shown[part].items():
            assert value in [cell[part][name] for cell in cells]


@relations
@examples(100)
@given(st.data())
def test_the_lines_under_replace_one_are_those_of_each_cell(
    pairs: bool, data: st.DataObject
) -> None:
    numbers = st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
    cells = data.draw(st.dictionaries(st.integers(0, 5), numbers, min_size=1))
    balance = Balance(data.draw(numbers), pairs, cells)
    deciding_totals = set(balance.deciding_totals())
    assert deciding_totals >= {balance.cell(cell) for cell in cells}
    assert deciding_totals >= set(balance.totals())
    floor = balance.floor(balance.totals())
    assert all(
        least <= units
        for total in deciding_totals
        for least, units in zip(floor, total, strict=True)
    )
    if pairs:
        assert balance.cell(6) in deciding_totals, "cell 6 was never charged"
    else:
        assert balance.cell(6) == balance.common


class NoHistory:
    def entries(self, **_: Any) -> list[Any]:
        raise AssertionError("the releases of an account with cells are not looked at")


def curve(account: Account, points: int = 21) -> list[float]:
    spent, _ = TraceTradeoff(NoHistory())(account, points)  # type: ignore[arg-type]
    return spent.betas


def curve_of_cell(account: Account, cell: int, points: int = 21) -> list[float]:
    """The curve of an account whose only charged cell is this one, with the same loss."""
    loss = account.balance.cell(cell)
    alone = Balance(account.rule.nothing, persons_may_move=False, cells={0: loss})
    return curve(account._replace(balance=alone), points)


@relations
@currencies
@examples(15)
@given(st.data())
def test_the_curve_of_an_account_is_at_or_below_that_of_every_cell(
    currency: str, pairs: bool, data: st.DataObject
) -> None:
    """Up to the rounding of floats, a tenth of the margin of every curve."""
    now = spent_at_random(data, currency, pairs=pairs)
    if not now.balance.cells:
        return
    shown = curve(now)
    for cell in range(SIZE):
        pairs_of_betas = zip(shown, curve_of_cell(now, cell), strict=True)
        assert all(account <= own + GUARD / 10 for account, own in pairs_of_betas)


CASES: dict[str, tuple[Loss, Loss]] = {
    "pure": (pure_loss(PICO // 2), pure_loss(PICO)),
    "approximate": (pure_loss(PICO // 2), Loss(PICO // 10, delta=10**14)),
    "zcdp": (pure_loss(PICO // 2), gaussian_loss(Fraction(9, 2))),
    "renyi": (pure_loss(PICO // 2), gaussian_loss(Fraction(9, 2))),
    "gdp": (pure_loss(PICO // 2), gaussian_loss(Fraction(9, 2))),
}


@currencies
def test_the_cell_with_the_largest_used_share_does_not_represent_the_others(currency: str) -> None:
    first, second = CASES[currency]
    now = opened(currency, pairs=False).admit(first, (0,)).admit(second, (1,))
    a, b = now.for_cell(0), now.for_cell(1)
    if currency != "pure":
        assert a.used > b.used, "the account once showed cell 0 alone"
        assert a.balances()["spent"]["delta"] == 0 < b.balances()["spent"]["delta"]
    must_bound(now.balances(), a.balances())
    must_bound(now.balances(), b.balances())
    lower = zip(curve(now), curve_of_cell(now, 0), curve_of_cell(now, 1), strict=True)
    assert all(beta <= min(first, second) + GUARD / 10 for beta, first, second in lower)
    if currency in ("zcdp", "renyi", "gdp"):
        assert now.balances()["spent"]["epsilon"] == b.balances()["spent"]["epsilon"] > 1.1
        assert now.balances()["spent"]["delta"] == 9.99e-4


def test_under_replace_one_delta_is_shown_if_only_the_line_of_a_cell_needs_it() -> None:
    """The stop rule's total adds the two largest of each number.

    There the pure sum may be the better promise, without delta. For a single cell the divergences
    may be better.
    """
    now = opened("renyi", pairs=True, epsilon=30)
    orders = len(now.rule.nothing) - 2
    for pure in (2**power for power in range(20, 43)):
        steep, flat = (pure, 0, *[7 * pure // 10] * orders), (pure, 0, *[pure // 10] * orders)
        balance = Balance(
            now.rule.nothing, persons_may_move=True, cells={0: steep, 1: steep, 2: flat}
        )
        account = now._replace(balance=balance)
        for cell in range(4):
            must_bound(account.balances(), account.for_cell(cell).balances())
        (total,) = balance.totals()
        shown = [now.rule.promise_spent(each, now.terms)[1] for each in (total, balance.cell(2))]
        if shown[0] < shown[1]:
            return
    raise AssertionError("in no case would the total alone show too small a delta")


def test_too_many_curves_are_replaced_by_one_below_all() -> None:
    now = opened("renyi", pairs=False, epsilon=30)
    size = len(now.rule.nothing)
    cells = {}
    for cell in range(CURVES_MAX + 3):
        numbers = [PICO // 10] * size
        numbers[0], numbers[1] = PICO * (cell + 1) // 4, ATTO // (10**5 * (cell + 1))
        cells[cell] = tuple(numbers)
    many = now._replace(balance=Balance(now.rule.nothing, cells=cells))
    assert len(undominated(cells.values())) == len(cells) > CURVES_MAX
    shown = curve(many)
    for cell in cells:
        own = curve_of_cell(many, cell)
        assert all(beta <= of + GUARD / 10 for beta, of in zip(shown, own, strict=True))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8))
def test_undominated_totals_have_the_same_largest_numbers(spends: list[tuple[int, int]]) -> None:
    kept = undominated(spends)
    assert largest(kept) == largest(spends)
    for spend in spends:
        assert any(all(a <= b for a, b in zip(spend, other, strict=True)) for other in kept)
    assert len(set(kept)) == len(kept)
    for one, other in permutations(kept, 2):
        assert not all(a <= b for a, b in zip(one, other, strict=True))


@currencies
def test_an_account_without_cells_shows_unchanged_figures(currency: str) -> None:
    now = opened(currency, pairs=False).admit(pure_loss(PICO // 2)).admit(POOL[0])
    rule, terms, total = now.rule, now.terms, now.balance.common
    epsilon, delta = rule.promise_spent(total, terms)
    left = rule.left(total, terms)
    assert now.balances()["spent"] == {
        "epsilon": epsilon / PICO,
        "delta": delta / ATTO,
        **rule.own_units(total, terms),
    }
    assert now.balances()["remaining"] == {
        "epsilon": (terms.epsilon - epsilon) / PICO,
        "delta": left[1] / ATTO,
        **rule.own_units(left, terms),
    }
