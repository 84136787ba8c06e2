"""Cells: the stop rule compared with every value that a person could have, and every pair."""

from decimal import Decimal
from fractions import Fraction
from functools import reduce
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting import COMPOSITION_RULES
from app.accounting.loss import Loss
from app.accounting.losses import gaussian_loss, generic_loss, pure_loss
from app.accounting.rules.spending import Spend, plus
from app.accounting.rules.terms import AccountTerms, GrantTerms
from app.accounting.units import PICO
from app.errors import BudgetExhausted
from app.ledger.account import Account
from app.ledger.balance import Balance, CellIndices
from tests.effort import examples

SIZE = 4
EVERY = range(SIZE)
Question = tuple[Loss, CellIndices]
relations = pytest.mark.parametrize("pairs", [False, True], ids=["add_remove", "replace_one"])


def pure_account(limit: int, *, pairs: bool) -> Account:
    terms = AccountTerms(limit, 0, (limit, 0))
    return Account("b", "ann", "Ann", "pure", terms, Balance((0, 0), pairs), 1)


def account(currency: str, *, pairs: bool) -> Account:
    rule = COMPOSITION_RULES[currency]
    delta = Decimal("0" if currency == "pure" else "1e-6")
    terms = rule.freeze(GrantTerms(epsilon=Decimal(1), delta=delta))
    return Account("b", "ann", "Ann", currency, terms, Balance(rule.nothing, pairs), 1)


def loss_of_person(account: Account, questions: list[Question], values: tuple[int, ...]) -> Spend:
    """Total loss of a person who has one of these values in one of the neighbouring tables."""
    rule = account.rule
    costs = [
        rule.read(loss) for loss, cells in questions if cells is None or set(cells) & set(values)
    ]
    return reduce(plus, costs, rule.nothing)


def by_definition(account: Account, questions: list[Question]) -> bool:
    """True if the rule admits the loss of every possible person.

    Under add_remove they are present or not; under replace_one they move between cells.
    """
    several = 2 if account.balance.persons_may_move else 1
    return all(
        account.rule.admits(loss_of_person(account, questions, values), account.terms)
        for values in combinations(EVERY, several)
    )


def cells_of(*, pairs: bool) -> st.SearchStrategy[CellIndices]:
    """Under replace_one a question about several cells is charged like one about all."""
    most = 1 if pairs else SIZE
    return st.none() | st.sets(st.sampled_from(EVERY), min_size=1, max_size=most).map(
        lambda chosen: tuple(sorted(chosen))
    )


def try_to_ask(now: Account, question: Question) -> Account | None:
    try:
        return now.admit(*question)
    except BudgetExhausted:
        return None


@relations
@given(st.data())
def test_a_pure_account_admits_exactly_the_charges_of_the_definition(
    pairs: bool, data: st.DataObject
) -> None:
    now = pure_account(data.draw(st.integers(0, 12)), pairs=pairs)
    sizes = st.builds(Loss, st.integers(0, 6))
    paid: list[Question] = []
    for question in data.draw(st.lists(st.tuples(sizes, cells_of(pairs=pairs)), max_size=12)):
        after = try_to_ask(now, question)
        assert (after is not None) == by_definition(now, [*paid, question])
        if after is not None:
            now, paid = after, [*paid, question]
            if data.draw(st.integers(0, 4)) == 0:  # occasionally something is refunded
                back = paid.pop(data.draw(st.integers(0, len(paid) - 1)))
                now = now.give_back(*back)
        assert not now.frozen
        worst = max(
            loss_of_person(now, paid, values)[0]
            for values in combinations(EVERY, 2 if pairs else 1)
        )
        assert now.worst[0] == worst


