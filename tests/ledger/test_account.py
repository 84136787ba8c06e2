"""Accounts: admitted within the limit, refused without a change, given back never below zero."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.accounting.loss import Loss
from app.accounting.rounding import PICO, UNITS_MAX
from app.errors import AccountFrozen, BudgetExhausted, Invalid
from app.ledger.account import Account, account_id

amounts = st.integers(0, 40) | st.integers(0, UNITS_MAX)
losses = st.builds(Loss, amounts, amounts)
pure_losses = st.builds(Loss, amounts)
accounts = st.builds(
    Account,
    book_id=st.just("b"),
    holder=st.just("ann"),
    shown=st.just("Ann"),
    currency=st.just("approximate"),
    limit=losses,
    spent=losses,
    version=st.integers(1, 100),
)


def account(*, limit: int, spent: int = 0, currency: str = "pure", delta: int = 0) -> Account:
    return Account("b", "ann", "Ann", currency, Loss(limit, delta), Loss(spent), 1)


@given(accounts, losses)
def test_admission_never_passes_a_limit_and_a_refusal_is_one_of_two(
    before: Account, cost: Loss
) -> None:
    try:
        after = before.admit(cost)
    except AccountFrozen:
        assert before.frozen
    except BudgetExhausted:
        assert not before.frozen
        fits = before.spent.epsilon + cost.epsilon <= before.limit.epsilon
        assert not (fits and before.spent.delta + cost.delta <= before.limit.delta)
    else:
        assert after.spent == before.spent + cost
        assert after.spent.within(after.limit)
        assert after.version == before.version + 1
        assert after.limit == before.limit


@given(st.integers(0, 100), st.lists(st.integers(0, 30), max_size=30))
def test_no_sequence_of_charges_passes_the_limit(limit: int, costs: list[int]) -> None:
    now = account(limit=limit)
    for cost in costs:
        try:
            now = now.admit(Loss(cost))
        except BudgetExhausted:
            assert now.spent.epsilon + cost > limit
    assert now.spent.epsilon <= limit


@given(accounts)
def test_the_largest_epsilon_is_admitted_and_one_unit_more_is_refused(before: Account) -> None:
    largest = before.largest_epsilon
    if not before.frozen:
        assert before.admit(Loss(largest)).largest_epsilon == 0
    if largest < UNITS_MAX:
        with pytest.raises((BudgetExhausted, AccountFrozen)):
            before.admit(Loss(largest + 1))


@given(accounts, losses)
def test_what_was_paid_can_be_given_back_exactly(before: Account, cost: Loss) -> None:
    try:
        after = before.admit(cost)
    except (BudgetExhausted, AccountFrozen):
        return
    back = after.give_back(cost)
    assert (back.spent, back.limit) == (before.spent, before.limit)
    assert back.version == before.version + 2


@given(accounts, losses)
def test_more_than_was_spent_is_never_given_back(before: Account, cost: Loss) -> None:
    assert before.give_back(cost).spent.within(before.spent)


def test_a_frozen_account_admits_nothing_not_even_nothing() -> None:
    frozen = account(limit=5, spent=6)
    with pytest.raises(AccountFrozen):
        frozen.admit(Loss(0))
    with pytest.raises(AccountFrozen) as caught:
        frozen.admit(Loss(1))
    assert caught.value.members["remaining"] == {"epsilon": 0.0, "delta": 0.0}
    assert (frozen.used, frozen.questions_left, frozen.remaining) == (1.0, 0, Loss(0))


def test_a_pure_account_refuses_delta_and_says_which_currencies_can_pay() -> None:
    with pytest.raises(Invalid, match="approximate can"):
        account(limit=PICO).admit(Loss(1, 1))
    paid = account(limit=PICO, currency="approximate", delta=5).admit(Loss(1, 5))
    assert paid.spent == Loss(1, 5)


def test_a_refusal_says_what_was_asked_what_is_left_and_that_retrying_is_no_use() -> None:
    with pytest.raises(BudgetExhausted) as caught:
        account(limit=PICO, spent=PICO // 3).admit(Loss(PICO))
    assert caught.value.members == {
        "account": "Ann",
        "currency": "pure",
        "requested": {"epsilon": 1.0, "delta": 0.0},
        "remaining": {"epsilon": 0.666666666667, "delta": 0.0},
        "largest_epsilon": 0.666666666667,
        "retryable": False,
    }


def test_questions_left_counts_tenths() -> None:
    assert account(limit=PICO).questions_left == 10
    assert account(limit=PICO, spent=PICO // 20).questions_left == 9


def test_an_account_is_known_by_book_and_holder() -> None:
    assert account(limit=1).id == account_id("b", "ann") == "b/ann"