POOL = [
    *(pure_loss(units) for units in (10**9, PICO // 10, PICO // 4, PICO // 2, PICO)),
    *(gaussian_loss(Fraction(sigma)) for sigma in (5, 8, 20)),
    generic_loss(PICO // 5, 4 * 10**8),
]


@relations
@pytest.mark.parametrize("currency", ["zcdp", "renyi", "gdp", "approximate"])
@examples(40)
@given(st.data())
def test_no_account_admits_more_than_the_definition(
    currency: str, pairs: bool, data: st.DataObject
) -> None:
    """Single values are exact; for pairs, the largest numbers may come from two different pairs."""
    now = account(currency, pairs=pairs)
    pool = [loss for loss in POOL if now.rule.can_pay(now.rule.read(loss))]
    paid: list[Question] = []
    questions = st.lists(
        st.tuples(st.sampled_from(pool), cells_of(pairs=pairs)), min_size=4, max_size=14
    )
    for question in data.draw(questions):
        after = try_to_ask(now, question)
        allowed = by_definition(now, [*paid, question])
        if after is not None:
            assert allowed
            now, paid = after, [*paid, question]
        elif not pairs:
            assert not allowed
        elif allowed and currency == "approximate":
            # epsilon of one pair beside the delta of another: the only reason to refuse too much
            totals = [
                loss_of_person(now, [*paid, question], values) for values in combinations(EVERY, 2)
            ]
            worst = tuple(max(numbers) for numbers in zip(*totals, strict=True))
            assert not now.rule.admits(worst, now.terms)


@relations
@examples(60)
@given(st.data())
def test_the_largest_offered_epsilon_fits_and_a_unit_more_does_not(
    pairs: bool, data: st.DataObject
) -> None:
    now = pure_account(data.draw(st.integers(0, 20)), pairs=pairs)
    sizes = st.builds(Loss, st.integers(0, 6))
    for question in data.draw(st.lists(st.tuples(sizes, cells_of(pairs=pairs)), max_size=10)):
        now = try_to_ask(now, question) or now
    for cells in (None, *((cell,) for cell in EVERY)):
        largest = now.largest_epsilon(cells)
        assert try_to_ask(now, (Loss(largest), cells)) is not None
        assert try_to_ask(now, (Loss(largest + 1), cells)) is None
        often = now.repeats_left(Loss(1), cells)
        if pairs and cells is not None:
            assert often <= largest, "for pairs the number may be too small, never too large"
        else:
            assert often == largest
        if cells is not None:
            assert now.for_cell(cells[0]).largest_epsilon() == largest, (
                "the cell's own line must show the same"
            )


@relations
def test_a_question_about_some_cells_costs_each_the_same_as_single_questions(pairs: bool) -> None:
    loss = pure_loss(PICO // 4)
    for currency in ("pure", "renyi"):
        start = (
            pure_account(PICO, pairs=pairs) if currency == "pure" else account("renyi", pairs=pairs)
        )
        together = start.admit(loss, (0, 1))
        apart = start.admit(loss, (0,)).admit(loss, (1,))
        assert together.balance == apart.balance


def test_parallel_cells_and_the_whole_add_up_as_computed_by_hand() -> None:
    one = pure_loss(PICO)
    now = pure_account(PICO, pairs=False)
    for cell in EVERY:
        now = now.admit(one, (cell,))
        with pytest.raises(BudgetExhausted):
            now.admit(pure_loss(1), (cell,))
    with pytest.raises(BudgetExhausted):
        now.admit(pure_loss(1))
    assert now.balance.common == (0, 0)
    moved = pure_account(PICO, pairs=True).admit(pure_loss(6 * PICO // 10), (0,))
    with pytest.raises(BudgetExhausted):
        moved.admit(pure_loss(5 * PICO // 10), (1,))
    moved = moved.admit(pure_loss(4 * PICO // 10), (1,))
    moved = moved.admit(pure_loss(4 * PICO // 10), (2,)).admit(pure_loss(4 * PICO // 10), (3,))
    with pytest.raises(BudgetExhausted):
        moved.admit(pure_loss(1), (3,))


def test_a_booked_loss_counts_for_everybody_in_every_cell() -> None:
    now = pure_account(10, pairs=False).admit(Loss(4), (2,)).book([Loss(8)])
    assert now.frozen, "persons in cell 2 have a loss of 12"
    assert not now._replace(balance=Balance((8, 0))).frozen
    assert now.worst == (12, 0)
    assert now.for_cell(1).worst == (8, 0)


def test_an_untouched_account_has_no_charged_cell() -> None:
    now = pure_account(10, pairs=False)
    assert now.untouched
    asked = now.admit(Loss(4), (2,))
    assert not asked.untouched
    assert asked.give_back(Loss(4), (2,)).untouched
